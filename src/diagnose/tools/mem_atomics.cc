// SPDX-License-Identifier: Apache-2.0
// SEEN  16.8 million global atomics, 100 % of them on one 32-byte sector
// DO    Reduce in registers, then by shuffles, and issue one atomic per block.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>

#include "diagnose/tool_kit.h"
#include "diagnose/tools/registry.h"

namespace kernelpro::diagnose {
namespace {

/// How much of the warps' time goes to memory in any form; 0 without stall counters, because then
/// nothing says that it is waiting.
double Waiting(const KernelProfile& k) {
  double share = 0;
  for (const std::string_view reason :
       {"long_scoreboard", "lg_throttle", "drain", "short_scoreboard", "membar"}) {
    share += StallShareOf(k, reason).value_or(0);
  }
  return Ramp(share, 0.4, 0.8);
}

std::optional<Finding> Examine(const ToolInput& in) {
  const KernelProfile& k = in.kernel;
  const double busiest = Get(k, metric::kAtomicInputMaxPct) / 100;
  const double requests = Get(k, metric::kAtomRequests) + Get(k, metric::kRedRequests);
  const double average = Get(k, metric::kAtomicInputAvgPct) / 100;
  const double skew = average > 0 ? busiest / average : 1;
  const Shares use = Normalised(in.use, in.hardware);
  // A single hot address keeps its unit no more than a third busy on an H200, but its unit alone.
  const double hot = Ramp(skew, 4, 30) * Ramp(busiest, 0.1, 0.3);
  // Atomics are a visible part of the memory instructions, and nothing else explains the time.
  const double share = requests / std::max(1.0, requests + Loads(k).requests + Stores(k).requests);
  const double serial = Ramp(share, 0.05, 0.25) * Ramp(0.6 - MaxUse(use), 0, 0.3) * Waiting(k);
  Finding f;
  f.severity = std::max({Ramp(busiest, 0.3, 0.8), hot, serial});
  if (f.severity <= 0 || requests <= 0) {
    return std::nullopt;
  }
  // Without the serial part the next resource limits.
  f.bound = 1 - MaxUse(use);
  f.confidence = 0.85;
  const LineMetrics* line = WorstLine(k, [](const LineMetrics& l) {
    return Get(l, metric::kAtomRequests) + Get(l, metric::kRedRequests);
  });
  SetWhere(f, line);
  const double operations = std::max(requests, Get(k, metric::kAtomicOperations));
  f.seen = fmt::format(
      "{} global atomic operations, {} of the global memory instructions (want < 5 %); the busiest "
      "L2 atomic unit works {} of the time, {:.1f} times the average",
      Quantity(operations), Percent(share), Percent(busiest), skew);
  const double hottest = Get(k, metric::kAtomicHottest);
  f.seen += hottest > 0
                ? fmt::format("; {} of them hit one 32-byte sector.", Percent(hottest / operations))
                : std::string(".");
  f.why = fmt::format(
      "Atomics on one address run one after the other in a single L2 slice; {} "
      "issues most of them.",
      Place(line));
  f.remedies = {
      "Reduce in registers first, then over the warp with __shfl_down_sync or "
      "__reduce_add_sync, then over the block in shared memory, and issue one atomic "
      "per block.",
      "Keep a private histogram per block in shared memory and merge it once.",
      "Do not use the returned value, so that the compiler emits a reduction.",
      "Write partial results and add them in a second, small pass."};
  f.check = fmt::format(
      "metric {} should fall by the block size ({:.0f}x); correctness risk: "
      "the order of floating-point additions changes.",
      requests == Get(k, metric::kAtomRequests) ? metric::kAtomRequests : metric::kRedRequests,
      BlockSize(k));
  f.avoid = "Do not spread the counters without reducing first: the count of atomics is the cost.";
  f.evidence = {{"operations", operations}, {"busiest_unit", busiest}, {"hottest", hottest}};
  return f;
}

}  // namespace

std::unique_ptr<Tool> MakeMemAtomics() {
  return MakeTool({.id = "mem.atomics",
                   .title = "Atomic contention",
                   .classes = {"L2_BOUND", "LATENCY_BOUND", "UNDERFILLED", "TAIL", "MIXED"},
                   .metrics = {"l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum",
                               "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum"},
                   .examine = &Examine});
}

}  // namespace kernelpro::diagnose
