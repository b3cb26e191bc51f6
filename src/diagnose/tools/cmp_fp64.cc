// SPDX-License-Identifier: Apache-2.0
// SEEN  31 % of the floating-point operations are in double precision (want 0: tensors are float)
// DO    Write 0.5f instead of 0.5, and sqrtf instead of sqrt, at k.cu:14.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "diagnose/tool_kit.h"
#include "diagnose/tools/registry.h"

namespace kernelpro::diagnose {
namespace {

double Doubles(const KernelProfile& k) {
  return std::max(Get(k, metric::kDadd) + Get(k, metric::kDmul) + Get(k, metric::kDfma),
                  Get(k, metric::kFp64));
}

/// Double precision that nobody asked for: the task's tensors are narrower, or the kernel converts
/// to double and back while its own memory accesses are not of doubles.
bool IsAccidental(const ToolInput& in) {
  const auto widest = in.profile.task.find("widest_float_bytes");
  if (widest != in.profile.task.end()) {
    return widest->second.value <= 4;
  }
  if (in.kernel.Value(metric::kDoubleConversions)) {
    return Get(in.kernel, metric::kDoubleConversions) > 0 &&
           Get(in.kernel, metric::kDoubleAccesses) <= 0;
  }
  // A real GPU counts no conversions from float to double of their own, and no accesses by type.
  const double wide = Get(in.kernel, metric::kMemory64b) + Get(in.kernel, metric::kMemory128b);
  const double narrow = Get(in.kernel, metric::kMemory32b) + Get(in.kernel, metric::kMemory16b) +
                        Get(in.kernel, metric::kMemory8b);
  return Get(in.kernel, metric::kConversion) > 0.1 * Doubles(in.kernel) && narrow > wide;
}

std::optional<Finding> Examine(const ToolInput& in) {
  const KernelProfile& k = in.kernel;
  const double doubles = Doubles(k);
  const double conversions =
      k.Value(metric::kDoubleConversions).value_or(doubles > 0 ? Get(k, metric::kConversion) : 0);
  const double singles = Get(k, metric::kFadd) + Get(k, metric::kFmul) + Get(k, metric::kFfma);
  const double all = std::max({1.0, ThreadInstructions(k), doubles + singles});
  if (doubles <= 0) {
    return std::nullopt;
  }
  const double share = doubles / (doubles + singles);
  const double of_all = (doubles + conversions) / all;
  const bool accidental = IsAccidental(in);
  const Shares use = Normalised(in.use, in.hardware);
  Finding f;
  f.severity = Ramp(use.fp64, 0.15, 0.6);
  if (accidental) {
    // 0.8 once doubles are a visible part of what a thread does; a stray one per thread is minor.
    f.severity = std::max(f.severity, 0.3 + 0.5 * Ramp(of_all, 0.005, 0.05));
  }
  if (f.severity <= 0) {
    return std::nullopt;
  }
  const double rates = in.hardware.fp32_flops_per_s > 0
                           ? in.hardware.fp64_flops_per_s / in.hardware.fp32_flops_per_s
                           : 0.5;
  // A double costs its conversion, twice the registers, and division or square root a long
  // sequence: both pipes and issue are relieved together.
  const double relieved = std::min(1.0, 1.5 * of_all);
  f.bound = std::max(share * (1 - rates) * use.fp64, Cut(use, {.fma = relieved,
                                                               .alu = relieved,
                                                               .fp64 = 1.0,
                                                               .xu = conversions > 0 ? 1.0 : 0.0,
                                                               .issue = relieved}));
  f.confidence = accidental ? 0.95 : 0.6;
  const LineMetrics* line = WorstLine(k, [](const LineMetrics& l) {
    return Get(l, metric::kFp64) + Get(l, metric::kDoubleConversions);
  });
  SetWhere(f, line);
  f.seen = fmt::format(
      "{} of the floating-point operations are in double precision{}; {} "
      "conversions between float and double; the FP64 pipe is {} busy.",
      Percent(share), accidental ? " (want 0: the data are no doubles)" : "", Quantity(conversions),
      Percent(use.fp64));
  f.why = fmt::format(
      "A literal without suffix, or a double function, promotes the arithmetic at "
      "{} to double, which runs at {} of the float rate and converts there and "
      "back.",
      Place(line), Percent(rates));
  f.remedies = {
      fmt::format(
          "Make every literal and variable at {} a float: 0.5f and 1e-5f, float "
          "accumulators, x * x instead of pow(x, 2), and sqrtf, rsqrtf, expf, fabsf instead of "
          "their double forms.",
          Place(line)),
      "Turn double constants outside the loop into float ones.",
      "Where the sum needs more than float, use pairwise or compensated float summation."};
  f.check = fmt::format(
      "metric {} should move {} -> 0; correctness risk: rounding, check the "
      "tolerance.",
      metric::kFp64, Quantity(doubles));
  f.avoid = accidental ? "Do not tune block sizes or memory first: doubles double registers, "
                         "shared memory and latency everywhere."
                       : "Do not follow it where the task requires double precision.";
  f.evidence = {{"fp64_share", share},
                {"fp64_of_all", of_all},
                {"conversions", conversions},
                {"accidental", accidental ? 1.0 : 0.0}};
  return f;
}

}  // namespace

std::unique_ptr<Tool> MakeCmpFp64() {
  return MakeTool({.id = "cmp.fp64",
                   .title = "Double precision by accident",
                   .classes = {},
                   .metrics = {"smsp__sass_thread_inst_executed_op_dfma_pred_on.sum",
                               "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"},
                   .examine = &Examine});
}

}  // namespace kernelpro::diagnose
