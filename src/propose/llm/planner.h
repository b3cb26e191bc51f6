// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "propose/llm/agent.h"

namespace kernelpro::agents {

struct Plan {
  std::string technique;     ///< snake_case: the Proposal's action
  std::string finding;       ///< id, or ""
  std::string plan;          ///< at most 120 words
  std::string why;           ///< at most 40 words
  double expected_gain = 1;  ///< times as fast, by the model's own word; 1..100
  std::string differs;       ///< from a failed attempt of the same kind; often ""
};

/// Chooses one technique from what is known of a right parent.
class Planner {
 public:
  explicit Planner(const Setting& setting) : setting_(setting) {}

  /// `memory`: DataBlock of lessons or "".
  [[nodiscard]] Result<Attempt<Plan>> MakePlan(const Turn& turn, const std::string& memory) const;

 private:
  Setting setting_;
};

}  // namespace kernelpro::agents
