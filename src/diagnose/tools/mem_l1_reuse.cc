// SPDX-License-Identifier: Apache-2.0
// SEEN  every input byte is requested 1024 times (want <= 8 through L1)
// DO    Stage tiles of both operands in shared memory and compute 4x4 outputs a thread.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "diagnose/tool_kit.h"
#include "diagnose/tools/registry.h"

namespace kernelpro::diagnose {
namespace {

constexpr double kReuse = 8;  ///< what register blocking of 8x8 achieves

std::optional<Finding> Examine(const ToolInput& in) {
  const KernelProfile& k = in.kernel;
  const double requested = Get(k, metric::kLoadBytes);
  const double unique = TaskFigure(in, "compulsory_bytes").value_or(Get(k, metric::kDramRead));
  const Wavefronts w = WavefrontsOf(k);
  const Shares use = Normalised(in.use, in.hardware);
  if (requested <= 0 || unique <= 0) {
    return std::nullopt;
  }
  const double ratio = requested / unique;
  const double global = w.all > 0 ? 1 - w.shared / w.all : 1.0;
  const double stalls = StallShare(k, metric::kStallLongScoreboard).value_or(0);
  Finding f;
  f.severity = Ramp(std::log2(std::max(1.0, ratio)), 2, 5) *
               Ramp(std::max({use.l1 * global, use.l2, stalls}), 0.3, 0.7);
  if (f.severity <= 0) {
    return std::nullopt;
  }
  // A rewrite: what remains is the arithmetic and the compulsory traffic.
  f.bound =
      1 - std::max({use.dram, MultiplyAddShare(in).value_or(0), use.tensor, use.fp64, use.xu});
  f.confidence = 0.7;
  const LineMetrics* line =
      WorstLine(k, [](const LineMetrics& l) { return Get(l, metric::kLoadBytes); });
  SetWhere(f, line);
  const double hit = Get(k, metric::kL1HitPct) / 100;
  f.seen = fmt::format(
      "threads request {:.0f} times the unique data (want <= {:.0f}); {} of the sectors hit L1, "
      "and every hit still takes a cycle of the data stage, which is {} busy.",
      ratio, kReuse, Percent(hit), Percent(use.l1));
  f.why = fmt::format(
      "The loads at {} fetch again what neighbouring threads of the block have "
      "just read.",
      Place(line));
  f.remedies = {
      fmt::format("Stage a tile of what line {} reads in shared memory (for a matrix product: "
                  "32x32 tiles of both operands) and let every thread compute a 4x4 block of "
                  "outputs from registers.",
                  f.line),
      "Enlarge the register block to 8x8 outputs a thread.",
      "Double-buffer the tiles, one barrier a tile.",
      "Use shuffles for small neighbourhoods and constant memory for uniform values."};
  if (f.line == 0) {
    f.remedies.front() =
        "Stage tiles of the re-read operands in shared memory and let every thread compute a 4x4 "
        "block of outputs from registers.";
  }
  f.check = fmt::format(
      "metric {} should fall by the tile edge ({} -> about {}); correctness "
      "risk: tile borders.",
      metric::kLoadBytes, ByteText(requested), ByteText(requested / kReuse));
  f.avoid =
      "Do not stage a small stencil whose reads already hit L1 at low load: measured, that "
      "was slower.";
  f.evidence = {{"requested_per_unique", ratio}, {"l1_hit", hit}};
  return f;
}

}  // namespace

std::unique_ptr<Tool> MakeMemL1Reuse() {
  return MakeTool(
      {.id = "mem.l1_reuse",
       .title = "Same global data read again and again",
       .classes = {"DRAM_BOUND", "L2_BOUND", "L1_SMEM_BOUND", "LATENCY_BOUND", "MIXED", "BALANCED"},
       .metrics = {metric::kLoadBytes},
       .examine = &Examine});
}

}  // namespace kernelpro::diagnose
