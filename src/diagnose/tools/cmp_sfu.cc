// SPDX-License-Identifier: Apache-2.0
// SEEN  the special-function pipe is 96 % busy (want < 50 %)
// DO    Fold constants into exp2f and divide once.
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "diagnose/tool_kit.h"
#include "diagnose/tools/registry.h"

namespace kernelpro::diagnose {
namespace {

/// Expected share of the special functions that can go; at most nearly all of them, with the
/// sequences of other instructions around them.
constexpr double kRemovable = 0.5;
constexpr double kMost = 0.9;
constexpr double kAround = 0.7;

std::optional<Finding> Examine(const ToolInput& in) {
  const Shares use = Normalised(in.use, in.hardware);
  Finding f;
  f.severity = Ramp(use.xu, 0.35, 0.75);
  if (f.severity <= 0) {
    return std::nullopt;
  }
  f.bound = Cut(use, {.fma = kAround, .alu = kAround, .xu = kMost, .issue = kAround});
  f.confidence = 0.6;
  const LineMetrics* line = WorstLine(in.kernel, [](const LineMetrics& l) {
    return Get(l, metric::kSpecialFunctions) + Get(l, metric::kDoubleConversions);
  });
  SetWhere(f, line);
  f.seen = fmt::format(
      "the special-function pipe is {} busy (want < 50 %), the FMA pipe {}; it "
      "runs {:.0f} operations a cycle against {:.0f} multiply-adds.",
      Percent(use.xu), Percent(use.fma), in.hardware.sfu_lanes, in.hardware.fp32_lanes);
  f.why = fmt::format(
      "Exponentials, divisions, square roots and conversions at {} all share this "
      "narrow pipe.",
      Place(line));
  f.remedies = {
      "Use the fast forms: __expf or exp2f with log2(e) folded into a constant, "
      "__fdividef, rsqrtf.",
      "Divide once and multiply by the reciprocal.",
      "Take terms that do not change out of the loop.",
      "Compute a share of the elements with a polynomial on the FMA pipe."};
  f.check = fmt::format(
      "metric {} should move {} -> about {}; correctness risk: accuracy of the "
      "fast forms.",
      metric::kXuPct, Percent(use.xu), Percent(use.xu * (1 - kRemovable)));
  f.avoid = "Do not follow it where the tolerance forbids the approximate forms.";
  f.evidence = {{"xu_use", use.xu}};
  return f;
}

}  // namespace

std::unique_ptr<Tool> MakeCmpSfu() {
  return MakeTool({.id = "cmp.sfu",
                   .title = "Special functions limit",
                   .classes = {"COMPUTE_BOUND", "LATENCY_BOUND", "MIXED", "BALANCED"},
                   .metrics = {"sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_elapsed|"
                               "smsp__inst_executed_pipe_xu.sum"},
                   .examine = &Examine});
}

}  // namespace kernelpro::diagnose
