// SPDX-License-Identifier: Apache-2.0
// --dry-run: what a model would be asked, and for how much.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "model.h"
#include "search/run_state.h"

namespace kernelpro::app {
namespace {

/// Keeps what it is asked and answers with something of the right form, so that the next question
/// is asked as well. Its answers go nowhere.
class Listener final : public llm::ChatClient {
 public:
  explicit Listener(std::string source) : source_(std::move(source)) {}

  [[nodiscard]] std::string_view name() const override { return "nobody"; }

  [[nodiscard]] Result<llm::ChatResponse> Ask(const llm::ChatRequest& request,
                                              const std::stop_token& /*stop*/) override {
    asked.push_back(request);
    llm::ChatResponse response;
    response.model = "nobody";
    response.text = request.schema.empty() ? fmt::format("```cuda\n{}\n// changed\n```\n", source_)
                                           : Plan(request.schema);
    return response;
  }

  std::vector<llm::ChatRequest> asked;

 private:
  /// An object with every property that the schema requires.
  static std::string Plan(const std::string& schema) {
    nlohmann::ordered_json answer = nlohmann::ordered_json::object();
    const auto parsed = nlohmann::ordered_json::parse(schema, nullptr, false);
    if (parsed.is_object() && parsed.contains("properties")) {
      for (const auto& [name, property] : parsed["properties"].items()) {
        const std::string type = property.value("type", std::string("string"));
        if (type == "number" || type == "integer") {
          answer[name] = 1;
        } else if (type == "array") {
          answer[name] = nlohmann::ordered_json::array();
        } else {
          answer[name] = property.contains("enum") ? property["enum"][0]
                         : name == "finding"       ? nlohmann::ordered_json("")
                                                   : nlohmann::ordered_json("the_planners_choice");
        }
      }
    }
    return answer.dump();
  }

  std::string source_;
};

struct Estimate {
  std::uint64_t about_in = 0, most_in = 0, most_out = 0;

  void Add(const llm::ChatRequest& request) {
    about_in += llm::PromptTokensAbout(request);
    most_in += llm::PromptTokensAtMost(request);
    most_out += request.max_tokens;
  }

  [[nodiscard]] double Most(const llm::Price& price) const {
    llm::Usage usage;
    usage.input = most_in;
    usage.output = most_out;
    return llm::Cost(price, usage);
  }

  /// A kernel and its plan are a few thousand tokens, whatever the limit of an answer is.
  [[nodiscard]] double About(const llm::Price& price, std::size_t requests) const {
    constexpr std::uint64_t kUsualAnswer = 2500;
    llm::Usage usage;
    usage.input = about_in;
    usage.output = std::min<std::uint64_t>(most_out, requests * kUsualAnswer);
    return llm::Cost(price, usage);
  }
};

std::string PromptText(const llm::ChatRequest& request) {
  std::string text = "[system]\n" + request.system + '\n';
  for (const llm::Message& message : request.messages) {
    text += fmt::format("[{}]\n{}\n",
                        message.role == llm::Message::Role::kUser        ? "user"
                        : message.role == llm::Message::Role::kAssistant ? "assistant"
                                                                         : "tool",
                        message.text);
  }
  for (const llm::ToolSpec& tool : request.tools) {
    text += fmt::format("[tool offered] {}: {}\n", tool.name, tool.description);
  }
  return text;
}

/// The questions for one child of the seed.
Result<std::vector<llm::ChatRequest>> QuestionsFor(const LlmProposerOptions& options,
                                                   const ProposalRequest& request,
                                                   Workshop* workshop,
                                                   const codesearch::CodeIndex* code,
                                                   const std::stop_token& stop) {
  Listener listener(request.parent.source);
  KP_ASSIGN_OR_RETURN(const std::unique_ptr<Proposer> proposer,
                      MakeLlmProposer(listener, options, workshop, code));
  KP_ASSIGN_OR_RETURN([[maybe_unused]] const Proposals dropped, proposer->Propose(request, stop));
  return std::move(listener.asked);
}

std::string Describe(const std::vector<llm::ChatRequest>& questions, const llm::Price& price,
                     std::string_view title, Estimate* estimate) {
  std::string text = fmt::format("=== {}\n", title);
  for (std::size_t i = 0; i < questions.size(); ++i) {
    Estimate one;
    one.Add(questions[i]);
    estimate->Add(questions[i]);
    text += fmt::format(
        "--- {}. {}: about {} tokens in (at most {}), at most {} out; at most {:.4f} dollars\n{}\n",
        i + 1, questions[i].purpose, one.about_in, one.most_in, one.most_out, one.Most(price),
        PromptText(questions[i]));
  }
  return text;
}

}  // namespace

Result<std::string> DryRun(const Facts& facts, const ModelOptions& options,
                           std::uint32_t evaluations, Bench& bench, const std::stop_token& stop) {
  KP_ASSIGN_OR_RETURN(const llm::Price price, PriceOfPlan(facts, options));
  KP_ASSIGN_OR_RETURN(LlmProposerOptions o, ProposerOptionsOf(facts, options.prompts));
  Candidate seed;
  KP_ASSIGN_OR_RETURN(seed.source, ReadSource(bench.task.seed));
  search::Workbench workbench = bench.MakeWorkbench();
  KP_ASSIGN_OR_RETURN(const search::Assessment assessed, workbench.Assess(seed, stop));
  NodeBrief root;
  root.node = store::kRoot;
  root.action = "seed";
  root.verdict = Name(assessed.evaluation.verdict);
  root.verdict_reason = assessed.evaluation.reason;
  root.time_us = assessed.evaluation.time_us;
  const ProposalRequest request = {
      .task = bench.task,
      .parent = seed,
      .diagnosis = assessed.diagnosis,
      .profile = assessed.profile,
      .node = root,
      .feedback = assessed.feedback,
      .path = {root},
      .best = root,
      .seed_us = root.time_us,
      .provenance = std::string(Name(assessed.evaluation.time_provenance)),
      .gpu = bench.device->info().title};
  const std::size_t seeds = o.seed_temperatures.size() * o.seed_rounds;
  std::string text;
  Estimate of_seed;
  std::size_t seed_questions = 0;
  if (seeds > 0) {
    KP_ASSIGN_OR_RETURN(const std::vector<llm::ChatRequest> questions,
                        QuestionsFor(o, request, nullptr, nullptr, stop));
    seed_questions = questions.size();
    text += Describe(questions, price, "a kernel written from the task alone", &of_seed);
  }
  o.seed_temperatures.clear();
  KP_ASSIGN_OR_RETURN(const std::vector<llm::ChatRequest> questions,
                      QuestionsFor(o, request, nullptr, nullptr, stop));
  Estimate of_child;
  text += Describe(questions, price, "a kernel made from the seed", &of_child);
  const double children = evaluations > 0 ? static_cast<double>(evaluations - 1) : 0;
  const double first = std::min(static_cast<double>(seeds), children);
  text += fmt::format(
      "=== a run of {} evaluations asks for {:.0f} kernels: about {:.2f} dollars; {:.2f} if every "
      "answer is as long as it may be. Repairs, second attempts and the researcher's tools come on "
      "top; a later parent is asked about with more to say.\n",
      evaluations, children,
      first * of_seed.About(price, seed_questions) +
          (children - first) * of_child.About(price, questions.size()),
      first * of_seed.Most(price) + (children - first) * of_child.Most(price));
  text += fmt::format(
      "price: {:g} dollars per million tokens in, {:g} out\ncaps: {}, {}\n"
      "nothing was asked and nothing was spent\n",
      price.input, price.output,
      options.max_cost ? fmt::format("{:g} dollars", *options.max_cost)
                       : std::string("no cap of money (--max-cost)"),
      options.max_tokens ? fmt::format("{} tokens", *options.max_tokens)
                         : std::string("no cap of tokens (--max-tokens)"));
  return text;
}

}  // namespace kernelpro::app
