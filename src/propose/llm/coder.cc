// SPDX-License-Identifier: Apache-2.0
#include "propose/llm/coder.h"

#include "propose/llm/neutralise.h"
#include "propose/llm/performance_text.h"
#include "propose/llm/situation.h"

namespace kernelpro::agents {

Result<Attempt<WrittenKernel>> Coder::Write(const Turn& turn, const Plan& plan,
                                            const std::string& note,
                                            const std::string& memory) const {
  std::string finding;
  if (!plan.finding.empty()) {
    KP_ASSIGN_OR_RETURN(const std::string text, FindingText(turn.request.diagnosis, plan.finding));
    finding = DataBlock("finding", text, kReasonLimit);
  }
  // Plan and note were written by models that read data: they are passed on as data.
  const PromptValues values = {
      {"times", TimesText(turn.request)},
      {"technique", plan.technique},
      {"plan", DataBlock("plan", plan.plan, kReasonLimit)},
      {"finding", finding},
      {"note", note.empty() ? note : DataBlock("note", note, kReasonLimit)},
      {"memory", memory},
      {"source", SourceBlock(turn.request)}};
  return WriteKernel(
      setting_, turn,
      MakeRequest(setting_, turn, "coder", setting_.prompts.Render("coder.md", values),
                  setting_.options.temperature));
}

}  // namespace kernelpro::agents
