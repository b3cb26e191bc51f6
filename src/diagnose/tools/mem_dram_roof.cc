// SPDX-License-Identifier: Apache-2.0
// SEEN  512.0 MB in 122.1 us = 97 % of what this card sustains
// DO    Stop tuning instructions; remove bytes.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "diagnose/tool_kit.h"
#include "diagnose/tools/registry.h"

namespace kernelpro::diagnose {
namespace {

std::optional<Finding> Examine(const ToolInput& in) {
  const Shares use = Normalised(in.use, in.hardware);
  Finding f;
  f.severity = Ramp(use.dram, 0.6, 0.9);
  if (f.severity <= 0) {
    return std::nullopt;
  }
  const std::optional<double> floor = TaskFigure(in, "floor_us");
  // Without the task's needs nobody knows how many bytes could go: no bound.
  f.bound = floor ? std::clamp(1 - *floor / std::max(1e-9, in.kernel.time_us), 0.0, 1.0) : 0;
  f.confidence = 0.8;
  const double bytes = DramBytes(in.kernel);
  f.seen = fmt::format(
      "{} moved in {:.1f} us: DRAM at {} of what this GPU sustains (a full one "
      "is >= 90 %).",
      ByteText(bytes), in.kernel.time_us, Percent(use.dram));
  if (const auto needed = TaskFigure(in, "compulsory_bytes"); needed) {
    f.seen += fmt::format(" The task needs at least {}.", ByteText(*needed));
  }
  f.why = "The kernel waits for DRAM alone; only fewer bytes make it faster.";
  f.remedies = {
      "Leave the instructions as they are and remove bytes: fuse the producer or the "
      "consumer, so that intermediates stay in registers or shared memory.",
      "Make one pass over the data (online softmax or variance).",
      "Store in a narrower type where the tolerance allows.",
      "Keep a working set below the L2 size between kernels."};
  f.check = fmt::format("metric {} should fall; {} stays; correctness risk: that of the fusion.",
                        metric::kDramRead, metric::kDramPct);
  f.avoid = "Do not raise occupancy, unroll or vectorise further: nothing is left to hide.";
  f.evidence = {{"dram_use", use.dram}, {"dram_bytes", bytes}};
  return f;
}

}  // namespace

std::unique_ptr<Tool> MakeMemDramRoof() {
  return MakeTool({.id = "mem.dram_roof",
                   .title = "DRAM bandwidth is the limit",
                   .classes = {"DRAM_BOUND", "AT_ROOF"},
                   .metrics = {metric::kDramRead, metric::kDramWrite},
                   .examine = &Examine});
}

}  // namespace kernelpro::diagnose
