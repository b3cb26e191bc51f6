// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kernelpro/profile.h"
#include "kernelpro/tool.h"

/// Figures that several tools need, derived from the metrics of one kernel.
namespace kernelpro::diagnose {

/// 0 when the metric is absent: for metrics that the tool has asked for, or whose absence means
/// none.
[[nodiscard]] double Get(const KernelProfile& kernel, std::string_view metric);
[[nodiscard]] double Get(const LineMetrics& line, std::string_view metric);

/// Global loads or stores as L1 sees them.
struct Access {
  double requests = 0, sectors = 0;
  double bytes_per_sector = 32;  ///< used, of 32

  /// Sectors that a request would touch if its bytes stood together; at least one: lanes that all
  /// read the same word waste nothing.
  [[nodiscard]] double IdealSectorsPerRequest() const;
  /// Share of the sectors that are touched only because the lanes' addresses are apart.
  [[nodiscard]] double Waste() const;
};

[[nodiscard]] Access Loads(const KernelProfile& kernel);
[[nodiscard]] Access Stores(const KernelProfile& kernel);

/// Shares of the work on L1, L2 and DRAM that exist only because lanes of a warp touch scattered
/// addresses (loads and stores together).
struct ScatterShares {
  double l1 = 0, l2 = 0, dram = 0;
};

[[nodiscard]] ScatterShares Scatter(const ToolInput& input);

/// L1 sectors of local memory, of the hardware or as the instrumented pass counts them.
[[nodiscard]] double LocalSectors(const KernelProfile& kernel);

/// Wavefronts of the L1 data stage for shared memory, and for everything.
struct Wavefronts {
  double shared = 0, conflicts = 0, all = 0;
};

[[nodiscard]] Wavefronts WavefrontsOf(const KernelProfile& kernel);

/// Thread-level instructions that were not predicated off, of the counters or the instrumented
/// pass.
[[nodiscard]] double ThreadInstructions(const KernelProfile& kernel);
[[nodiscard]] double DramBytes(const KernelProfile& kernel);
/// Waves of blocks: from the limits of occupancy where they are known (Nsight Compute rounds 1.004
/// to 1), else as collected; nothing when neither is.
[[nodiscard]] std::optional<double> Waves(const KernelProfile& kernel, const Hardware& hardware);
[[nodiscard]] double GridSize(const KernelProfile& kernel);
[[nodiscard]] double BlockSize(const KernelProfile& kernel);
/// A shape of ones is that of a source without launches (a compiler's log, a listing), unless its
/// reader counted the one block or the one thread.
[[nodiscard]] bool HasShape(const KernelProfile& kernel);
/// Without the fixed launch cost of emulated kernels.
[[nodiscard]] double RunSeconds(const KernelProfile& kernel);
/// A figure of the task that concerns this kernel alone: nothing when other kernels share the
/// call's work.
[[nodiscard]] std::optional<double> TaskFigure(const ToolInput& input, const std::string& name);
/// Share of the warp latency that a stall reason takes, 0..1; nothing without stall metrics.
[[nodiscard]] std::optional<double> StallShare(const KernelProfile& kernel,
                                               std::string_view metric);
/// The same by the reason's name ("long_scoreboard"), from the counters where they were collected,
/// else from sampling.
[[nodiscard]] std::optional<double> StallShareOf(const KernelProfile& kernel,
                                                 std::string_view reason);
/// Time that the float multiply-adds alone need at full rate, as a share of the kernel's time;
/// nothing when they were not counted (the FMA pipe also computes indices).
[[nodiscard]] std::optional<double> MultiplyAddShare(const ToolInput& input);
/// The most that a repair can gain when it removes neither floating-point work nor DRAM bytes, but
/// for those that only scattered or local accesses cause: 1 - the largest share that they need. For
/// findings whose cure does change these (other precision, other traffic, other grid) it says
/// nothing: 0.
[[nodiscard]] double Ceiling(std::string_view id, const ToolInput& input);
/// Issue slots used, 0..1.
[[nodiscard]] double IssueActive(const ToolInput& input);
/// Membership of a class, its sub-kind ("LATENCY_BOUND(memory)") included; 0 when absent.
[[nodiscard]] double Membership(const std::vector<ClassMembership>& classes, std::string_view id);

/// The line with the largest positive score; null when there is none.
template <class Score>
const LineMetrics* WorstLine(const KernelProfile& kernel, const Score& score) {
  const LineMetrics* worst = nullptr;
  double most = 0;
  for (const LineMetrics& line : kernel.lines) {
    if (const double value = score(line); value > most) {
      most = value;
      worst = &line;
    }
  }
  return worst;
}

/// The sampled instruction with most samples of a stall reason; null without sampling.
[[nodiscard]] const HotSpot* WorstSpot(const KernelProfile& kernel, std::string_view reason);

/// " The wait is at `FFMA ...` (k.cu:12) for `LDG ...` (k.cu:10), 5 instructions before.", and the
/// producer's place for the finding; empty without sampling or without a known producer.
[[nodiscard]] std::string RootCause(const KernelProfile& kernel, std::string_view reason,
                                    Finding& finding);

void SetWhere(Finding& finding, const LineMetrics* line);

/// "k.cu:12" or "this kernel".
[[nodiscard]] std::string Place(const LineMetrics* line);

/// "43 %", "1.2 million", "3.4 MB", "12.5 us".
[[nodiscard]] std::string Percent(double fraction);
[[nodiscard]] std::string Quantity(double count);
[[nodiscard]] std::string ByteText(double bytes);

}  // namespace kernelpro::diagnose
