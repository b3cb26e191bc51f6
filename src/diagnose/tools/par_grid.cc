// SPDX-License-Identifier: Apache-2.0
// par.small_grid  SEEN  16 blocks for 132 multiprocessors (want >= 264)
// par.tail        SEEN  1057 blocks run as 1.00 waves of 1056: the last wave fills 0.1 %
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "diagnose/tool_kit.h"
#include "diagnose/tools/registry.h"

namespace kernelpro::diagnose {
namespace {

std::optional<Finding> ExamineSmallGrid(const ToolInput& in) {
  const double grid = GridSize(in.kernel);
  const double sms = in.hardware.sm_count;
  // What takes a few microseconds is to be fused with its neighbour, not to be spread.
  constexpr double kShort = 5;
  const bool tiny =
      in.kernel.time_provenance == Provenance::kMeasured && in.kernel.time_us < kShort;
  if (sms <= 0 || grid >= sms || tiny) {
    return std::nullopt;
  }
  Finding f;
  f.severity = Ramp(1 - grid / sms, 0.1, 0.6);
  if (f.severity <= 0) {
    return std::nullopt;
  }
  // More blocks also hide each other's latency, so the bound is what the GPU would hold, not what
  // its multiprocessors count.
  const double resident = std::max(1.0, Waves(in.kernel, in.hardware).value_or(0) > 0
                                            ? grid / *Waves(in.kernel, in.hardware) / sms
                                            : 1.0);
  f.bound = std::min(1 - grid / (sms * resident), 1 - MaxUse(Normalised(in.use, in.hardware)));
  f.confidence = 0.8;
  f.seen = fmt::format(
      "{:.0f} blocks for {:.0f} multiprocessors (want >= {:.0f}): {:.0f} of them "
      "never work.",
      grid, sms, 2 * sms, sms - grid);
  f.why = "A block runs on one multiprocessor, so the grid leaves most of the GPU idle.";
  f.remedies = {
      "Parallelise another dimension: split the reduction or the row over several blocks and "
      "combine the parts in a second step.",
      "Use smaller tiles, or fewer elements a thread.", "Handle several problems in one launch.",
      "Run independent kernels at the same time."};
  f.check = fmt::format(
      "metric {} should move {:.0f} -> at least {:.0f}; correctness risk: the "
      "combination of partial results.",
      metric::kGridSize, grid, 2 * sms);
  f.avoid = "Do not tune occupancy or instructions first: idle multiprocessors gain nothing.";
  f.evidence = {{"grid", grid}, {"sm_count", sms}};
  return f;
}

std::optional<Finding> ExamineTail(const ToolInput& in) {
  const double waves = Waves(in.kernel, in.hardware).value_or(0);
  if (waves < 1 || waves >= 8) {
    return std::nullopt;
  }
  double loss = 1 - waves / std::ceil(waves);
  const auto active = in.kernel.Value(metric::kCyclesActive);
  const auto elapsed = in.kernel.Value(metric::kCyclesElapsed);
  if (active && elapsed && *elapsed > 0) {
    loss = std::min(loss, std::max(0.0, 1 - *active / *elapsed) + 0.02);  // what really idled
  }
  Finding f;
  f.severity = Ramp(loss, 0.05, 0.4);
  if (f.severity <= 0) {
    return std::nullopt;
  }
  f.bound = loss;
  f.confidence = 0.6;
  const double grid = GridSize(in.kernel);
  f.seen = fmt::format(
      "{:.0f} blocks run as {:.2f} waves (want a whole number): the last one "
      "fills {} of the GPU and costs a whole block's time.",
      grid, waves, Percent(waves - std::floor(waves)));
  f.why =
      "All blocks of a wave take about the same time, so a nearly empty last wave is paid in "
      "full.";
  f.remedies = {fmt::format("Choose the tile or the block size so that the grid becomes a multiple "
                            "of the {:.0f} blocks that run at once.",
                            grid / waves),
                "Launch exactly that many blocks and let each loop over several tiles.",
                "Split the work of the last wave into smaller blocks."};
  f.check = fmt::format("metric {} should move {:.2f} -> {:.0f} or above 8; correctness risk: low.",
                        metric::kWaves, waves, std::floor(waves));
  f.avoid = "Do not follow it when block durations vary strongly: balance them first.";
  f.evidence = {{"waves", waves}, {"loss", loss}};
  return f;
}

}  // namespace

std::unique_ptr<Tool> MakeParSmallGrid() {
  return MakeTool({.id = "par.small_grid",
                   .title = "Too few blocks",
                   .classes = {},
                   .metrics = {metric::kGridSize},
                   .examine = &ExamineSmallGrid});
}

std::unique_ptr<Tool> MakeParTail() {
  return MakeTool(
      {.id = "par.tail",
       .title = "Nearly empty last wave of blocks",
       .classes = {},
       .metrics = {"launch__waves_per_multiprocessor|launch__occupancy_limit_registers"},
       .examine = &ExamineTail});
}

}  // namespace kernelpro::diagnose
