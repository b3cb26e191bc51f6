// SPDX-License-Identifier: Apache-2.0
// SEEN  94 % of the shared wavefronts are replays (want < 10 %), 16.7-way on average
// DO    Pad the row of the tile by one element.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "diagnose/tool_kit.h"
#include "diagnose/tools/registry.h"

namespace kernelpro::diagnose {
namespace {

std::optional<Finding> Examine(const ToolInput& in) {
  const KernelProfile& k = in.kernel;
  const Wavefronts w = WavefrontsOf(k);
  const Shares use = Normalised(in.use, in.hardware);
  if (w.shared <= 0 || w.shared < 0.05 * w.all) {
    return std::nullopt;
  }
  const double share = std::min(1.0, w.conflicts / w.shared);
  const double stalls = StallShare(k, metric::kStallShortScoreboard).value_or(0) +
                        StallShare(k, metric::kStallMioThrottle).value_or(0);
  Finding f;
  f.severity = Ramp(share, 0.10, 0.60) * std::max(Ramp(use.l1, 0.2, 0.6), Ramp(stalls, 0.1, 0.4));
  if (f.severity <= 0) {
    return std::nullopt;
  }
  const double of_all = std::min(1.0, w.conflicts / w.all);
  f.bound = std::max(Cut(use, {.l1 = of_all}), stalls > 0 ? StallGain(use, stalls) : 0.0);
  f.confidence = 0.9;
  const LineMetrics* line = WorstLine(k, [](const LineMetrics& l) {
    return Get(l, metric::kSharedLoadConflicts) + Get(l, metric::kSharedStoreConflicts);
  });
  SetWhere(f, line);
  const double ways = w.shared / std::max(1.0, w.shared - w.conflicts);
  f.seen = fmt::format(
      "{} of the shared-memory wavefronts are replays (want < 10 %), a {:.1f}-way "
      "conflict on average; the data stage is {} busy.",
      Percent(share), ways, Percent(use.l1));
  f.why = fmt::format(
      "Lanes of a warp hit the same of the 32 banks at {}, because the row pitch "
      "of the tile is a multiple of many banks.",
      Place(line));
  f.remedies = {
      "Pad the row of the shared tile by one element (tile[32][33] for 4-byte elements; "
      "by 16 bytes for vectors).",
      "Exchange the roles of rows and columns in the shared access, so that lanes read "
      "consecutive words.",
      "Swizzle the column index: col ^ (row & 7) for 16-byte vectors."};
  f.check = fmt::format("metrics {} and {} should move {} -> about 0; correctness risk: low.",
                        metric::kSharedLoadConflicts, metric::kSharedStoreConflicts,
                        Quantity(w.conflicts));
  f.avoid = "Do not count the 2 or 4 wavefronts of 64- and 128-bit accesses as conflicts.";
  f.evidence = {{"conflict_share", share}, {"conflict_share_of_l1", of_all}, {"ways", ways}};
  return f;
}

}  // namespace

std::unique_ptr<Tool> MakeSmemBank() {
  return MakeTool(
      {.id = "smem.bank",
       .title = "Shared-memory bank conflicts",
       .classes = {"L1_SMEM_BOUND", "LATENCY_BOUND", "UNDERFILLED", "TAIL", "MIXED", "BALANCED"},
       .metrics = {metric::kSharedLoadConflicts, metric::kSharedStoreConflicts,
                   metric::kSharedLoadWavefronts, metric::kSharedStoreWavefronts},
       .examine = &Examine});
}

}  // namespace kernelpro::diagnose
