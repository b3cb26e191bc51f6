// SPDX-License-Identifier: Apache-2.0
// mem.spill        SEEN  220 bytes a thread spilled (want 0); 32 registers a thread
// mem.local_array  SEEN  18 % of the memory instructions go to local memory (want 0)
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "diagnose/tool_kit.h"
#include "diagnose/tools/registry.h"

namespace kernelpro::diagnose {
namespace {

struct LocalTraffic {
  double instruction_share = 0;  ///< of local, global and shared instructions
  double sector_share = 0;       ///< of L1 sectors
  double wavefront_share = 0;    ///< of the L1 data stage
};

LocalTraffic TrafficOf(const KernelProfile& k) {
  const double local = Get(k, metric::kLocalLoads) + Get(k, metric::kLocalStores);
  const double others = Get(k, metric::kGlobalLoads) + Get(k, metric::kGlobalStores) +
                        Get(k, metric::kSharedLoads) + Get(k, metric::kSharedStores);
  const double sectors = LocalSectors(k);
  const double global = Loads(k).sectors + Stores(k).sectors;
  LocalTraffic t;
  t.instruction_share = local > 0 ? local / (local + others) : 0;
  t.sector_share = sectors > 0 ? sectors / (sectors + global) : 0;
  const double all = WavefrontsOf(k).all;
  t.wavefront_share = all > 0 ? std::min(1.0, sectors / 4 / all) : t.sector_share;
  return t;
}

double Bound(const ToolInput& in, const LocalTraffic& t) {
  const double l1_hit = Get(in.kernel, metric::kL1HitPct) / 100;
  const Shares use = Normalised(in.use, in.hardware);
  const double cut = Cut(use, {.dram = t.sector_share,
                               .l2 = std::max(t.sector_share * (1 - l1_hit), t.sector_share),
                               .l1 = std::max(t.wavefront_share, t.instruction_share),
                               .lsu = t.instruction_share,
                               .issue = t.instruction_share});
  // Waiting for local memory is waiting, whatever is busy.
  const double waiting = StallShare(in.kernel, metric::kStallLongScoreboard).value_or(0) +
                         StallShare(in.kernel, metric::kStallLgThrottle).value_or(0);
  return std::max(cut, StallGain(use, waiting * Ramp(t.instruction_share, 0, 0.3)));
}

const LineMetrics* LocalLine(const KernelProfile& k) {
  return WorstLine(k, [](const LineMetrics& l) {
    return Get(l, metric::kLocalLoads) + Get(l, metric::kLocalStores);
  });
}

std::optional<Finding> ExamineSpill(const ToolInput& in) {
  const KernelProfile& k = in.kernel;
  const double bytes = Get(k, metric::kSpillStores) + Get(k, metric::kSpillLoads);
  if (bytes <= 0) {
    return std::nullopt;
  }
  const LocalTraffic t = TrafficOf(k);
  const auto registers =
      k.Value(metric::kRegisters) ? k.Value(metric::kRegisters) : k.Value("ptxas.registers");
  Finding f;
  f.severity = std::max(Ramp(t.instruction_share, 0.01, 0.2), 0.3 + 0.5 * Ramp(bytes, 32, 1024));
  const Shares use = Normalised(in.use, in.hardware);
  // Emulation runs code before register allocation: how often a spill executes is unknown there,
  // and the bound is what the arithmetic and DRAM leave.
  f.bound = t.instruction_share > 0 ? Bound(in, t) : 0.5 * RewriteFloor(use);
  f.confidence = t.instruction_share > 0 ? 0.85 : 0.5;
  SetWhere(f, LocalLine(k));
  f.seen = fmt::format(
      "the assembler spilled {:.0f} bytes a thread in stores and {:.0f} in loads "
      "(want 0){}.",
      Get(k, metric::kSpillStores), Get(k, metric::kSpillLoads),
      registers ? fmt::format("; {:.0f} registers a thread", *registers) : "");
  f.why =
      "More values are live than the register cap allows, so some go to local memory, which "
      "is L1 and L2 traffic.";
  f.remedies = {"Relax the cap: lower the second argument of __launch_bounds__, or the block size.",
                "Shrink the live set: a smaller tile per thread, fewer unrolled iterations, "
                "reused accumulators.",
                "Recompute cheap values instead of keeping them.",
                "Move long-lived data to shared memory."};
  f.check = fmt::format("metric {} should move {:.0f} -> 0; correctness risk: none.",
                        metric::kSpillStores, Get(k, metric::kSpillStores));
  f.avoid = "Do not unroll further or add accumulators while anything spills.";
  f.evidence = {{"spill_bytes", bytes}, {"local_share", t.instruction_share}};
  return f;
}

std::optional<Finding> ExamineArray(const ToolInput& in) {
  const KernelProfile& k = in.kernel;
  const LocalTraffic t = TrafficOf(k);
  if (Get(k, metric::kSpillStores) + Get(k, metric::kSpillLoads) > 0 ||
      t.instruction_share < 0.005) {
    return std::nullopt;
  }
  const LineMetrics* line = LocalLine(k);
  Finding f;
  f.severity = std::max(0.4, Ramp(t.instruction_share, 0.005, 0.1));
  f.bound = Bound(in, t);
  f.confidence = k.Value(metric::kSpillStores) ? 0.85 : 0.5;
  SetWhere(f, line);
  f.seen = fmt::format(
      "{} of the memory instructions go to local memory (want 0), {} of the L1 "
      "sectors{}.",
      Percent(t.instruction_share), Percent(t.sector_share),
      k.Value(metric::kSpillStores) ? ", and nothing was spilled"
                                    : "; whether by spills or by an array is not known");
  f.why = fmt::format(
      "An array of the thread is indexed at {} with a value known only at run "
      "time, so it cannot live in registers.",
      Place(line));
  f.remedies = {
      "Unroll the loops over the array completely (#pragma unroll with constant bounds), "
      "so that every index is a constant.",
      "Replace the lookup by selects.", "Put the array in shared memory, one column a thread.",
      "Make its size a template parameter, and pass it to no function that is not "
      "inlined."};
  f.check = fmt::format("metric {} should move {} -> 0; correctness risk: low.",
                        metric::kLocalLoads, Quantity(Get(k, metric::kLocalLoads)));
  f.avoid = "Do not raise the register limit: indexing, not pressure, is the cause.";
  f.evidence = {{"local_share", t.instruction_share}, {"sector_share", t.sector_share}};
  return f;
}

}  // namespace

std::unique_ptr<Tool> MakeMemSpill() {
  return MakeTool({.id = "mem.spill",
                   .title = "Register spills",
                   .classes = {},
                   .metrics = {metric::kSpillStores, metric::kSpillLoads},
                   .examine = &ExamineSpill});
}

std::unique_ptr<Tool> MakeMemLocalArray() {
  return MakeTool({.id = "mem.local_array",
                   .title = "Thread-local array in local memory",
                   .classes = {},
                   .metrics = {metric::kLocalLoads, metric::kLocalStores},
                   .examine = &ExamineArray});
}

}  // namespace kernelpro::diagnose
