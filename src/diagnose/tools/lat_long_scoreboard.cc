// SPDX-License-Identifier: Apache-2.0
// SEEN  warps wait 62 % of their time for global memory (want < 30 %)
// DO    Move the load one iteration ahead of its use.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "diagnose/tool_kit.h"
#include "diagnose/tools/registry.h"

namespace kernelpro::diagnose {
namespace {

std::optional<Finding> Examine(const ToolInput& in) {
  const auto stall = StallShare(in.kernel, metric::kStallLongScoreboard);
  const Shares use = Normalised(in.use, in.hardware);
  if (!stall || IssueActive(in) >= 0.8 || use.dram > 0.75) {
    return std::nullopt;
  }
  Finding f;
  f.severity = Ramp(*stall, 0.3, 0.7);
  if (f.severity <= 0) {
    return std::nullopt;
  }
  f.bound = std::min(StallGain(use, *stall), 1 - use.dram);
  f.confidence = 0.6;
  f.seen = fmt::format(
      "warps wait {} of their time for global or local memory (want < 30 %); {} "
      "of the sectors hit L1; DRAM at {} of what it can deliver.",
      Percent(*stall), Percent(Get(in.kernel, metric::kL1HitPct) / 100), Percent(use.dram));
  f.seen += RootCause(in.kernel, "long_scoreboard", f);
  f.why =
      "A value is used soon after its load, and too few other instructions or warps fill the "
      "hundreds of cycles between.";
  f.remedies = {
      "Load one iteration ahead: fetch the next element into a register before the "
      "current one is used.",
      "Issue several independent loads as a batch.",
      "Improve locality: coalesce, or tile in shared memory.",
      "Copy asynchronously into shared memory with several stages."};
  f.check = fmt::format("metric {} should fall; correctness risk: the last iteration.",
                        metric::kStallLongScoreboard);
  f.avoid = "Do not follow it where the wait is at a flag that another block sets.";
  f.evidence = {{"stall_share", *stall}};
  return f;
}

}  // namespace

std::unique_ptr<Tool> MakeLatLongScoreboard() {
  return MakeTool({.id = "lat.long_scoreboard",
                   .title = "Waiting for global memory",
                   .classes = {"LATENCY_BOUND", "DRAM_BOUND", "MIXED"},
                   .metrics = {metric::kStallLongScoreboard, metric::kWarpLatency},
                   .examine = &Examine});
}

}  // namespace kernelpro::diagnose
