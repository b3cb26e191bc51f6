// SPDX-License-Identifier: Apache-2.0
// SEEN  11.4 of 32 lanes work on average (want >= 24)
// DO    Re-map the work so that whole warps take one path at k.cu:21.
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
  const double instructions = Get(k, metric::kInstructions);
  // The ratio where it was collected (in emulation it is of PTX, like its numerator).
  const double active =
      k.Value(metric::kLanesActive)
          .value_or(instructions > 0 ? Get(k, metric::kThreadInstructions) / instructions : 32);
  const double on = k.Value(metric::kLanesOn).value_or(active);
  const double lanes = std::clamp(std::min(active, on), 0.0, 32.0);
  // A block that is no multiple of 32 wastes lanes without any branch: another tool's finding.
  const double threads = BlockSize(k);
  const double warp_lanes = threads / std::max(1.0, std::ceil(threads / 32));
  const double waste = 1 - lanes / std::min(32.0, warp_lanes);
  Finding f;
  f.severity = Ramp(waste, 0.15, 0.6);
  // Full warps whose instructions are switched off lane by lane split nowhere: that costs issue
  // slots only, as in a tree reduction.
  constexpr double kFull = 28;
  if (active >= kFull && Get(k, metric::kBranchesDivergent) <= 0) {
    f.severity *= 0.4;
  }
  if (f.severity <= 0) {
    return std::nullopt;
  }
  const Shares use = Normalised(in.use, in.hardware);
  f.bound = waste * std::max({IssueActive(in), use.fma, use.alu});
  f.confidence = 0.7;
  const LineMetrics* line =
      WorstLine(k, [](const LineMetrics& l) { return Get(l, metric::kBranchesDivergent); });
  SetWhere(f, line);
  f.seen = fmt::format(
      "{:.1f} of 32 lanes active on average, {:.1f} after predication (want >= "
      "24)",
      active, on);
  const double splits = Get(k, metric::kBranchesDivergent);
  f.seen += splits > 0 ? fmt::format("; warps split {} times.", Quantity(splits)) : ".";
  f.why = fmt::format(
      "Lanes of a warp take different paths at {}, and the warp runs the paths one "
      "after the other.",
      Place(line));
  f.remedies = {
      "Re-map the work so that whole warps take one path (sort or compact by case, or "
      "branch on the warp index).",
      "Move boundary checks out of the loop, to the blocks at the edge.",
      "Replace short branches by selects.",
      "Give rows of varying length to a warp each, not to a thread."};
  f.check = fmt::format(
      "metric {} should move {:.1f} -> about 32; correctness risk: the new "
      "mapping.",
      metric::kLanesOn, on);
  f.avoid = "Do not chase a tree reduction's modulo test for this: its warps are almost full.";
  f.evidence = {{"lanes_active", active}, {"lanes_on", on}, {"divergent_branches", splits}};
  return f;
}

}  // namespace

std::unique_ptr<Tool> MakeCmpDivergence() {
  return MakeTool({.id = "cmp.divergence",
                   .title = "Divergent branches",
                   .classes = {},
                   .metrics = {"smsp__thread_inst_executed_per_inst_executed.ratio|"
                               "smsp__thread_inst_executed.sum",
                               metric::kInstructions},
                   .examine = &Examine});
}

}  // namespace kernelpro::diagnose
