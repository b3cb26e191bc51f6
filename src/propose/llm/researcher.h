// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "codesearch/code_index.h"
#include "propose/llm/planner.h"

namespace kernelpro::agents {

struct ResearchNote {
  std::string text;            ///< for the coder, at most 120 words
  std::optional<Lesson> fact;  ///< that holds beyond this kernel
};

/// Looks with tools at what a plan rests on, before the coder writes.
class Researcher {
 public:
  Researcher(const Setting& setting, Workshop* workshop, const codesearch::CodeIndex* code)
      : setting_(setting), workshop_(workshop), code_(code) {}

  /// Whether there is anything to look with and a call to do it.
  [[nodiscard]] bool CanWork() const;
  [[nodiscard]] Result<Attempt<ResearchNote>> Investigate(const Turn& turn, const Plan& plan) const;

 private:
  Setting setting_;
  Workshop* workshop_;
  const codesearch::CodeIndex* code_;
};

}  // namespace kernelpro::agents
