// SPDX-License-Identifier: Apache-2.0
#include "emulator/model/demand.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "emulator/model/cost_table.h"
#include "emulator/model/memory_access.h"
#include "emulator/model/model.h"
#include "emulator/model/shared_merge.h"
#include "emulator/ptx/module.h"
#include "emulator/simt/report.h"

namespace kernelpro::model {
namespace {

constexpr double kWarp = 32;
constexpr double kSectorBytes = 32;

class DemandSum {
 public:
  explicit DemandSum(const GpuSpec& spec)
      : spec_(spec),
        tensor_flops_per_cycle_(spec.tensor_f16_flops_per_s / spec.clock_hz / spec.sm_count) {}

  void Add(const ptx::Instruction& op, const simt::InstructionCounters& c,
           const SharedMerge& merge) {
    const auto warps = static_cast<double>(c.warps);
    const OpCost cost = CostOf(op, spec_);
    const MemoryAccess access = MemoryAccessOf(op);
    if (access.kind == MemoryKind::kNone || access.space == ptx::Space::kNone) {
      AddArithmetic(cost, warps, op);
      return;
    }
    sum_.issued += cost.issue * warps * merge.issue;
    sum_.lsu += static_cast<double>(c.requests) * merge.issue;
    if (c.wavefronts > 0) {
      AddShared(op, access, c, merge);
    }
    if (access.space != ptx::Space::kShared) {
      AddGlobal(access, c);
    }
  }

  [[nodiscard]] const Demand& sum() const { return sum_; }

 private:
  void AddArithmetic(const OpCost& cost, double warps, const ptx::Instruction& op) {
    sum_.issued += cost.issue * warps;
    sum_.fma += warps * (cost.fma * kWarp / spec_.fp32_lanes + cost.imad * kWarp / spec_.int_lanes);
    sum_.alu += warps * cost.alu * kWarp / spec_.int_lanes;
    sum_.sfu += warps * cost.sfu * kWarp / spec_.sfu_lanes;
    sum_.fp64 += warps * cost.fp64 * kWarp / spec_.fp64_lanes;
    sum_.lsu += warps * cost.lsu;
    const bool asynchronous = !op.parts.empty() && op.parts.front() == "wgmma";
    sum_.tensor += warps * cost.tensor_flops /
                   (tensor_flops_per_cycle_ * (asynchronous ? 1 : spec_.mma_sync_efficiency));
  }

  /// Shared atomics occupy the data stage twice: read and write back. A float add has no machine
  /// instruction and becomes a compare-and-swap loop (7 instructions; a guess for one round).
  void AddShared(const ptx::Instruction& op, const MemoryAccess& access,
                 const simt::InstructionCounters& c, const SharedMerge& merge) {
    if (access.kind == MemoryKind::kAtomic) {
      const bool loop = op.Has("f32") || op.Has("f64") || op.Has("f16x2") || op.Has("bf16x2");
      sum_.issued += static_cast<double>(c.warps) * (loop ? 6 : 1);
      sum_.l1 += (loop ? 3 : 2) * merge.wavefronts;
      return;
    }
    sum_.l1 += merge.wavefronts;
    if (access.kind == MemoryKind::kLoad) {
      sum_.shared_load_wavefronts += merge.wavefronts;
    } else if (access.kind == MemoryKind::kStore) {
      sum_.shared_store_wavefronts += merge.wavefronts;
    }
  }

  /// L1 looks up one line's tags a cycle and accepts 32 bytes of stores a cycle.
  void AddGlobal(const MemoryAccess& access, const simt::InstructionCounters& c) {
    if (c.sectors == 0) {
      return;
    }
    const auto sectors = static_cast<double>(c.sectors);
    const auto tags = static_cast<double>(
        access.space == ptx::Space::kGeneric ? c.lines : std::max(c.lines, c.requests));
    switch (access.kind) {
      case MemoryKind::kLoad:
      case MemoryKind::kAsyncCopy:
        sum_.l1 += tags;
        sum_.l2_read_sectors += sectors - static_cast<double>(c.l1_hit_sectors);
        return;
      case MemoryKind::kStore:
        sum_.l1 += tags * spec_.store_cycles_per_line;
        sum_.l2_write_sectors += sectors;
        return;
      case MemoryKind::kAtomic:
        sum_.l1 += tags;
        sum_.l2_write_sectors += sectors;
        return;
      case MemoryKind::kNone:
        return;
    }
  }

  const GpuSpec& spec_;
  double tensor_flops_per_cycle_ = 1;
  Demand sum_;
};

}  // namespace

Demand SumDemand(const GpuSpec& spec, const ptx::Function& kernel,
                 std::span<const simt::InstructionCounters> counters,
                 std::span<const SharedMerge> merges) {
  DemandSum sum(spec);
  for (std::size_t i = 0; i < kernel.body.size(); ++i) {
    sum.Add(kernel.body[i], counters[i], merges[i]);
  }
  return sum.sum();
}

void AddSpills(const KernelResources& resources,
               std::span<const simt::InstructionCounters> counters, const GpuSpec& spec,
               Demand& demand) {
  double executions = 0;
  double instructions = 0;
  for (const simt::InstructionCounters& c : counters) {
    executions += static_cast<double>(c.warps);
    instructions += c.warps > 0 ? 1 : 0;
  }
  if (instructions == 0) {
    return;
  }
  constexpr double kWordBytes = 4;
  const double runs = executions / instructions;
  const double loads = static_cast<double>(resources.spill_load_bytes) / kWordBytes * runs;
  const double stores = static_cast<double>(resources.spill_store_bytes) / kWordBytes * runs;
  // Local memory is interleaved: the same variable of a warp's lanes is one 128-byte line.
  demand.issued += loads + stores;
  demand.lsu += loads + stores;
  demand.l1 += loads + stores * spec.store_cycles_per_line;
}

DramSectors SumDram(const GpuSpec& spec, std::span<const simt::AllocationTraffic> allocations,
                    double scale) {
  DramSectors out;
  for (const simt::AllocationTraffic& a : allocations) {
    const auto total = static_cast<double>(a.total_sectors);
    double unique_read = static_cast<double>(a.unique_read);
    double miss_read = static_cast<double>(a.miss_read);
    if (a.unique_read > 0) {
      const double granules = 2 * static_cast<double>(a.unique_read_granules);
      miss_read *= granules / unique_read;
      unique_read = granules;
    }
    const double read = std::min(total, unique_read * scale);
    const double write = std::min(total, static_cast<double>(a.unique_write) * scale);
    const bool larger_than_share = total * kSectorBytes > 0.5 * static_cast<double>(spec.l2_bytes);
    out.read += larger_than_share ? std::max(read, miss_read * scale) : read;
    out.write +=
        larger_than_share ? std::max(write, static_cast<double>(a.miss_write) * scale) : write;
  }
  return out;
}

}  // namespace kernelpro::model
