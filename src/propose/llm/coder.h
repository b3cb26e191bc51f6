// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "propose/llm/kernel_writer.h"
#include "propose/llm/planner.h"

namespace kernelpro::agents {

/// Writes the kernel that a plan asks for. Sees the parent, the plan and the finding behind it, and
/// no other performance figures.
class Coder {
 public:
  explicit Coder(const Setting& setting) : setting_(setting) {}

  /// `note`: what the researcher found, or ""; `memory`: DataBlock of lessons, or "".
  [[nodiscard]] Result<Attempt<WrittenKernel>> Write(const Turn& turn, const Plan& plan,
                                                     const std::string& note,
                                                     const std::string& memory) const;

 private:
  Setting setting_;
};

}  // namespace kernelpro::agents
