// SPDX-License-Identifier: Apache-2.0
#include "propose/llm/repairer.h"

#include "propose/llm/neutralise.h"
#include "propose/llm/situation.h"

namespace kernelpro::agents {
namespace {

/// A repair has one right answer more often than a rewrite has. Our choice, unmeasured.
constexpr double kTemperature = 0.2;

}  // namespace

Result<Attempt<WrittenKernel>> Repairer::Repair(const Turn& turn, const std::string& memory) const {
  const NodeBrief& node = turn.request.node;
  const PromptValues values = {
      {"verdict", NeutraliseLine(node.verdict, 40)},
      {"reason", node.verdict_reason.empty()
                     ? std::string()
                     : DataBlock("reason", node.verdict_reason, kReasonLimit)},
      {"tried", RepairsBlock(turn.request)},
      {"memory", memory},
      {"source", SourceBlock(turn.request)}};
  return WriteKernel(setting_, turn,
                     MakeRequest(setting_, turn, "repairer",
                                 setting_.prompts.Render("repairer.md", values), kTemperature));
}

}  // namespace kernelpro::agents
