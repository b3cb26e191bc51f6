// SPDX-License-Identifier: Apache-2.0
#include "propose/llm/llm_proposer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "propose/llm/coder.h"
#include "propose/llm/neutralise.h"
#include "propose/llm/note_taker.h"
#include "propose/llm/planner.h"
#include "propose/llm/repairer.h"
#include "propose/llm/researcher.h"
#include "propose/llm/seed_writer.h"
#include "propose/llm/situation.h"

namespace kernelpro {
namespace {

using agents::Attempt;
using agents::MemoryBlock;
using agents::Plan;
using agents::Setting;
using agents::Turn;
using agents::WrittenKernel;

/// The model's word counts for a part only, and never for more than the finding's own bound.
double Prior(const Plan& plan, const Diagnosis& diagnosis) {
  double gain = plan.expected_gain;
  const auto finding = std::ranges::find(diagnosis.findings, plan.finding, &Finding::id);
  if (finding != diagnosis.findings.end() && finding->bound > 0 && finding->bound < 1) {
    gain = std::min(gain, 1 / (1 - finding->bound));
  }
  return std::clamp(0.4 + 0.5 * (1 - 1 / gain), 0.4, 0.9);
}

class LlmProposer final : public Proposer {
 public:
  LlmProposer(llm::ChatClient& client, LlmProposerOptions options, agents::Prompts prompts,
              Workshop* workshop, const codesearch::CodeIndex* code)
      : options_(std::move(options)),
        prompts_(std::move(prompts)),
        setting_{.client = client, .prompts = prompts_, .options = options_},
        planner_(setting_),
        coder_(setting_),
        repairer_(setting_),
        researcher_(setting_, workshop, code),
        note_taker_(setting_),
        seed_writer_(setting_) {}

  // The agents refer to its members.
  LlmProposer(const LlmProposer&) = delete;
  LlmProposer& operator=(const LlmProposer&) = delete;

  [[nodiscard]] std::string_view name() const override { return "llm"; }

  [[nodiscard]] bool on_demand() const override { return true; }

  [[nodiscard]] Result<Proposals> Propose(const ProposalRequest& request,
                                          const std::stop_token& stop) override {
    const std::string system = agents::SystemText(prompts_, request);
    const Turn turn{.request = request, .system = system, .stop = stop};
    Proposals answer;
    if (seed_writer_.WantsOne(request)) {
      KP_RETURN_IF_ERROR(WriteSeed(turn, answer));
      return answer;
    }
    if (request.node.verdict.empty() || request.node.verdict == "infrastructure_error") {
      answer.declined.push_back({"repair", "whether the parent is right is not known"});
      return answer;
    }
    KP_RETURN_IF_ERROR(TakeNotes(turn, answer));
    std::vector<Lesson> memory = request.memory;
    memory.insert(memory.end(), answer.lessons.begin(), answer.lessons.end());
    if (request.node.verdict == agents::kOkVerdict) {
      KP_RETURN_IF_ERROR(Improve(turn, memory, answer));
    } else {
      KP_RETURN_IF_ERROR(Repair(turn, memory, answer));
    }
    return answer;
  }

 private:
  Status WriteSeed(const Turn& turn, Proposals& answer) const {
    KP_ASSIGN_OR_RETURN(Attempt<WrittenKernel> kernel, seed_writer_.Write(turn));
    Proposal proposal;
    proposal.action = seed_writer_.Action(turn.request);
    proposal.reason = "written from the task alone";
    Take(turn.request, std::move(kernel), std::move(proposal), answer);
    return Ok();
  }

  Status TakeNotes(const Turn& turn, Proposals& answer) const {
    if (agents::NoteTaker::News(turn.request).empty()) {
      return Ok();
    }
    using Kind = Lesson::Kind;
    KP_ASSIGN_OR_RETURN(
        Attempt<std::vector<Lesson>> notes,
        note_taker_.TakeNotes(turn, MemoryBlock(turn.request.memory, {Kind::kError, Kind::kDeadEnd,
                                                                      Kind::kWin, Kind::kFact})));
    if (notes.value) {
      answer.lessons = std::move(*notes.value);
    } else {
      answer.declined.push_back({"note_taker", std::move(notes.why)});
    }
    return Ok();
  }

  Status Improve(const Turn& turn, const std::vector<Lesson>& memory, Proposals& answer) const {
    using Kind = Lesson::Kind;
    KP_ASSIGN_OR_RETURN(Attempt<Plan> plan,
                        planner_.MakePlan(turn, MemoryBlock(memory, {Kind::kError, Kind::kDeadEnd,
                                                                     Kind::kWin, Kind::kFact})));
    if (!plan.value) {
      answer.declined.push_back({"planner", std::move(plan.why)});
      return Ok();
    }
    std::string note;
    KP_RETURN_IF_ERROR(Research(turn, *plan.value, note, answer));
    KP_ASSIGN_OR_RETURN(
        Attempt<WrittenKernel> kernel,
        coder_.Write(turn, *plan.value, note, MemoryBlock(memory, {Kind::kError, Kind::kFact})));
    Proposal proposal;
    proposal.action = plan.value->technique;
    proposal.reason = plan.value->why.empty() ? agents::FirstWords(plan.value->plan, 40)
                                              : std::move(plan.value->why);
    proposal.finding = plan.value->finding;
    proposal.prior = Prior(*plan.value, turn.request.diagnosis);
    proposal.candidate.flags = turn.request.parent.flags;
    Take(turn.request, std::move(kernel), std::move(proposal), answer);
    return Ok();
  }

  Status Research(const Turn& turn, const Plan& plan, std::string& note, Proposals& answer) const {
    if (!researcher_.CanWork()) {
      return Ok();
    }
    KP_ASSIGN_OR_RETURN(Attempt<agents::ResearchNote> found, researcher_.Investigate(turn, plan));
    if (!found.value) {
      answer.declined.push_back({"researcher", std::move(found.why)});
      return Ok();
    }
    note = std::move(found.value->text);
    if (found.value->fact) {
      answer.lessons.push_back(std::move(*found.value->fact));
    }
    return Ok();
  }

  Status Repair(const Turn& turn, const std::vector<Lesson>& memory, Proposals& answer) const {
    // Facts and dead ends may speak of speed; mistakes do not.
    KP_ASSIGN_OR_RETURN(Attempt<WrittenKernel> kernel,
                        repairer_.Repair(turn, MemoryBlock(memory, {Lesson::Kind::kError})));
    Proposal proposal;
    proposal.action = "repair_" + turn.request.node.verdict;
    proposal.reason =
        fmt::format("repairs {}", agents::NeutraliseLine(turn.request.node.verdict, 40));
    proposal.candidate.flags = turn.request.parent.flags;
    Take(turn.request, std::move(kernel), std::move(proposal), answer);
    return Ok();
  }

  /// A kernel becomes a proposal, anything else a reason why there is none.
  static void Take(const ProposalRequest& request, Attempt<WrittenKernel> kernel, Proposal proposal,
                   Proposals& answer) {
    if (!kernel.why.empty()) {
      answer.declined.push_back({proposal.action, std::move(kernel.why)});
    }
    if (!kernel.value) {
      return;
    }
    if (kernel.value->source == request.parent.source) {
      answer.declined.push_back({proposal.action, "the model gave the parent back unchanged"});
      return;
    }
    proposal.candidate.source = std::move(kernel.value->source);
    proposal.origin = std::move(kernel.value->model);
    answer.proposals.push_back(std::move(proposal));
  }

  LlmProposerOptions options_;
  agents::Prompts prompts_;
  Setting setting_;
  agents::Planner planner_;
  agents::Coder coder_;
  agents::Repairer repairer_;
  agents::Researcher researcher_;
  agents::NoteTaker note_taker_;
  agents::SeedWriter seed_writer_;
};

Status CheckOptions(const LlmProposerOptions& options) {
  std::vector<double> temperatures = options.seed_temperatures;
  temperatures.push_back(options.temperature);
  for (const double temperature : temperatures) {
    if (!std::isfinite(temperature) || temperature < 0 || temperature > 2) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("a temperature of {} is not between 0 and 2", temperature));
    }
  }
  if (options.max_tokens == 0) {
    return Fail(ErrorCode::kInvalidArgument, "max_tokens must be at least 1");
  }
  if (options.orchestration == Orchestration::kReactive &&
      options.feedback != FeedbackMode::kTools) {
    return Fail(ErrorCode::kInvalidArgument,
                "orchestration reactive lets the model choose among the expert tools, which only "
                "feedback tools has");
  }
  return Ok();
}

template <class T, std::size_t N>
Result<T> ParseWord(std::string_view word, std::string_view option,
                    const std::array<std::pair<std::string_view, T>, N>& words) {
  std::vector<std::string_view> known;
  for (const auto& [name, value] : words) {
    if (name == word) {
      return value;
    }
    known.push_back(name);
  }
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("{} \"{}\" is none of {}", option, word, fmt::join(known, ", ")));
}

}  // namespace

Result<FeedbackMode> ParseFeedbackMode(std::string_view word) {
  using enum FeedbackMode;
  return ParseWord<FeedbackMode, 4>(
      word, "feedback",
      {{{"tools", kTools}, {"raw", kRaw}, {"none", kNone}, {"placebo", kPlacebo}}});
}

Result<Orchestration> ParseOrchestration(std::string_view word) {
  using enum Orchestration;
  return ParseWord<Orchestration, 2>(word, "orchestration",
                                     {{{"proactive", kProactive}, {"reactive", kReactive}}});
}

Result<std::unique_ptr<Proposer>> MakeLlmProposer(llm::ChatClient& client,
                                                  LlmProposerOptions options, Workshop* workshop,
                                                  const codesearch::CodeIndex* code) {
  KP_RETURN_IF_ERROR(CheckOptions(options));
  KP_ASSIGN_OR_RETURN(agents::Prompts prompts, agents::Prompts::Load(options.prompts_folder));
  return std::unique_ptr<Proposer>(std::make_unique<LlmProposer>(
      client, std::move(options), std::move(prompts), workshop, code));
}

}  // namespace kernelpro
