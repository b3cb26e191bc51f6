// SPDX-License-Identifier: Apache-2.0
// SEEN  dependent operations fill 90 % of the time, 1.0 warps a scheduler (want >= 8)
// DO    Use four independent accumulators.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "diagnose/tool_kit.h"
#include "diagnose/tools/registry.h"

namespace kernelpro::diagnose {
namespace {

/// Below this many instructions for each global load, memory latency is the chain.
constexpr double kComputePerLoad = 20;

std::optional<Finding> Examine(const ToolInput& in) {
  const KernelProfile& k = in.kernel;
  const auto wait = StallShare(k, metric::kStallWait);
  const double exposed =
      wait ? Ramp(*wait, 0.25, 0.6) : Ramp(Get(k, metric::kModelLatencyPct) / 100, 0.5, 0.9);
  const double issue = IssueActive(in);
  const double loads = Get(k, metric::kLoadRequests) + Get(k, metric::kLocalLoads);
  if (loads * kComputePerLoad > Get(k, metric::kInstructions) ||
      Get(k, metric::kBarriers) > loads) {
    return std::nullopt;
  }
  Finding f;
  f.severity = exposed * Ramp(1 - issue, 0.1, 0.6);
  if (f.severity <= 0) {
    return std::nullopt;
  }
  const Shares use = Normalised(in.use, in.hardware);
  // Four chains instead of one: at most three quarters of the exposed latency go.
  f.bound = std::max(0.0, std::min({0.75, 1 - issue, 1 - MaxUse(use), wait.value_or(1.0)}));
  f.confidence = 0.5;
  const double warps = Get(k, metric::kWarpsActivePct) / 100 * in.hardware.warps_per_sm / 4;
  const LineMetrics* line =
      WorstLine(k, [](const LineMetrics& l) { return Get(l, metric::kInstructions); });
  SetWhere(f, line);
  f.seen = fmt::format(
      "{:.1f} warps a scheduler (want >= 8) and issue in only {} of the cycles; "
      "one global load for {:.0f} instructions, so memory is not what they wait "
      "for.",
      warps, Percent(issue), Get(k, metric::kInstructions) / std::max(1.0, loads));
  f.why = fmt::format(
      "Each operation at {} needs the result of the one before, and the scheduler "
      "has no other warp to run meanwhile.",
      Place(line));
  f.remedies = {"Keep 2 to 4 independent accumulators and combine them at the end.",
                "Unroll, and compute two or more outputs a thread.",
                "Replace a serial reduction by a tree.", "Run more warps."};
  f.check = fmt::format(
      "metric {} should rise from {:.2f}; correctness risk: the order of "
      "floating-point additions.",
      metric::kIssueActive, issue);
  f.avoid = "Do not add accumulators at full occupancy: other warps already fill the gaps.";
  f.evidence = {{"issue", issue}, {"warps_per_scheduler", warps}};
  return f;
}

}  // namespace

std::unique_ptr<Tool> MakeLatIlp() {
  return MakeTool({.id = "lat.ilp",
                   .title = "Dependent chain with little to overlap",
                   .classes = {"LATENCY_BOUND", "MIXED"},
                   .metrics = {"smsp__average_warps_issue_stalled_wait_per_issue_active.ratio|"
                               "model.latency.pct",
                               metric::kInstructions, metric::kWarpsActivePct},
                   .examine = &Examine});
}

}  // namespace kernelpro::diagnose
