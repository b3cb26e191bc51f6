// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "propose/llm/kernel_writer.h"

namespace kernelpro::agents {

/// Writes kernels from the task alone: the first children of the root.
class SeedWriter {
 public:
  explicit SeedWriter(const Setting& setting) : setting_(setting) {}

  /// Whether the next child is one of these.
  [[nodiscard]] bool WantsOne(const ProposalRequest& request) const;
  /// "seed_3(temperature=0.6)"; "seed_3" for a model that takes no temperature.
  [[nodiscard]] std::string Action(const ProposalRequest& request) const;
  [[nodiscard]] Result<Attempt<WrittenKernel>> Write(const Turn& turn) const;

 private:
  [[nodiscard]] std::size_t Attempts() const;
  /// Attempts made before this one, those included that gave no new kernel.
  [[nodiscard]] static std::size_t Made(const ProposalRequest& request);
  [[nodiscard]] double Temperature(const ProposalRequest& request) const;

  Setting setting_;
};

}  // namespace kernelpro::agents
