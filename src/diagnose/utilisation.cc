// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <string_view>

#include "diagnose/facts.h"
#include "diagnose/roofline.h"
#include "kernelpro/profile.h"
#include "kernelpro/tool.h"
#include "profile/metric_names.h"

namespace kernelpro::diagnose {
namespace {

constexpr double kSubCores = 4;  ///< schedulers of an SM

/// Cycles of the run at the clock that the counters saw.
double ElapsedCycles(const KernelProfile& kernel, const Hardware& hardware) {
  double clock = hardware.clock_hz;
  const auto cycles = kernel.Value(metric::kCyclesElapsed);
  const auto duration = kernel.Value(metric::kDuration);
  if (cycles && duration && *duration > 0 && kernel.time_provenance == Provenance::kMeasured) {
    clock = *cycles / (*duration * 1e-9);
  }
  return RunSeconds(kernel) * clock;
}

std::optional<double> FromPercent(const KernelProfile& kernel, std::string_view name) {
  const auto percent = kernel.Value(name);
  return percent ? std::optional(*percent / 100) : std::nullopt;
}

/// The percentage, or count / capacity.
std::optional<double> UseOf(const KernelProfile& kernel, std::string_view percent,
                            std::string_view count, double capacity) {
  if (const auto known = FromPercent(kernel, percent); known) {
    return known;
  }
  const auto value = kernel.Value(count);
  return value && capacity > 0 ? std::optional(*value / capacity) : std::nullopt;
}

std::optional<double> L2Use(const KernelProfile& kernel, const Hardware& hardware) {
  const auto sectors = FromPercent(kernel, metric::kL2Pct);
  const auto xbar = FromPercent(kernel, metric::kL2XbarPct);
  if (sectors || xbar) {
    return std::max(sectors.value_or(0), xbar.value_or(0));
  }
  const auto load = kernel.Value(metric::kLoadSectors);
  const auto hit = kernel.Value(metric::kLoadHitSectors);
  const auto store = kernel.Value(metric::kStoreSectors);
  const double capacity = hardware.l2_bytes_per_s * RunSeconds(kernel);
  if (!load || !hit || !store || capacity <= 0) {
    return std::nullopt;
  }
  return 32 * (*load - *hit + *store) / capacity;
}

/// From the counters; without any, what the task's compulsory bytes alone need (a lower bound).
std::optional<double> DramUse(const KernelProfile& kernel, const Profile& profile,
                              const Hardware& hardware) {
  if (const auto known = FromPercent(kernel, metric::kDramPct); known) {
    return known;
  }
  const double capacity = hardware.dram_peak_bytes_per_s * RunSeconds(kernel);
  if (kernel.Value(metric::kDramRead) && kernel.Value(metric::kDramWrite) && capacity > 0) {
    return DramBytes(kernel) / capacity;
  }
  if (const auto sol = FromPercent(kernel, metric::kDramThroughputPct); sol) {
    return sol;
  }
  const auto needed = profile.task.find("compulsory_bytes");
  if (needed == profile.task.end() || profile.kernels.size() != 1 || capacity <= 0) {
    return std::nullopt;
  }
  return std::min(1.0, needed->second.value / capacity);
}

std::optional<double> IssueUse(const KernelProfile& kernel, double slots) {
  if (const auto active = kernel.Value(metric::kIssueActive); active) {
    const auto average = kernel.Value(metric::kCyclesActive);
    const auto elapsed = kernel.Value(metric::kCyclesElapsed);
    const bool known = average && elapsed && *elapsed > 0;
    return *active * (known ? std::min(1.0, *average / *elapsed) : 1.0);
  }
  const auto count = kernel.Value(metric::kInstructions);
  return count && slots > 0 ? std::optional(*count / slots) : std::nullopt;
}

}  // namespace

Utilisation UtilisationOf(const KernelProfile& kernel, const Profile& profile,
                          const Hardware& hardware) {
  const double cycles = ElapsedCycles(kernel, hardware) * hardware.sm_count;  // of all SMs
  Utilisation use;
  use.dram = DramUse(kernel, profile, hardware);
  use.l2 = L2Use(kernel, hardware);
  use.l1 = UseOf(kernel, metric::kL1Pct, metric::kL1Wavefronts, cycles);
  use.lsu = UseOf(kernel, metric::kLsuPct, metric::kPipeLsu, cycles);
  use.tensor = FromPercent(kernel, metric::kTensorPct);
  use.fma = UseOf(kernel, metric::kFmaPct, metric::kPipeFma, cycles * hardware.fp32_lanes / 32);
  use.alu = UseOf(kernel, metric::kAluPct, metric::kPipeAlu, cycles * hardware.int_lanes / 32);
  use.fp64 = UseOf(kernel, metric::kFp64Pct, metric::kPipeFp64, cycles * hardware.fp64_lanes / 32);
  use.xu = UseOf(kernel, metric::kXuPct, metric::kPipeXu, cycles * hardware.sfu_lanes / 32);
  use.issue = IssueUse(kernel, cycles * kSubCores);
  use.sm = FromPercent(kernel, metric::kSmThroughputPct);
  use.memory = FromPercent(kernel, metric::kMemoryThroughputPct);
  return use;
}

}  // namespace kernelpro::diagnose
