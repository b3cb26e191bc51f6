// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "emulator/model/model.h"
#include "emulator/model/shared_merge.h"
#include "emulator/ptx/module.h"
#include "emulator/simt/report.h"

namespace kernelpro::model {

/// What the executed CTAs ask of one SM's pipes (cycles, as if all ran on one SM) and of the L2
/// (sectors); not scaled to the grid.
struct Demand {
  double issued = 0;  ///< warp instructions after the cost table: what ncu calls inst_executed
  double fma = 0, alu = 0, sfu = 0, fp64 = 0, tensor = 0, lsu = 0, l1 = 0;
  double l2_read_sectors = 0, l2_write_sectors = 0;
  double shared_load_wavefronts = 0, shared_store_wavefronts = 0;
};

/// `counters` and `merges` are indexed by instruction and as long as the body.
[[nodiscard]] Demand SumDemand(const GpuSpec& spec, const ptx::Function& kernel,
                               std::span<const simt::InstructionCounters> counters,
                               std::span<const SharedMerge> merges);

/// Adds what register spills cost. They are not in PTX: the static byte counts of ptxas are taken
/// as 4-byte accesses that run as often as the average instruction. A guess, not validated.
void AddSpills(const KernelResources& resources,
               std::span<const simt::InstructionCounters> counters, const GpuSpec& spec,
               Demand& demand);

/// Sectors of 32 bytes between L2 and DRAM, for the whole grid.
struct DramSectors {
  double read = 0, write = 0;
};

/// An allocation of at most half the L2 is fetched once (its distinct sectors, scaled, at most its
/// size). A larger one costs what missed in the cohort's share of L2, at least its footprint. Reads
/// come in granules of 64 bytes. `scale` is grid / executed CTAs.
[[nodiscard]] DramSectors SumDram(const GpuSpec& spec,
                                  std::span<const simt::AllocationTraffic> allocations,
                                  double scale);

}  // namespace kernelpro::model
