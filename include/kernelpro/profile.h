// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpro {

/// How a figure was obtained. No figure leaves a module without it.
enum class Provenance : std::uint8_t {
  kMeasured,  ///< hardware counter or clock
  kCounted,   ///< exact, from emulation or disassembly
  kModelled,  ///< estimate of the time model
};

[[nodiscard]] std::string_view Name(Provenance provenance);

struct Metric {
  double value = 0;
  std::string unit;  ///< "sector", "byte", "us", "%", "inst", "" for ratios
  Provenance provenance = Provenance::kCounted;
};

/// Counters of one source line (summed over its instructions).
struct LineMetrics {
  std::string file;
  std::uint32_t line = 0;
  std::map<std::string, Metric> metrics;
};

struct KernelProfile {
  std::string name;  ///< demangled, without parameters
  std::string mangled;
  std::uint32_t grid[3] = {1, 1, 1};
  std::uint32_t block[3] = {1, 1, 1};
  double time_us = 0;
  Provenance time_provenance = Provenance::kModelled;
  double time_share = 1;                  ///< of the whole call
  std::map<std::string, Metric> metrics;  ///< by Nsight Compute name
  std::vector<LineMetrics> lines;         ///< by file and line
  std::map<std::string, std::uint64_t>
      opcodes;  ///< executed warp instructions by opcode (PTX or SASS)
  /// Asked for and not collected. A missing metric is absent from `metrics`, never zero.
  std::vector<std::string> missing;

  /// Value of a metric; nothing when it was not collected.
  [[nodiscard]] std::optional<double> Value(std::string_view metric) const;
};

struct Profile {
  std::string device;  ///< "emulator:h200", or the GPU named in a file
  std::string source;  ///< "emulation", "ncu", or the file that was read
  std::vector<KernelProfile> kernels;
  std::map<std::string, Metric>
      task;  ///< compulsory bytes, needed flops, floor; empty without a task
};

}  // namespace kernelpro
