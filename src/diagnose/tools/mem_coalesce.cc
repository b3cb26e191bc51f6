// SPDX-License-Identifier: Apache-2.0
// SEEN  7.9 of 32 bytes per sector used (want >= 28); 32.0 sectors a request where 4.0 would do
// DO    Swap the index roles at k.cu:12 so that threadIdx.x runs along the contiguous dimension.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "diagnose/tool_kit.h"
#include "diagnose/tools/registry.h"

namespace kernelpro::diagnose {
namespace {

/// Loads or stores: the two tools differ in names, remedies and thresholds.
struct Direction {
  std::string_view word;                       ///< "load"
  std::string_view sectors, bytes_per_sector;  ///< of lines
  double ramp_from = 0.15;
};

constexpr Direction kLoad = {"load", metric::kLoadSectors, metric::kLoadBytesPerSector, 0.15};
constexpr Direction kStore = {"store", metric::kStoreSectors, metric::kStoreBytesPerSector, 0.20};

double GlobalSectors(const KernelProfile& kernel) {
  return std::max(1.0, Loads(kernel).sectors + Stores(kernel).sectors);
}

/// `harm`: the part of the waste that costs something.
std::optional<Finding> Examine(const ToolInput& in, const Direction& direction,
                               const Access& access, double harm) {
  const double share = access.sectors / GlobalSectors(in.kernel);
  const double severity = Ramp(harm, direction.ramp_from, 0.75) * Ramp(share, 0.05, 0.30);
  if (severity <= 0 || access.requests <= 0) {
    return std::nullopt;
  }
  const ScatterShares w = Scatter(in);
  const Shares use = Normalised(in.use, in.hardware);
  const LineMetrics* line = WorstLine(in.kernel, [&](const LineMetrics& l) {
    return l.metrics.contains(std::string(direction.bytes_per_sector))
               ? Get(l, direction.sectors) * (1 - Get(l, direction.bytes_per_sector) / 32)
               : 0.0;
  });
  Finding f;
  f.severity = severity;
  f.bound = Cut(use, {.dram = w.dram, .l2 = w.l2, .l1 = w.l1});
  f.confidence = line != nullptr ? 0.9 : 0.75;
  SetWhere(f, line);
  const double per_request = access.sectors / access.requests;
  const double ideal = access.IdealSectorsPerRequest();
  f.seen = fmt::format(
      "{:.1f} of 32 bytes per sector used by global {}s (want >= 28); {:.1f} sectors a warp "
      "request where {:.1f} would do; {} of the {} traffic is discarded.",
      access.bytes_per_sector, direction.word, per_request, ideal, Percent(access.Waste()),
      direction.word);
  f.why = fmt::format(
      "Neighbouring lanes touch addresses that are far apart at {}, so every request of a warp "
      "is split over many 32-byte sectors and most of each is thrown away.",
      Place(line));
  f.check = fmt::format(
      "metric {} should move {:.1f} -> about 32; correctness risk: low, only "
      "the index mapping changes.",
      direction.bytes_per_sector, access.bytes_per_sector);
  f.evidence = {{"bytes_per_sector", access.bytes_per_sector},
                {"sectors_per_request", per_request},
                {"sector_share", share},
                {"waste", access.Waste()}};
  return f;
}

/// The hot loop's next address comes out of the memory it just read (a list, a tree, a table of
/// indices that leads on): no mapping of lanes helps, the walk itself is what takes time.
bool IsWalk(const KernelProfile& k) {
  constexpr double kThroughMemory =
      150;  ///< cycles: more than any chain of arithmetic and shared memory
  return Get(k, "sass.loop.recurrence") >= kThroughMemory && Get(k, "sass.loop.ldg") <= 2;
}

std::optional<Finding> ExamineLoads(const ToolInput& in) {
  const Access access = Loads(in.kernel);
  // Reuse in L1 recovers the sectors; but a request over very many lines replays even on hits.
  const ScatterShares w = Scatter(in);
  if (IsWalk(in.kernel)) {
    return std::nullopt;
  }
  if (Get(in.kernel, metric::kLoadHitPct) > 90 && in.use.l1.value_or(0) < 0.4 && w.l1 < 0.75) {
    return std::nullopt;
  }
  // A sector that hits L1 costs nothing beyond its share of a wavefront.
  const double missed = 1 - Get(in.kernel, metric::kLoadHitPct) / 100;
  std::optional<Finding> f =
      Examine(in, kLoad, access, std::min(access.Waste(), std::max(w.l1, access.Waste() * missed)));
  if (f) {
    const std::string where = f->line != 0 ? fmt::format(" at line {}", f->line) : std::string();
    f->remedies = {
        fmt::format("Swap the index roles{} so that threadIdx.x (the lane) runs along the "
                    "contiguous dimension; for one row per thread, give each row to a warp and "
                    "let the lanes stride over it.",
                    where),
        "Change the layout (arrays of structures to structures of arrays, or one transposition).",
        "Stage a tile through shared memory: coalesced reads in, strided reads out, rows padded "
        "by one element.",
        "Sort or bucket indirect indices."};
    f->avoid =
        "Do not judge by sectors per request alone (4, 8 and 16 are ideal for 4-, 8- and "
        "16-byte lanes), and do not raise occupancy to hide wasted traffic.";
  }
  return f;
}

std::optional<Finding> ExamineStores(const ToolInput& in) {
  std::optional<Finding> f = Examine(in, kStore, Stores(in.kernel), Stores(in.kernel).Waste());
  if (f) {
    const std::string where = f->line != 0 ? fmt::format(" at line {}", f->line) : std::string();
    f->remedies = {
        fmt::format("Stage the output tile in shared memory and write it out by rows{}, so that "
                    "consecutive lanes store consecutive elements (pad the tile's row by one).",
                    where),
        "Let each lane own adjacent outputs; pack 2-byte results into 32-bit or 128-bit stores.",
        "Replace single-lane stores by one vector store of several lanes."};
    f->avoid =
        "Do not move the stride from the stores to the loads without a shared-memory tile: "
        "one side stays scattered.";
  }
  return f;
}

}  // namespace

std::unique_ptr<Tool> MakeMemCoalesceLd() {
  return MakeTool({.id = "mem.coalesce_ld",
                   .title = "Uncoalesced global loads",
                   .classes = {"DRAM_BOUND", "L2_BOUND", "L1_SMEM_BOUND", "LATENCY_BOUND",
                               "UNDERFILLED", "TAIL", "ISSUE_BOUND", "MIXED", "BALANCED"},
                   .metrics = {"l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum|"
                               "smsp__sass_inst_executed_op_global_ld.sum",
                               "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum|"
                               "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ld.sum",
                               metric::kLoadBytesPerSector},
                   .examine = &ExamineLoads});
}

std::unique_ptr<Tool> MakeMemCoalesceSt() {
  return MakeTool({.id = "mem.coalesce_st",
                   .title = "Partial or scattered global stores",
                   .classes = {"DRAM_BOUND", "L2_BOUND", "L1_SMEM_BOUND", "LATENCY_BOUND",
                               "UNDERFILLED", "TAIL", "ISSUE_BOUND", "MIXED", "BALANCED"},
                   .metrics = {"l1tex__t_requests_pipe_lsu_mem_global_op_st.sum|"
                               "smsp__sass_inst_executed_op_global_st.sum",
                               "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum|"
                               "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_st.sum",
                               metric::kStoreBytesPerSector},
                   .examine = &ExamineStores});
}

}  // namespace kernelpro::diagnose
