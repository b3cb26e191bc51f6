// SPDX-License-Identifier: Apache-2.0
// SEEN  0.6 multiply-adds for each shared wavefront (want >= 8)
// DO    Compute a 4x4 block of outputs per thread from registers.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "diagnose/tool_kit.h"
#include "diagnose/tools/registry.h"

namespace kernelpro::diagnose {
namespace {

/// Multiply-adds per wavefront of an 8x8 register block: 64 for four 128-bit loads of 2 wavefronts.
constexpr double kGood = 8;

std::optional<Finding> Examine(const ToolInput& in) {
  const KernelProfile& k = in.kernel;
  const Wavefronts w = WavefrontsOf(k);
  const Shares use = Normalised(in.use, in.hardware);
  const double loads = Get(k, metric::kSharedLoadWavefronts);
  if (loads <= 0 || w.shared < 0.5 * w.all) {
    return std::nullopt;
  }
  const auto ffma = k.Value(metric::kFfma);
  const double math = ffma ? *ffma / 32 : Get(k, metric::kPipeFma);
  const double ratio = math / loads;
  // Without a multiply-add for every other load this is no product: a reduction, a transposition.
  // The pipe's own count has index arithmetic in it.
  const double least = ffma ? 0.4 : 0.5;
  if (ratio < least || ratio >= kGood || w.conflicts > 0.2 * w.shared) {
    return std::nullopt;
  }
  Finding f;
  f.severity = Ramp(use.l1, 0.5, 0.85) * Ramp(kGood - ratio, 0, 4);
  if (f.severity <= 0) {
    return std::nullopt;
  }
  Shares left = use;
  left.fma = MultiplyAddShare(in).value_or(use.fma);
  f.bound = RewriteFloor(left);
  f.confidence = 0.7;
  const LineMetrics* line =
      WorstLine(k, [](const LineMetrics& l) { return Get(l, metric::kSharedLoadWavefronts); });
  SetWhere(f, line);
  f.seen = fmt::format(
      "{:.1f} multiply-adds for each cycle of shared-memory reads (want >= "
      "{:.0f}); the shared-memory stage is {} busy, the FMA pipe {}.",
      ratio, kGood, Percent(use.l1), Percent(use.fma));
  f.why = fmt::format(
      "Every multiply-add at {} waits for operands from shared memory, whose "
      "bandwidth is a quarter of the FMA rate.",
      Place(line));
  f.remedies = {
      "Give each thread a 4x4, then an 8x8 block of outputs, held in registers: each "
      "value read from shared memory then serves 4 or 8 multiply-adds.",
      "Read shared memory with 16-byte loads.",
      "Keep the smaller operand in registers across the loop.",
      "Use shuffles for values that all lanes share."};
  f.check = fmt::format(
      "metric {} should fall by about {:.0f}x; {} should rise; correctness risk: "
      "index arithmetic.",
      metric::kSharedLoadWavefronts, std::max(2.0, kGood / ratio), metric::kFmaPct);
  f.avoid = "Do not shrink the tile for occupancy: register blocks at 25 % occupancy are faster.";
  f.evidence = {{"fma_per_wavefront", ratio}, {"l1_use", use.l1}};
  return f;
}

}  // namespace

std::unique_ptr<Tool> MakeSmemPressure() {
  return MakeTool({.id = "smem.pressure",
                   .title = "Shared-memory bandwidth limits the math",
                   .classes = {"L1_SMEM_BOUND", "COMPUTE_BOUND", "MIXED", "BALANCED"},
                   .metrics = {metric::kSharedLoadWavefronts,
                               "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum|"
                               "smsp__inst_executed_pipe_fma.sum"},
                   .examine = &Examine});
}

}  // namespace kernelpro::diagnose
