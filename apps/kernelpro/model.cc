// SPDX-License-Identifier: Apache-2.0
#include "model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "llm/prices.h"
#include "toolchain/disassemble.h"

namespace kernelpro::app {
namespace {

namespace fs = std::filesystem;

std::string Get(const Facts& facts, const char* name, std::string otherwise = {}) {
  const auto found = facts.find(name);
  return found == facts.end() ? std::move(otherwise) : found->second;
}

bool IsOn(const Facts& facts, const char* name) {
  return Get(facts, name, "yes") == "yes";
}

double Number(const Facts& facts, const char* name, double otherwise) {
  double value = otherwise;
  return ParseDouble(Get(facts, name), &value) ? value : otherwise;
}

std::vector<double> Numbers(const std::string& text) {
  std::vector<double> numbers;
  for (const std::string_view part : Split(text, ',')) {
    double value = 0;
    if (ParseDouble(Trim(part), &value)) {
      numbers.push_back(value);
    }
  }
  return numbers;
}

}  // namespace

Result<LlmProposerOptions> ProposerOptionsOf(const Facts& facts, const fs::path& prompts) {
  LlmProposerOptions o;
  KP_ASSIGN_OR_RETURN(o.feedback, ParseFeedbackMode(Get(facts, "feedback", "tools")));
  KP_ASSIGN_OR_RETURN(o.orchestration,
                      ParseOrchestration(Get(facts, "orchestration", "proactive")));
  o.seed_temperatures = Numbers(Get(facts, "seed_temperatures"));
  o.seed_rounds = static_cast<std::uint32_t>(Number(facts, "seed_rounds", 1));
  o.temperature = Number(facts, "temperature", o.temperature);
  o.temperatures = IsOn(facts, "temperatures");
  o.effort = Get(facts, "effort");
  o.max_tokens = static_cast<std::uint32_t>(Number(facts, "answer_tokens", o.max_tokens));
  o.research = IsOn(facts, "research");
  o.prompts_folder = prompts.string();
  return o;
}

namespace {

/// Price and caps are the run's: whoever resumes it without saying them again must not find it
/// free of charge or without a limit.
ModelOptions WithStored(const Facts& facts, ModelOptions options) {
  const std::vector<double> price = Numbers(Get(facts, "price"));
  if (!options.price && price.size() == 2) {
    options.price = {price[0], price[1]};
  }
  double cost = 0;
  if (!options.max_cost && ParseDouble(Get(facts, "max_cost"), &cost)) {
    options.max_cost = cost;
  }
  long long tokens = 0;
  if (!options.max_tokens && ParseInteger(Get(facts, "max_tokens"), &tokens) && tokens >= 0) {
    options.max_tokens = static_cast<std::uint64_t>(tokens);
  }
  return options;
}

Result<llm::Price> PriceOf(const llm::Endpoint& endpoint, const ModelOptions& options) {
  if (options.price) {
    return llm::Price{(*options.price)[0], (*options.price)[0], (*options.price)[0],
                      (*options.price)[1]};
  }
  KP_ASSIGN_OR_RETURN(llm::PriceTable prices, llm::PriceTable::BuiltIn());
  if (!options.prices.empty()) {
    KP_ASSIGN_OR_RETURN(const std::string text, ReadFile(options.prices));
    KP_ASSIGN_OR_RETURN(llm::PriceTable own, llm::PriceTable::Parse(text, options.prices.string()));
    prices.Prefer(std::move(own));
  }
  const char* const provider = endpoint.wire == llm::Wire::kAnthropic ? "anthropic" : "openai";
  if (const auto price = prices.Find(provider, endpoint.model)) {
    return *price;
  }
  if (llm::IsLoopback(endpoint.base_url)) {
    return llm::Price{};  // A server of one's own sends no bill.
  }
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("the price of {}:{} is not known (the table is of {}); say it in dollars "
                          "per million tokens with --price IN,OUT, or give a table with --prices "
                          "FILE",
                          provider, Printable(endpoint.model, 80), prices.as_of()));
}

Result<llm::ClientOptions> ConnectTo(const Facts& facts, const ModelOptions& options) {
  llm::ClientOptions client;
  KP_ASSIGN_OR_RETURN(client.endpoint,
                      llm::ParseEndpoint(Get(facts, "model"), Get(facts, "base_url")));
  KP_ASSIGN_OR_RETURN(client.price, PriceOf(client.endpoint, options));
  client.stream = IsOn(facts, "stream");
  return client;
}

}  // namespace

Result<llm::Price> PriceOfPlan(const Facts& facts, const ModelOptions& options) {
  KP_ASSIGN_OR_RETURN(const llm::Endpoint endpoint,
                      llm::ParseEndpoint(Get(facts, "model"), Get(facts, "base_url")));
  return PriceOf(endpoint, options);
}

Status CheckModel(const Facts& facts, const ModelOptions& options) {
  KP_ASSIGN_OR_RETURN(const llm::ClientOptions client, ConnectTo(facts, options));
  KP_ASSIGN_OR_RETURN([[maybe_unused]] const llm::Key key,
                      llm::FindKey(client.endpoint, options.key_file));
  return Ok();
}

const std::vector<std::string>& ModelFacts() {
  static const std::vector<std::string> names = {
      "model",   "base_url", "feedback",     "orchestration",     "effort",      "temperature",
      "repairs", "research", "temperatures", "seed_temperatures", "seed_rounds", "answer_tokens",
      "stream",  "price",    "max_cost",     "max_tokens"};
  return names;
}

Result<Facts> PlanModel(const ModelOptions& o) {
  if (o.model.empty()) {
    return Fail(ErrorCode::kInvalidArgument,
                "the proposer llm needs --model openai:NAME or --model anthropic:NAME, with "
                "--base-url for a server of your own");
  }
  KP_ASSIGN_OR_RETURN([[maybe_unused]] const llm::Endpoint endpoint,
                      llm::ParseEndpoint(o.model, o.base_url));
  Facts facts = {{"model", o.model},
                 {"base_url", o.base_url},
                 {"feedback", o.feedback},
                 {"orchestration", o.orchestration},
                 {"effort", o.effort},
                 {"temperature", fmt::format("{}", o.temperature)},
                 {"temperatures", o.no_temperature ? "no" : "yes"},
                 {"seed_temperatures", fmt::format("{}", fmt::join(o.seed_temperatures, ","))},
                 {"seed_rounds", fmt::format("{}", o.seed_rounds)},
                 {"answer_tokens", fmt::format("{}", o.answer_tokens)},
                 {"research", o.no_research ? "no" : "yes"},
                 {"stream", o.no_stream ? "no" : "yes"},
                 {"repairs", fmt::format("{}", o.repairs)}};
  if (o.price) {
    facts["price"] = fmt::format("{},{}", (*o.price)[0], (*o.price)[1]);
  }
  if (o.max_cost) {
    facts["max_cost"] = fmt::format("{}", *o.max_cost);
  }
  if (o.max_tokens) {
    facts["max_tokens"] = fmt::format("{}", *o.max_tokens);
  }
  KP_ASSIGN_OR_RETURN([[maybe_unused]] const LlmProposerOptions checked,
                      ProposerOptionsOf(facts, o.prompts));
  return facts;
}

Status ModelProposer::MakeTools(const Facts& facts, const fs::path& prompts, Bench& bench) {
  // In front of a GPU stands the emulator; experiments are made there, so that no node's time is
  // disturbed.
  Device& emulator = bench.filter_device ? *bench.filter_device : *bench.device;
  Evaluator* const judge = bench.filter ? bench.filter.get() : bench.evaluator.get();
  if (emulator.info().emulated && judge != nullptr) {
    workshop_ = std::make_unique<search::EmulatorWorkshop>(
        bench.task, *bench.toolchain, emulator,
        search::Workbench(bench.task, emulator, *bench.toolchain, *judge, bench.spec),
        FindDisassembler(bench.toolchain->toolkit()));
  }
  KP_ASSIGN_OR_RETURN(LlmProposerOptions options, ProposerOptionsOf(facts, prompts));
  KP_ASSIGN_OR_RETURN(
      std::unique_ptr<Proposer> proposer,
      MakeLlmProposer(*recorder_, std::move(options), workshop_.get(), code_.get()));
  proposer_ = MakeRecordedProposer(std::move(proposer), *recorder_);
  return Ok();
}

Result<std::unique_ptr<ModelProposer>> ModelProposer::Open(const Facts& facts,
                                                           const ModelOptions& given,
                                                           double minutes, Bench& bench,
                                                           store::RunStore& store,
                                                           const Clock& clock) {
  std::unique_ptr<ModelProposer> self(new ModelProposer());
  const ModelOptions options = WithStored(facts, given);
  KP_ASSIGN_OR_RETURN(llm::ClientOptions client, ConnectTo(facts, options));
  KP_ASSIGN_OR_RETURN(client.key, llm::FindKey(client.endpoint, options.key_file));
  const llm::Price price = client.price;
  llm::Caps caps;
  caps.dollars = options.max_cost;
  caps.tokens = options.max_tokens;
  caps.time = std::chrono::milliseconds(static_cast<std::int64_t>(minutes * 60000));
  KP_ASSIGN_OR_RETURN(const std::vector<store::ExchangeRecord> earlier, store.Exchanges());
  self->budget_ = std::make_unique<llm::Budget>(caps, clock, SpentOn(earlier));
  KP_ASSIGN_OR_RETURN(self->client_, llm::OpenClient(std::move(client), *self->budget_, clock));
  KP_ASSIGN_OR_RETURN(self->recorder_,
                      RecordingClient::Open(*self->client_, store, price, self->budget_.get()));
  if (!options.code.empty()) {
    KP_ASSIGN_OR_RETURN(self->code_, codesearch::OpenFolder(options.code));
  }
  const fs::path own = store.folder() / "prompts";
  KP_RETURN_IF_ERROR(self->MakeTools(facts, fs::exists(own) ? own : fs::path(), bench));
  return self;
}

Result<std::unique_ptr<ModelProposer>> ModelProposer::Replay(
    const Facts& facts, const fs::path& prompts, Bench& bench, store::RunStore& store,
    std::vector<store::ExchangeRecord> recorded) {
  std::unique_ptr<ModelProposer> self(new ModelProposer());
  self->client_ = std::make_unique<ReplayClient>(std::move(recorded));
  KP_ASSIGN_OR_RETURN(self->recorder_,
                      RecordingClient::Open(*self->client_, store, llm::Price{}, nullptr));
  KP_RETURN_IF_ERROR(self->MakeTools(facts, prompts, bench));
  return self;
}

llm::Spent ModelProposer::spent() const {
  return budget_ ? budget_->spent() : llm::Spent{};
}

std::string SpentText(const llm::Spent& s) {
  std::string text = fmt::format("{:.4f} dollars, {} tokens in, {} out, {} requests", s.dollars,
                                 s.input_tokens, s.output_tokens, s.requests);
  if (s.estimated > 0) {
    text += fmt::format(
        " ({} of them charged at their upper bound, because nobody said what they cost)",
        s.estimated);
  }
  return text;
}

}  // namespace kernelpro::app
