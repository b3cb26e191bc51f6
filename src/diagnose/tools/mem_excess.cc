// SPDX-License-Identifier: Apache-2.0
// SEEN  DRAM moves 2.1 times the compulsory 512.0 MB (want <= 1.15)
// DO    Hold the row in registers or shared memory for its second use.
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "diagnose/tool_kit.h"
#include "diagnose/tools/registry.h"

namespace kernelpro::diagnose {
namespace {

std::optional<Finding> Examine(const ToolInput& in) {
  const std::optional<double> needed = TaskFigure(in, "compulsory_bytes");
  const double moved = DramBytes(in.kernel);
  if (!needed || *needed <= 0 || moved <= *needed) {
    return std::nullopt;
  }
  const double ratio = moved / *needed;
  Finding f;
  f.severity = Ramp(ratio, 1.15, 2.5);
  if (f.severity <= 0) {
    return std::nullopt;
  }
  f.bound = Cut(Normalised(in.use, in.hardware), {.dram = 1 - 1 / ratio});
  // One pass may also run closer to the roof than several do.
  const double least = *needed / std::max(1.0, in.hardware.dram_bytes_per_s);
  if (const double seconds = RunSeconds(in.kernel);
      seconds > 0 && in.hardware.dram_bytes_per_s > 0) {
    f.bound = std::max(f.bound, 1 - least / seconds);
  }
  f.confidence = 0.7;
  const LineMetrics* line = WorstLine(in.kernel, [](const LineMetrics& l) {
    return Get(l, metric::kLoadSectors) - Get(l, metric::kLoadHitSectors);
  });
  SetWhere(f, line);
  f.seen = fmt::format(
      "DRAM moves {:.1f} times the compulsory {} (want <= 1.15): {} read and {} written.", ratio,
      ByteText(*needed), ByteText(Get(in.kernel, metric::kDramRead)),
      ByteText(Get(in.kernel, metric::kDramWrite)));
  f.why = fmt::format("A tensor passes through DRAM more than once; {} misses most.", Place(line));
  f.remedies = {
      "Merge the loops that read the same tensor, and hold the row or tile in registers "
      "or shared memory for its second use.",
      "Remove temporaries that are written and read back.", "Order blocks so that re-reads hit L2.",
      "Write whole sectors, so that no sector is read before it is written."};
  f.check = fmt::format("metric {} plus {} should move {} -> about {}; correctness risk: low.",
                        metric::kDramRead, metric::kDramWrite, ByteText(moved), ByteText(*needed));
  f.avoid = "Do not follow it where the algorithm truly needs a halo or padding.";
  f.evidence = {{"dram_bytes", moved}, {"compulsory_bytes", *needed}};
  return f;
}

}  // namespace

std::unique_ptr<Tool> MakeMemExcess() {
  return MakeTool({.id = "mem.excess",
                   .title = "More bytes than the task needs",
                   .classes = {"DRAM_BOUND", "L2_BOUND", "BALANCED", "MIXED"},
                   .metrics = {metric::kDramRead, metric::kDramWrite},
                   .examine = &Examine});
}

}  // namespace kernelpro::diagnose
