// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace kernelpro {

/// What the counters of one chip are called, from CUPTI's host library. Needs no GPU.
class Catalogue {
 public:
  /// Null with the reason in `why` when this build or machine has no CUPTI, or CUPTI no such chip.
  [[nodiscard]] static std::unique_ptr<Catalogue> Open(std::string chip, std::string* why);

  /// Whether a collector could be told to collect it: the name exists, and so does the sub-metric.
  [[nodiscard]] bool Knows(const std::string& metric) const;

  /// Replay passes that collect all of these, which must be known; -1 when CUPTI cannot say.
  [[nodiscard]] int Passes(const std::vector<std::string>& metrics) const;

 private:
  explicit Catalogue(std::string chip) : chip_(std::move(chip)) {}

  std::string chip_;
};

}  // namespace kernelpro
