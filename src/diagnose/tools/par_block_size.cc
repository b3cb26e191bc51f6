// SPDX-License-Identifier: Apache-2.0
// SEEN  blocks of 40 threads: the second warp runs 8 of 32 lanes
// DO    Use 128 threads per block.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "diagnose/tool_kit.h"
#include "diagnose/tools/registry.h"

namespace kernelpro::diagnose {
namespace {

std::optional<Finding> Examine(const ToolInput& in) {
  const KernelProfile& k = in.kernel;
  const double threads = BlockSize(k);
  const double warps = std::ceil(threads / 32);
  const double rest = std::fmod(threads, 32);
  const double partial = rest > 0 ? (1 - rest / 32) / warps : 0;
  const Shares use = Normalised(in.use, in.hardware);
  // With few warps per block the limit of blocks per multiprocessor caps occupancy.
  const double resident =
      std::min<double>(in.hardware.ctas_per_sm * warps, in.hardware.warps_per_sm);
  const bool capped = in.hardware.warps_per_sm > 0 && threads < 64 &&
                      GridSize(k) > in.hardware.sm_count * double{1} * in.hardware.ctas_per_sm &&
                      resident < in.hardware.warps_per_sm;
  Finding f;
  f.severity = std::max(Ramp(partial, 0.02, 0.3), capped ? 0.4 : 0.0);
  if (f.severity <= 0) {
    return std::nullopt;
  }
  const double more = capped ? OccupancyGain(use, resident, in.hardware.warps_per_sm) : 0;
  f.bound = std::max(partial, more);
  f.confidence = 0.7;
  f.seen = partial > 0 ? fmt::format(
                             "blocks of {:.0f} threads: the last of {:.0f} warps runs {:.0f} of 32 "
                             "lanes (want 32).",
                             threads, warps, rest)
                       : fmt::format(
                             "blocks of {:.0f} threads: at most {:.0f} of {} warps fit on a "
                             "multiprocessor (want all).",
                             threads, resident, in.hardware.warps_per_sm);
  f.why = partial > 0
              ? "Instructions of a partly filled warp cost as much as those of a full one."
              : "A multiprocessor holds a limited number of blocks, however small they are.";
  f.remedies = {"Use 128 or 256 threads per block, and guard the tail with an index test.",
                "Let one block handle several rows or tiles."};
  f.check = fmt::format(
      "metric {} should move {:.0f} -> 128 or 256; correctness risk: index "
      "guards.",
      metric::kBlockSize, threads);
  f.avoid = "Do not take 1024 threads by default: blocks that large wait for their slowest warp.";
  f.evidence = {{"threads", threads}, {"partial", partial}};
  return f;
}

}  // namespace

std::unique_ptr<Tool> MakeParBlockSize() {
  return MakeTool({.id = "par.block_size",
                   .title = "Block size that wastes lanes or slots",
                   .classes = {},
                   .metrics = {metric::kBlockSize},
                   .examine = &Examine});
}

}  // namespace kernelpro::diagnose
