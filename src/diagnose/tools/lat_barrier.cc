// SPDX-License-Identifier: Apache-2.0
// SEEN  9.0 barriers for each element that a thread loads (want < 0.2)
// DO    Reduce with __shfl_down_sync within the warp, then once over the warps.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "diagnose/tool_kit.h"
#include "diagnose/tools/registry.h"

namespace kernelpro::diagnose {
namespace {

/// What a kernel does between two barriers, from counts; stalls say it directly where sampled.
struct BarrierUse {
  double count = 0;               ///< warp-level
  double per_element = 0;         ///< barriers for each 4-byte element that a thread loads
  double shared_per_barrier = 0;  ///< warp-level shared accesses for each barrier of a warp
};

BarrierUse UseOf(const KernelProfile& k) {
  BarrierUse b;
  b.count = Get(k, metric::kBarriers);
  const double elements = Get(k, metric::kLoadBytes) / (4 * 32);
  if (b.count > 0 && elements > 0) {
    b.per_element = b.count / elements;
    b.shared_per_barrier = (Get(k, metric::kSharedLoads) + Get(k, metric::kSharedStores)) / b.count;
  }
  return b;
}

std::optional<Finding> Examine(const ToolInput& in) {
  const KernelProfile& k = in.kernel;
  const auto stall = StallShare(k, metric::kStallBarrier);
  const BarrierUse b = UseOf(k);
  const Shares use = Normalised(in.use, in.hardware);
  Finding f;
  if (stall && IssueActive(in) < 0.8) {
    f.severity = Ramp(*stall, 0.15, 0.45);
    // The cure (an exchange by shuffles) also removes shared-memory work, so the waiting alone is
    // no bound where that is what keeps the multiprocessor busy.
    f.bound =
        std::max(StallGain(use, *stall), std::max(use.l1, use.lsu) > 0.4 ? RewriteFloor(use) : 0.0);
    f.confidence = 0.8;
  } else if (!stall) {
    // A tree over shared memory: many barriers an element, hardly an access between them.
    f.severity = Ramp(b.per_element, 0.2, 1.0) * (1 - Ramp(b.shared_per_barrier, 4, 8));
    f.bound = std::max(0.0, RewriteFloor(use));
    f.confidence = 0.75;
  }
  if (f.severity <= 0) {
    return std::nullopt;
  }
  const LineMetrics* line =
      WorstLine(k, [](const LineMetrics& l) { return Get(l, metric::kBarriers); });
  SetWhere(f, line);
  const double warps = std::max(1.0, BlockSize(k) / 32);
  if (stall) {
    f.seen = fmt::format(
        "warps wait {} of their time at barriers (want < 15 %), {:.0f} warps a "
        "block.",
        Percent(*stall), warps);
  } else {
    f.seen = fmt::format(
        "{:.1f} barriers for each element that a thread loads (want < 0.2); only "
        "{:.1f} shared-memory accesses of a warp between two barriers (want >= "
        "8); {:.0f} warps of a block wait for each other.",
        b.per_element, b.shared_per_barrier, warps);
  }
  f.why = fmt::format(
      "All warps of a block stop at {} for a step that keeps ever fewer of them "
      "busy.",
      Place(line));
  f.remedies = {
      "Reduce inside each warp with __shfl_down_sync (no barrier), write one value per warp to "
      "shared memory, pass a single __syncthreads, and let the first warp reduce those values.",
      "Let every thread first add many elements in registers with a grid-stride loop, so that the "
      "exchange happens once per block and not once per element.",
      "Drop barriers that protect nothing; double buffering needs one a step, not two.",
      "Use smaller blocks, several on a multiprocessor."};
  f.check = stall ? fmt::format(
                        "metric {} should fall by more than half; correctness risk: "
                        "exchange between warps.",
                        metric::kStallBarrier)
                  : fmt::format(
                        "metric {} should move {} -> under {}; correctness risk: exchange "
                        "between warps, order of additions.",
                        metric::kBarriers, Quantity(b.count), Quantity(b.count / 4));
  f.avoid = "Do not merely replace the modulo test or reorder the tree: the barriers stay.";
  f.evidence = {{"barriers", b.count},
                {"barriers_per_element", b.per_element},
                {"shared_per_barrier", b.shared_per_barrier},
                {"stall_share", stall.value_or(0)}};
  return f;
}

}  // namespace

std::unique_ptr<Tool> MakeLatBarrier() {
  return MakeTool({.id = "lat.barrier",
                   .title = "Waiting at block barriers",
                   .classes = {"LATENCY_BOUND", "L1_SMEM_BOUND", "ISSUE_BOUND", "COMPUTE_BOUND",
                               "UNDERFILLED", "TAIL", "MIXED", "BALANCED"},
                   .metrics = {"smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio|"
                               "ptx.barriers"},
                   .examine = &Examine});
}

}  // namespace kernelpro::diagnose
