// SPDX-License-Identifier: Apache-2.0
// SEEN  100 % of memory instructions move 4 bytes or less a lane (want 16)
// DO    Load and store float4 at k.cu:7.
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
  const double n8 = Get(k, metric::kMemory8b);
  const double n16 = Get(k, metric::kMemory16b);
  const double n32 = Get(k, metric::kMemory32b);
  const double n64 = Get(k, metric::kMemory64b);
  const double all = n8 + n16 + n32 + n64 + Get(k, metric::kMemory128b);
  const Shares use = Normalised(in.use, in.hardware);
  const double global = Loads(k).requests + Stores(k).requests;
  // Only contiguous accesses can be widened, and a full DRAM has nothing to gain.
  // Either the lanes' addresses stand side by side, or each lane reads side by side.
  const double runs = Get(k, "sass.loop.narrow_runs");
  const bool contiguous = (Loads(k).bytes_per_sector >= 24 && (Stores(k).requests < 0.1 * global ||
                                                               Stores(k).bytes_per_sector >= 24)) ||
                          (runs >= 2 && runs >= 0.5 * Get(k, "sass.loop.ldg"));
  if (all <= 0 || global < 0.6 * all || !contiguous || use.dram >= 0.85) {
    return std::nullopt;
  }
  const double narrow = (n8 + n16 + n32) / all;
  const double removable =
      n8 * (1 - 8.0 / 128) + n16 * (1 - 16.0 / 128) + n32 * (1 - 32.0 / 128) + n64 * 0.5;
  const double stalls = StallShare(k, metric::kStallLgThrottle).value_or(0) +
                        StallShare(k, metric::kStallMioThrottle).value_or(0);
  // The fewer bytes an access moves, the longer DRAM idles while warps wait for it.
  const double waiting = StallShare(k, metric::kStallLongScoreboard).value_or(0);
  const double tiny = (n8 + n16 + 0.5 * n32) / all;
  // Where only each lane's own addresses are consecutive, the mapping of lanes comes first.
  constexpr double kOfLanes = 0.6;
  const double certainty = Loads(k).bytes_per_sector >= 24 ? 1 : kOfLanes;
  Finding f;
  f.severity = certainty * Ramp(narrow, 0.3, 0.9) *
               std::max({Ramp(use.lsu, 0.2, 0.5), Ramp(stalls, 0.1, 0.3), Ramp(use.dram, 0.3, 0.6),
                         tiny * Ramp(waiting, 0.4, 0.8)});
  if (f.severity <= 0) {
    return std::nullopt;
  }
  const double instructions = std::max(all, Get(k, metric::kInstructions));
  // Wider accesses also put more bytes in flight: where memory latency is what shows, the time can
  // fall to what the busiest resource needs.
  f.bound = std::max(Cut(use, {.lsu = removable / all, .issue = removable / instructions}),
                     StallGain(use, std::max(waiting, stalls)));
  f.confidence = 0.6;
  const LineMetrics* line = WorstLine(k, [](const LineMetrics& l) {
    return (Get(l, metric::kLoadRequests) + Get(l, metric::kStoreRequests)) *
           (Get(l, metric::kMemory8b) + Get(l, metric::kMemory16b) + Get(l, metric::kMemory32b));
  });
  SetWhere(f, line);
  f.seen = fmt::format(
      "{} of the memory instructions move 4 bytes or less a lane although addresses are "
      "consecutive (want 16 bytes); DRAM delivers {} of what it can (want >= 90 %).",
      Percent(narrow), Percent(use.dram));
  f.why =
      "A 16-byte access needs a quarter of the instructions and keeps four times the bytes in "
      "flight, so the same warps keep DRAM busier.";
  f.remedies = {
      fmt::format("Use float4 (or uint4) loads and stores at {}: four consecutive elements a "
                  "thread through a 16-byte aligned pointer.",
                  Place(line)),
      "Give each thread 4 to 8 consecutive elements and mark inputs const __restrict__.",
      "Read 16-bit data as vectors of 8.",
      "Handle a length that is no multiple of 4 in a separate scalar tail."};
  f.check = fmt::format(
      "metric {} should fall to near 0 and {} rise; correctness risk: alignment "
      "and the tail.",
      metric::kMemory32b, metric::kMemory128b);
  f.avoid =
      "Do not widen where rows do not start on 16 bytes, nor where vectors push registers "
      "over an occupancy step.";
  f.evidence = {{"narrow_share", narrow}, {"removable_share", removable / all}};
  return f;
}

}  // namespace

std::unique_ptr<Tool> MakeMemWidth() {
  return MakeTool({.id = "mem.width",
                   .title = "Narrow memory instructions",
                   .classes = {"DRAM_BOUND", "L1_SMEM_BOUND", "ISSUE_BOUND", "LATENCY_BOUND",
                               "MIXED", "BALANCED"},
                   .metrics = {metric::kMemory32b, metric::kMemory128b},
                   .examine = &Examine});
}

}  // namespace kernelpro::diagnose
