// SPDX-License-Identifier: Apache-2.0
#include "propose/llm/researcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "propose/llm/neutralise.h"
#include "propose/llm/research_tools.h"
#include "propose/llm/situation.h"

namespace kernelpro::agents {
namespace {

/// Looking things up is no place for invention. Our choice, unmeasured.
constexpr double kTemperature = 0.2;
constexpr std::size_t kNoteWords = 120;
constexpr std::size_t kFactWords = 50;

ResearchNote ReadNote(std::string_view answer, std::int64_t node) {
  ResearchNote note;
  std::string text;
  for (const std::string_view line : Lines(answer)) {
    const std::string_view trimmed = Trim(line);
    if (!trimmed.starts_with("FACT:")) {
      text += std::string(line) + "\n";
      continue;
    }
    std::string fact = FirstWords(NeutraliseLine(trimmed.substr(5), 320), kFactWords);
    if (!note.fact && !fact.empty()) {
      note.fact = Lesson{.kind = Lesson::Kind::kFact, .text = std::move(fact), .node = node};
    }
  }
  note.text = FirstWords(Neutralise(text, 4000), kNoteWords);
  return note;
}

}  // namespace

bool Researcher::CanWork() const {
  const LlmProposerOptions& options = setting_.options;
  // The kernel's own lines alone, which the coder sees anyway, are not worth a question.
  const bool something =
      code_ != nullptr ||
      (options.feedback == FeedbackMode::kTools &&
       (workshop_ != nullptr || options.orchestration == Orchestration::kProactive));
  return options.research && options.research_calls > 0 && something;
}

Result<Attempt<ResearchNote>> Researcher::Investigate(const Turn& turn, const Plan& plan) const {
  ResearchState state;
  Toolbox toolbox;
  toolbox.most_calls = setting_.options.research_calls;
  toolbox.tools = ResearchTools(setting_, turn, workshop_, code_, state);
  llm::ChatRequest question =
      MakeRequest(setting_, turn, "researcher",
                  setting_.prompts.Render("researcher.md",
                                          {{"technique", plan.technique},
                                           {"plan", DataBlock("plan", plan.plan, kReasonLimit)},
                                           {"source", SourceBlock(turn.request)},
                                           {"calls", std::to_string(toolbox.most_calls)}}),
                  kTemperature);
  KP_ASSIGN_OR_RETURN(const llm::ChatResponse response,
                      AskWithTools(setting_, turn, std::move(question), toolbox));
  if (std::string why = WhyUnusable(response); !why.empty()) {
    return Attempt<ResearchNote>{.value = std::nullopt, .why = std::move(why)};
  }
  if (!response.calls.empty()) {
    return Attempt<ResearchNote>{.value = std::nullopt,
                                 .why = "it asked for tools to the end and wrote no note"};
  }
  return Attempt<ResearchNote>{.value = ReadNote(response.text, turn.request.node.node), .why = {}};
}

}  // namespace kernelpro::agents
