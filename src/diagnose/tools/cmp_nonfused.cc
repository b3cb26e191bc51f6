// SPDX-License-Identifier: Apache-2.0
// SEEN  48 % of the float operations are separate multiplications and additions (want < 10 %)
// DO    Use fmaf, or build without --fmad=false.
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
  const double adds = Get(k, metric::kFadd);
  const double muls = Get(k, metric::kFmul);
  const double all = adds + muls + Get(k, metric::kFfma);
  const Shares use = Normalised(in.use, in.hardware);
  if (all <= 0) {
    return std::nullopt;
  }
  // At most every multiplication joins an addition; which do, only the source can tell.
  const double pairs = std::min(adds, muls) / all;
  Finding f;
  f.severity = Ramp(pairs, 0.05, 0.35) * Ramp(use.fma, 0.3, 0.7);
  if (f.severity <= 0) {
    return std::nullopt;
  }
  f.bound = Cut(use, {.fma = pairs, .issue = pairs * all / std::max(all, ThreadInstructions(k))});
  f.confidence = 0.4;
  const LineMetrics* line = WorstLine(k, [](const LineMetrics& l) {
    return std::min(Get(l, metric::kFadd), Get(l, metric::kFmul));
  });
  SetWhere(f, line);
  f.seen = fmt::format(
      "{} additions and {} multiplications stand beside {} fused multiply-adds "
      "(want < 10 % unfused); the FMA pipe is {} busy.",
      Quantity(adds), Quantity(muls), Quantity(Get(k, metric::kFfma)), Percent(use.fma));
  f.why = fmt::format(
      "A multiplication and the addition of its result at {} take two slots of the "
      "pipe where one would do.",
      Place(line));
  f.remedies = {"Build without --fmad=false, and replace __fmul_rn and __fadd_rn pairs by fmaf.",
                "Reassociate polynomials (Horner's scheme).",
                "Fold a scale into weights or constants."};
  f.check = fmt::format("metric {} should rise and {} fall; correctness risk: one rounding less.",
                        metric::kFfma, metric::kFmul);
  f.avoid = "Do not follow it where results must be equal to the bit.";
  f.evidence = {{"fusible_share", pairs}};
  return f;
}

}  // namespace

std::unique_ptr<Tool> MakeCmpNonfused() {
  return MakeTool({.id = "cmp.nonfused",
                   .title = "Separate multiply and add",
                   .classes = {"COMPUTE_BOUND", "ISSUE_BOUND", "BALANCED"},
                   .metrics = {metric::kFadd, metric::kFmul, metric::kFfma},
                   .examine = &Examine});
}

}  // namespace kernelpro::diagnose
