// SPDX-License-Identifier: Apache-2.0
#include "diagnose/bounds.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

#include "kernelpro/tool.h"

namespace kernelpro::diagnose {
namespace {

constexpr double kTensorSustained = 0.80;
constexpr double kDramSustained = 0.90;  ///< when the achievable bandwidth is unknown
constexpr std::size_t kResources = 10;

std::array<double, kResources> AsArray(const Shares& s) {
  return {s.dram, s.l2, s.l1, s.lsu, s.tensor, s.fma, s.alu, s.fp64, s.xu, s.issue};
}

double Known(const std::optional<double>& value) {
  return std::clamp(value.value_or(0), 0.0, 1.0);
}

}  // namespace

double Ramp(double x, double a, double b) {
  return std::clamp((x - a) / (b - a), 0.0, 1.0);
}

Shares Normalised(const Utilisation& use, const Hardware& hardware) {
  double sustained = kDramSustained;
  if (hardware.dram_bytes_per_s > 0 && hardware.dram_peak_bytes_per_s > 0) {
    sustained = hardware.dram_bytes_per_s / hardware.dram_peak_bytes_per_s;
  }
  return {.dram = std::clamp(use.dram.value_or(0) / sustained, 0.0, 1.0),
          .l2 = Known(use.l2),
          .l1 = Known(use.l1),
          .lsu = Known(use.lsu),
          .tensor = std::clamp(use.tensor.value_or(0) / kTensorSustained, 0.0, 1.0),
          .fma = Known(use.fma),
          .alu = Known(use.alu),
          .fp64 = Known(use.fp64),
          .xu = Known(use.xu),
          .issue = Known(use.issue)};
}

double MaxUse(const Shares& use) {
  const auto all = AsArray(use);
  return *std::max_element(all.begin(), all.end() - 1);
}

double Cut(const Shares& use, const Shares& removed) {
  const auto u = AsArray(use);
  const auto w = AsArray(removed);
  double left = 0;
  for (std::size_t q = 0; q < kResources; ++q) {
    left = std::max(left, (1 - w[q]) * u[q]);
  }
  return std::max(0.0, std::min(*std::ranges::max_element(w), 1 - left));
}

double RewriteFloor(const Shares& use) {
  return 1 - std::max({use.dram, use.l2, use.tensor, use.fma, use.fp64, use.xu});
}

double StallGain(const Shares& use, double share) {
  return std::max(0.0, std::min({share, 1 - use.issue, 1 - MaxUse(use)}));
}

double OccupancyGain(const Shares& use, double now, double then) {
  if (then <= now || then <= 0) {
    return 0;
  }
  return std::max(0.0, std::min({1 - now / then, 1 - use.issue, 1 - MaxUse(use)}));
}

}  // namespace kernelpro::diagnose
