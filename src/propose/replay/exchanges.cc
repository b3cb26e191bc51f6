// SPDX-License-Identifier: Apache-2.0
#include "propose/replay/exchanges.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/text.h"

namespace kernelpro {
namespace {

constexpr std::size_t kShownLine = 200;

/// JSON text with the line ends inside its strings made real ones, so that two requests can be
/// compared line by line.
std::string Unfolded(const std::string& json) {
  const auto parsed = nlohmann::ordered_json::parse(json, nullptr, false);
  std::string text = parsed.is_discarded() ? json : parsed.dump(1);
  for (std::size_t at = 0; (at = text.find("\\n", at)) != std::string::npos;) {
    text.replace(at, 2, "\n");
  }
  return text;
}

std::string FirstDifference(const std::string& recorded, const std::string& now) {
  const std::string before = Unfolded(recorded);
  const std::string after = Unfolded(now);
  const std::vector<std::string_view> a = Lines(before);
  const std::vector<std::string_view> b = Lines(after);
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const std::string_view was = i < a.size() ? a[i] : "(nothing)";
    const std::string_view is = i < b.size() ? b[i] : "(nothing)";
    if (was != is) {
      return fmt::format("line {} of the request was \"{}\" and is \"{}\"", i + 1,
                         Printable(Trim(was), kShownLine), Printable(Trim(is), kShownLine));
    }
  }
  return "the requests read alike and differ in their form";
}

}  // namespace

llm::Spent SpentOn(const std::vector<store::ExchangeRecord>& exchanges) {
  llm::Spent spent;
  for (const store::ExchangeRecord& e : exchanges) {
    spent.dollars += e.cost;
    spent.input_tokens += static_cast<std::uint64_t>(e.input_tokens);
    spent.output_tokens += static_cast<std::uint64_t>(e.output_tokens);
    // What failed for nothing never reached a server, or was refused by it.
    spent.requests += e.state != "failed" || e.input_tokens + e.output_tokens > 0 ? 1 : 0;
    spent.estimated += e.state == "sent" ? 1 : 0;
  }
  return spent;
}

Result<std::unique_ptr<RecordingClient>> RecordingClient::Open(llm::ChatClient& inner,
                                                               store::RunStore& store,
                                                               llm::Price price,
                                                               llm::Budget* budget) {
  std::unique_ptr<RecordingClient> client(new RecordingClient(inner, store, price, budget));
  KP_ASSIGN_OR_RETURN(std::vector<store::ExchangeRecord> exchanges, store.Exchanges());
  for (store::ExchangeRecord& e : exchanges) {
    if (e.state == "answered" && !e.used) {
      client->unused_.emplace(e.hash, std::move(e.response));
    }
  }
  return client;
}

std::optional<llm::ChatResponse> RecordingClient::Remembered(const std::string& hash) {
  const auto found = unused_.lower_bound(hash);  // The oldest; find() may give any.
  if (found == unused_.end() || found->first != hash) {
    return std::nullopt;
  }
  Result<llm::ChatResponse> response = llm::ParseResponseJson(found->second);
  unused_.erase(found);
  if (!response) {
    return std::nullopt;  // Damaged: the question is asked again.
  }
  response->replayed = true;
  return std::move(response).value();
}

Result<llm::ChatResponse> RecordingClient::AskAndCount(const llm::ChatRequest& request,
                                                       store::ExchangeRecord* exchange,
                                                       const std::stop_token& stop) {
  if (budget_ == nullptr) {
    exchange->input_tokens = exchange->output_tokens = 0;
    return inner_.Ask(request, stop);
  }
  const store::ExchangeRecord one_attempt = *exchange;
  const llm::Spent before = budget_->spent();
  const auto count = [&](store::ExchangeRecord* into) {
    const llm::Spent now = budget_->spent();
    into->input_tokens += static_cast<std::int64_t>(now.input_tokens - before.input_tokens);
    into->output_tokens += static_cast<std::int64_t>(now.output_tokens - before.output_tokens);
    into->cost += now.dollars - before.dollars;
  };
  budget_->WhenCharged([&] {
    store::ExchangeRecord so_far = one_attempt;  // Another attempt may be on its way already.
    so_far.state = "sent";
    count(&so_far);
    // A store that cannot be written to is found when the answer is kept.
    [[maybe_unused]] const Status kept = store_.FinishExchange(so_far);
  });
  Result<llm::ChatResponse> response = inner_.Ask(request, stop);
  budget_->WhenCharged(nullptr);
  exchange->input_tokens = exchange->output_tokens = 0;
  exchange->cost = 0;
  count(exchange);
  return response;
}

Result<llm::ChatResponse> RecordingClient::Ask(const llm::ChatRequest& request,
                                               const std::stop_token& stop) {
  store::ExchangeRecord exchange;
  exchange.hash = llm::RequestHash(request);
  if (std::optional<llm::ChatResponse> known = Remembered(exchange.hash)) {
    return std::move(*known);
  }
  llm::Usage at_most;
  at_most.input = llm::PromptTokensAtMost(request);
  at_most.output = request.max_tokens;
  exchange.node = node_;
  exchange.purpose = request.purpose;
  exchange.request = llm::RequestJson(request);
  exchange.input_tokens = static_cast<std::int64_t>(at_most.input);
  exchange.output_tokens = static_cast<std::int64_t>(at_most.output);
  exchange.cost = budget_ != nullptr ? llm::Cost(price_, at_most) : 0;
  KP_ASSIGN_OR_RETURN(exchange.id, store_.AddExchange(exchange));
  Result<llm::ChatResponse> response = AskAndCount(request, &exchange, stop);
  exchange.state = response ? "answered" : "failed";
  exchange.response = response ? llm::ResponseJson(*response) : response.error().message;
  exchange.model = response ? response->model : "";
  KP_RETURN_IF_ERROR(store_.FinishExchange(exchange));
  return response;
}

ReplayClient::ReplayClient(std::vector<store::ExchangeRecord> recorded)
    : recorded_(std::move(recorded)) {
  std::erase_if(recorded_,
                [](const store::ExchangeRecord& e) { return e.state != "answered" || !e.used; });
}

Result<llm::ChatResponse> ReplayClient::Ask(const llm::ChatRequest& request,
                                            const std::stop_token& /*stop*/) {
  if (next_ >= recorded_.size()) {
    return Fail(ErrorCode::kBudget,
                fmt::format("the recorded run ends here: it has {} answers", recorded_.size()));
  }
  const store::ExchangeRecord& exchange = recorded_[next_];
  if (exchange.hash != llm::RequestHash(request)) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("the replay diverges at exchange {} ({}, about node {}): {}",
                            exchange.id, exchange.purpose, exchange.node,
                            FirstDifference(exchange.request, llm::RequestJson(request))));
  }
  KP_ASSIGN_OR_RETURN(llm::ChatResponse response, llm::ParseResponseJson(exchange.response));
  response.replayed = true;
  ++next_;
  return response;
}

namespace {

class RecordedProposer final : public Proposer {
 public:
  RecordedProposer(std::unique_ptr<Proposer> inner, RecordingClient& client)
      : inner_(std::move(inner)), client_(client) {}

  [[nodiscard]] std::string_view name() const override { return inner_->name(); }

  [[nodiscard]] bool on_demand() const override { return inner_->on_demand(); }

  [[nodiscard]] Result<Proposals> Propose(const ProposalRequest& request,
                                          const std::stop_token& stop) override {
    client_.About(request.node.node);
    return inner_->Propose(request, stop);
  }

 private:
  std::unique_ptr<Proposer> inner_;
  RecordingClient& client_;
};

}  // namespace

std::unique_ptr<Proposer> MakeRecordedProposer(std::unique_ptr<Proposer> inner,
                                               RecordingClient& client) {
  return std::make_unique<RecordedProposer>(std::move(inner), client);
}

}  // namespace kernelpro
