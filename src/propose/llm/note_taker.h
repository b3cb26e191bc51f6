// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "propose/llm/agent.h"

namespace kernelpro::agents {

/// Turns what became of a parent's newest children into lessons.
class NoteTaker {
 public:
  explicit NoteTaker(const Setting& setting) : setting_(setting) {}

  /// Judged children that no lesson is about yet, newer than all that one is about; at most the
  /// four newest. Empty: nothing new happened.
  [[nodiscard]] static std::vector<NodeBrief> News(const ProposalRequest& request);

  /// At most two lessons. A lesson that contradicts the verdicts (a win of a wrong kernel) makes
  /// the answer unusable. `memory`: DataBlock of lessons or "".
  [[nodiscard]] Result<Attempt<std::vector<Lesson>>> TakeNotes(const Turn& turn,
                                                               const std::string& memory) const;

 private:
  Setting setting_;
};

}  // namespace kernelpro::agents
