// SPDX-License-Identifier: Apache-2.0
#include "profile/emulation_tally.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "device/device.h"
#include "emulator/model/model.h"
#include "emulator/simt/report.h"
#include "profile/ptx_opcode.h"

namespace kernelpro {
namespace {

double D(std::uint64_t count) {
  return static_cast<double>(count);
}

/// Index into Tally::width of the access width that the counters show.
std::size_t WidthIndex(const simt::InstructionCounters& c) {
  const std::uint64_t bytes = c.lanes_on == 0 ? 0 : c.bytes / c.lanes_on;
  std::size_t index = 0;
  for (std::uint64_t limit = 1; index < 4 && limit < bytes; limit *= 2) {
    ++index;
  }
  return index;
}

/// A generic access is what its counters say that it was.
MemorySpace Resolve(MemorySpace space, const simt::InstructionCounters& c) {
  if (space != MemorySpace::kGeneric) {
    return space;
  }
  return c.wavefronts > 0 && c.sectors == 0 ? MemorySpace::kShared : MemorySpace::kGlobal;
}

AccessTally* GlobalOf(Tally& tally, MemoryAccess access) {
  switch (access) {
    case MemoryAccess::kLoad:
      return &tally.load;
    case MemoryAccess::kStore:
      return &tally.store;
    case MemoryAccess::kAtomic:
      return &tally.atomic;
    case MemoryAccess::kReduction:
      return &tally.reduction;
    case MemoryAccess::kAsyncCopy:
      return &tally.async_copy;
    case MemoryAccess::kNone:
      break;
  }
  return nullptr;
}

SharedTally& SharedOf(Tally& tally, MemoryAccess access) {
  if (access == MemoryAccess::kLoad) {
    return tally.shared_load;
  }
  return access == MemoryAccess::kStore ? tally.shared_store : tally.shared_atomic;
}

void AddMemory(Tally& tally, const simt::InstructionCounters& c, const PtxOpcode& op,
               double scale) {
  const MemorySpace space = Resolve(op.space, c);
  if (space == MemorySpace::kConstant || space == MemorySpace::kNone) {
    return;
  }
  tally.width[WidthIndex(c)] += scale * D(c.warps);
  if (space == MemorySpace::kShared) {
    SharedOf(tally, op.access).Add(c, scale);
    return;
  }
  if (space == MemorySpace::kLocal) {
    (op.access == MemoryAccess::kLoad ? tally.local_load : tally.local_store).Add(c, scale);
    return;
  }
  if (AccessTally* const access = GlobalOf(tally, op.access); access != nullptr) {
    access->Add(c, scale);
  }
  if (op.is_f64) {
    tally.double_accesses += scale * D(c.lanes_on);
  }
}

/// Resident CTAs as far as the grid can provide them.
double AchievedOccupancy(const EmulatedLaunch& launch, const model::GpuSpec& spec) {
  const model::Occupancy& occupancy = launch.time.occupancy;
  if (occupancy.ctas_per_sm == 0 || spec.sm_count == 0) {
    return 0;
  }
  const double per_sm = D(launch.report.ctas) / spec.sm_count;
  return occupancy.theoretical * std::min(1.0, per_sm / occupancy.ctas_per_sm);
}

}  // namespace

void AccessTally::Add(const simt::InstructionCounters& c, double scale) {
  instructions += scale * D(c.warps);
  requests += scale * D(c.requests);
  sectors += scale * D(c.sectors);
  lines += scale * D(c.lines);
  hit_sectors += scale * D(c.l1_hit_sectors);
  bytes += scale * D(c.bytes);
  wavefronts += scale * D(c.wavefronts);
  used_bytes += scale * std::min(D(c.bytes), 32.0 * D(c.sectors));
}

void SharedTally::Add(const simt::InstructionCounters& c, double scale) {
  instructions += scale * D(c.warps);
  wavefronts += scale * D(c.wavefronts);
  ideal_wavefronts += scale * D(c.ideal_wavefronts);
}

void Tally::Add(const simt::InstructionCounters& c, const PtxOpcode& op, double scale) {
  warps += scale * D(c.warps);
  lanes += scale * D(c.lanes);
  lanes_on += scale * D(c.lanes_on);
  lanes_by_class[op.op] += scale * D(c.lanes_on);
  if (op.op == OpClass::kMemory) {
    AddMemory(*this, c, op, scale);
    return;
  }
  if (op.op == OpClass::kControl) {
    branches += scale * D(c.warps);
    divergent += scale * D(c.divergent);
  } else if (op.op == OpClass::kBarrier) {
    barriers += scale * D(c.warps);
  } else if (op.op == OpClass::kSpecial) {
    special_warps += scale * D(c.warps);
  }
  if (op.converts_f64) {
    double_conversions += scale * D(c.lanes_on);
  } else if (op.is_f64 && op.op != OpClass::kConversion) {
    fp64 += scale * D(c.lanes_on);
  }
}

void KernelTally::Add(const EmulatedLaunch& launch, const model::GpuSpec& spec) {
  const simt::LaunchReport& report = launch.report;
  const double scale = report.ctas_executed == 0 ? 0 : D(report.ctas) / D(report.ctas_executed);
  const std::size_t count = std::min(report.instructions.size(), launch.instructions.size());
  for (std::size_t i = 0; i < count; ++i) {
    const simt::InstructionCounters& c = report.instructions[i];
    if (c.warps == 0) {
      continue;
    }
    const EmulatedLaunch::Instruction& where = launch.instructions[i];
    const PtxOpcode op = ClassifyPtx(where.opcode);
    total.Add(c, op, scale);
    opcodes[where.opcode] += scale * D(c.warps);
    if (where.line != 0 && where.file < launch.files.size()) {
      lines[{launch.files[where.file], where.line}].Add(c, op, scale);
    }
  }
  hits_known = hits_known && report.sampled;
  // A launch that could not be modelled has an infinite time; its counters still count.
  const double time = std::isfinite(launch.time.time_us) ? launch.time.time_us : 0;
  launches += 1;
  time_us += time;
  run_cycles += std::max(0.0, time - spec.launch_overhead_us) * 1e-6 * spec.clock_hz;
  for (const model::Bound& bound : launch.time.bounds) {
    bound_cycles[bound.name] += bound.cycles;
  }
  ctas += D(report.ctas);
  dram_read += launch.time.dram_read_bytes;
  dram_write += launch.time.dram_write_bytes;
  l2_bytes += launch.time.l2_bytes;
  issued += launch.time.issued_warp_instructions;
  shared_load_wavefronts += launch.time.shared_load_wavefronts;
  shared_store_wavefronts += launch.time.shared_store_wavefronts;
  atomic_operations += scale * D(report.atomics.operations);
  atomic_hottest += scale * D(report.atomics.hottest_sector_operations);
  occupancy_time += AchievedOccupancy(launch, spec) * time;
  if (longest == nullptr || launch.time.time_us > longest->time.time_us) {
    longest = &launch;
  }
}

}  // namespace kernelpro
