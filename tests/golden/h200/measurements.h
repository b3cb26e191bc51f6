// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "emulator/simt/report.h"

/// Reading of tests/data/h200: 51 launches, their times and Nsight Compute metrics on a real H200.
namespace kernelpro::golden {

struct Argument {
  enum class Kind : std::uint8_t { kBufferFloats, kInt32, kFloat, kDouble };
  Kind kind = Kind::kInt32;
  double value = 0;  ///< elements of 4 bytes for a buffer
};

struct Variant {
  std::string name, kernel;
  simt::Dim3 block, grid;
  std::vector<Argument> arguments;
  double measured_us = 0;  ///< median of 20 runs, L2 flushed
  std::map<std::string, double> ncu;

  /// 0 when the metric was not collected.
  [[nodiscard]] double Metric(const std::string& name) const;
};

[[nodiscard]] Result<std::vector<Variant>> ReadMeasurements(const std::filesystem::path& folder);

}  // namespace kernelpro::golden
