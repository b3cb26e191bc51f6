// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "propose/llm/kernel_writer.h"

namespace kernelpro::agents {

/// Makes a wrong kernel right. Sees source, verdict and reason, and never a word about speed.
class Repairer {
 public:
  explicit Repairer(const Setting& setting) : setting_(setting) {}

  /// `memory`: DataBlock of lessons about errors, or "".
  [[nodiscard]] Result<Attempt<WrittenKernel>> Repair(const Turn& turn,
                                                      const std::string& memory) const;

 private:
  Setting setting_;
};

}  // namespace kernelpro::agents
