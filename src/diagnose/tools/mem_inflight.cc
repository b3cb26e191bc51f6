// SPDX-License-Identifier: Apache-2.0
// SEEN  about 1.0 KB in flight per multiprocessor where 20.9 KB hide the latency
// DO    Issue four independent loads before the first use.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "diagnose/tool_kit.h"
#include "diagnose/tools/registry.h"

namespace kernelpro::diagnose {
namespace {

/// Latency under load is about 1.8 times that of an idle memory system (0.35 -> 0.63 us measured).
constexpr double kLoadedLatency = 1.8;

std::optional<Finding> Examine(const ToolInput& in) {
  const KernelProfile& k = in.kernel;
  const Hardware& hw = in.hardware;
  const double requests = Loads(k).requests;
  const double instructions = Get(k, metric::kInstructions);
  const Shares use = Normalised(in.use, hw);
  const auto stall = StallShare(k, metric::kStallLongScoreboard);
  if (requests <= 0 || hw.sm_count == 0 || hw.dram_latency_s <= 0 || use.dram >= 0.85 ||
      IssueActive(in) > 0.6 || requests < 0.02 * instructions || (stall && *stall < 0.3)) {
    return std::nullopt;
  }
  const double need = hw.dram_bytes_per_s / hw.sm_count * hw.dram_latency_s * kLoadedLatency;
  const double warps = Get(k, metric::kWarpsActivePct) / 100 * hw.warps_per_sm;
  const Access load = Loads(k);
  const double request_bytes = load.sectors / requests * load.bytes_per_sector;
  const double have = warps * request_bytes;  // one request a warp: the pessimistic case
  if (need <= 0 || request_bytes <= 0) {
    return std::nullopt;
  }
  const double ratio = have / need;
  Finding f;
  f.severity = Ramp(1 - ratio, 0.2, 0.8) * (stall ? Ramp(*stall, 0.3, 0.6) : 1.0) *
               Ramp(0.85 - use.dram, 0, 0.2) * Ramp(0.85 - MaxUse(use), 0, 0.3);
  if (f.severity <= 0) {
    return std::nullopt;
  }
  f.bound = std::max(0.0, std::min({1 - ratio, 1 - MaxUse(use), stall.value_or(1.0)}));
  f.confidence = stall ? 0.7 : 0.5;
  const LineMetrics* line =
      WorstLine(k, [](const LineMetrics& l) { return Get(l, metric::kLoadSectors); });
  SetWhere(f, line);
  f.seen = fmt::format(
      "about {} in flight per multiprocessor ({:.0f} warps, one {:.0f}-byte request each) where "
      "{} hide the memory latency; DRAM at {} of what it can deliver.",
      ByteText(have), warps, request_bytes, ByteText(need), Percent(use.dram));
  f.why =
      "Each warp waits for its own load before it asks for the next, so most of the memory "
      "system's pipeline stays empty.";
  f.remedies = {fmt::format("Issue 4 to 8 independent loads at {} before the first use (unroll, "
                            "load the batch, then compute).",
                            Place(line)),
                "Load 16 bytes a lane.",
                "Prefetch the next iteration into registers, or use an asynchronous copy with "
                "three or more stages.",
                "Run more warps where registers and shared memory allow it."};
  f.check = fmt::format("metric {} should rise from {} towards 90 %; correctness risk: low.",
                        metric::kDramPct, Percent(in.use.dram.value_or(0)));
  f.avoid = "Do not unroll a pointer chase: its addresses depend on each other.";
  f.evidence = {{"bytes_in_flight", have}, {"bytes_needed", need}};
  return f;
}

}  // namespace

std::unique_ptr<Tool> MakeMemInflight() {
  return MakeTool({.id = "mem.inflight",
                   .title = "Too few bytes in flight",
                   .classes = {"LATENCY_BOUND", "DRAM_BOUND", "MIXED"},
                   .metrics = {metric::kWarpsActivePct, metric::kLoadRequests, metric::kLoadSectors,
                               metric::kInstructions},
                   .examine = &Examine});
}

}  // namespace kernelpro::diagnose
