// SPDX-License-Identifier: Apache-2.0
#include "emulator/model/model.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "emulator/model/copy_waits.h"
#include "emulator/model/cost_table.h"
#include "emulator/model/critical_path.h"
#include "emulator/model/demand.h"
#include "emulator/model/memory_access.h"
#include "emulator/model/shared_merge.h"
#include "emulator/ptx/module.h"
#include "emulator/simt/report.h"

namespace kernelpro::model {
namespace {

constexpr double kSectorBytes = 32;

/// Everything about one launch that the bounds are computed from.
struct Launch {
  const GpuSpec& spec;
  const ptx::Function& kernel;
  const simt::LaunchReport& report;
  std::vector<simt::InstructionCounters> counters{};  ///< as long as the body
  std::vector<Segment> segments{};
  std::vector<SharedMerge> merges{};
  Demand demand{};
  DramSectors dram{};
  double grid = 0;   ///< CTAs of the launch
  double scale = 0;  ///< grid / executed CTAs
  double ctas_on_busiest_sm = 0;
  double resident_ctas = 1;
};

/// With few waves the last, partly filled one counts in full.
double CtasOnBusiestSm(double grid, double sms, double occupancy) {
  constexpr double kFewWaves = 4;
  const double even = grid / sms;
  return grid < sms * occupancy * kFewWaves ? std::ceil(even) : even;
}

/// Share of the L2 reads that go on to DRAM.
double DramShare(const Launch& launch) {
  return std::min(1.0,
                  launch.dram.read / std::max(1.0, launch.demand.l2_read_sectors * launch.scale));
}

/// Mean latency of a global access at its own L1 hit rate and the kernel's L2 hit rate.
double GlobalLatency(const Launch& launch, const simt::InstructionCounters& c) {
  const GpuSpec& spec = launch.spec;
  const double hit = static_cast<double>(c.l1_hit_sectors) / std::max(1.0, double(c.sectors));
  const double dram = DramShare(launch);
  return hit * spec.latency_l1 +
         (1 - hit) * (dram * spec.latency_dram + (1 - dram) * spec.latency_l2);
}

InstructionTiming LoadTiming(const Launch& launch, const MemoryAccess& access, std::size_t i) {
  const simt::InstructionCounters& c = launch.counters[i];
  InstructionTiming timing{.slots = launch.merges[i].issue};
  if (access.space == ptx::Space::kShared || (c.sectors == 0 && c.wavefronts > 0)) {
    const double conflicts = double(c.wavefronts) / std::max(1.0, double(c.requests)) - 1;
    timing.latency = launch.spec.latency_shared + std::max(0.0, conflicts);
  } else {
    timing.latency = GlobalLatency(launch, c);
  }
  return timing;
}

InstructionTiming AtomicTiming(const Launch& launch, const MemoryAccess& access) {
  // A shared atomic is a read and a write; a global one is done by the L2.
  if (access.space == ptx::Space::kShared) {
    return {.slots = 2, .latency = 2 * launch.spec.latency_shared + 2};
  }
  return {.slots = 1, .latency = launch.spec.latency_l2};
}

InstructionTiming TimingOf(const Launch& launch, std::size_t i) {
  const ptx::Instruction& op = launch.kernel.body[i];
  const MemoryAccess access = MemoryAccessOf(op);
  const OpCost cost = CostOf(op, launch.spec);
  if (access.space != ptx::Space::kNone) {
    switch (access.kind) {
      case MemoryKind::kLoad:
        return LoadTiming(launch, access, i);
      case MemoryKind::kStore:
        return {.slots = 1};
      case MemoryKind::kAtomic:
        return AtomicTiming(launch, access);
      case MemoryKind::kAsyncCopy:
        return {.slots = 1, .copy_latency = GlobalLatency(launch, launch.counters[i])};
      case MemoryKind::kNone:
        break;
    }
  }
  if (IsCtaBarrier(op)) {
    return {.slots = 1, .delay = launch.spec.latency_barrier};
  }
  InstructionTiming timing{.slots = cost.issue, .latency = cost.latency};
  if (!op.parts.empty() && op.parts.front() == "cp" && op.Has("async")) {
    timing.commits_copies = op.Has("commit_group") || op.Has("wait_all");
    if (op.Has("wait_all")) {
      timing.copies_left = 0;
    } else if (op.Has("wait_group") && !op.operands.empty()) {
      timing.copies_left = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(op.operands[0].bits, std::numeric_limits<std::uint32_t>::max()));
    }
  }
  return timing;
}

/// Cycles that one warp alone would need for its whole life: how often each segment runs times its
/// critical path, averaged over the warps that were executed.
double WarpCycles(const Launch& launch) {
  std::vector<InstructionTiming> timing;
  timing.reserve(launch.kernel.body.size());
  for (std::size_t i = 0; i < launch.kernel.body.size(); ++i) {
    timing.push_back(TimingOf(launch, i));
  }
  // The warps of a CTA come to the same place together and take turns at issuing.
  constexpr std::uint64_t kWarp = 32;
  const std::uint64_t warps_per_cta = (launch.report.block.Count() + kWarp - 1) / kWarp;
  const double turns = std::max(1.0, double(warps_per_cta) / launch.spec.warp_schedulers);
  for (InstructionTiming& t : timing) {
    t.slots *= turns;
  }
  std::vector<double> runs;
  for (const Segment& segment : launch.segments) {
    runs.push_back(static_cast<double>(launch.counters[segment.first].warps));
  }
  const CopyWaits waits = FindCopyWaits(launch.kernel, launch.segments, runs, timing);
  double cycles = 0;
  for (std::size_t s = 0; s < launch.segments.size(); ++s) {
    const double first = waits.first_runs[s];
    if (first > 0) {
      cycles += first * SegmentCycles(launch.kernel, launch.segments[s], waits.first);
    }
    if (runs[s] > first) {
      cycles += (runs[s] - first) * SegmentCycles(launch.kernel, launch.segments[s], waits.steady);
    }
  }
  return cycles / double(launch.report.ctas_executed * warps_per_cta);
}

/// Pipe cycles are the executed CTAs' on one SM; the busiest SM runs ctas_on_busiest_sm of them.
void AddPipes(const Launch& launch, std::vector<Bound>& bounds) {
  const double share = launch.ctas_on_busiest_sm / double(launch.report.ctas_executed);
  const Demand& demand = launch.demand;
  bounds.push_back({"issue", demand.issued * share / launch.spec.warp_schedulers});
  bounds.push_back({"fma", demand.fma * share});
  bounds.push_back({"alu", demand.alu * share});
  bounds.push_back({"sfu", demand.sfu * share});
  bounds.push_back({"fp64", demand.fp64 * share});
  bounds.push_back({"tensor", demand.tensor * share});
  bounds.push_back({"lsu", demand.lsu * share});
  bounds.push_back({"l1", demand.l1 * share});
}

void AddChipWide(const Launch& launch, std::vector<Bound>& bounds) {
  const GpuSpec& spec = launch.spec;
  const double l2_bytes = (launch.demand.l2_read_sectors + launch.demand.l2_write_sectors) *
                          launch.scale * kSectorBytes;
  // Few SMs cannot ask for all of the L2's bandwidth; below 5 % the latency bound is what counts.
  const double active_share = std::max(0.05, std::min(1.0, launch.grid / spec.sm_count));
  bounds.push_back({"l2", l2_bytes / spec.l2_bytes_per_s * spec.clock_hz / active_share});
  const double dram_bytes = (launch.dram.read + launch.dram.write) * kSectorBytes;
  bounds.push_back({"dram", dram_bytes / spec.dram_bytes_per_s * spec.clock_hz});
  bounds.push_back({"atomics", double(launch.report.atomics.hottest_sector_requests) *
                                   launch.scale * spec.atomic_cycles_per_sector_op});
  bounds.push_back({"cta_launch", launch.grid / spec.cta_launches_per_cycle});
  const double waves = std::max(1.0, launch.ctas_on_busiest_sm / launch.resident_ctas);
  bounds.push_back({"latency", (WarpCycles(launch) + spec.cta_overhead_cycles) * waves});
}

/// Overlapping demands: more than the largest, less than the sum.
double Combine(const std::vector<Bound>& bounds, double p) {
  const double largest = std::ranges::max(bounds, {}, &Bound::cycles).cycles;
  double sum = 0;
  for (const Bound& bound : bounds) {
    sum += std::pow(bound.cycles / largest, p);
  }
  return largest * std::pow(sum, 1 / p);
}

Launch Prepare(const GpuSpec& spec, const ptx::Function& kernel, const simt::LaunchReport& report,
               const KernelResources& resources, std::uint32_t occupancy) {
  Launch launch{.spec = spec, .kernel = kernel, .report = report};
  launch.counters = report.instructions;
  launch.counters.resize(kernel.body.size());
  launch.segments = CutIntoSegments(kernel);
  launch.merges = MergeSharedLoads(kernel, launch.segments, launch.counters);
  launch.demand = SumDemand(spec, kernel, launch.counters, launch.merges);
  AddSpills(resources, launch.counters, spec, launch.demand);
  launch.grid = static_cast<double>(report.ctas);
  launch.scale = launch.grid / static_cast<double>(report.ctas_executed);
  launch.dram = SumDram(spec, report.allocations, launch.scale);
  launch.ctas_on_busiest_sm = CtasOnBusiestSm(launch.grid, spec.sm_count, occupancy);
  launch.resident_ctas = std::min(double(occupancy), std::ceil(launch.grid / spec.sm_count));
  return launch;
}

}  // namespace

ModelledTime ModelTime(const GpuSpec& spec, const ptx::Function& kernel,
                       const simt::LaunchReport& report, const KernelResources& given) {
  KernelResources resources = given;
  ModelledTime out;
  out.registers_estimated = given.registers_per_thread == 0;
  if (out.registers_estimated) {
    resources = EstimateResources(kernel);
    resources.static_shared_bytes =
        std::max(given.static_shared_bytes, resources.static_shared_bytes);
  }
  out.occupancy = ComputeOccupancy(
      spec, resources, static_cast<std::uint32_t>(report.block.Count()), report.dynamic_shared);
  if (out.occupancy.ctas_per_sm == 0 || report.ctas_executed == 0) {
    out.time_us = std::numeric_limits<double>::infinity();
    return out;
  }
  const Launch launch = Prepare(spec, kernel, report, resources, out.occupancy.ctas_per_sm);
  AddPipes(launch, out.bounds);
  AddChipWide(launch, out.bounds);
  const double cycles = Combine(out.bounds, spec.p_norm);
  std::ranges::stable_sort(out.bounds, std::greater{}, &Bound::cycles);
  for (Bound& bound : out.bounds) {
    bound.share = bound.cycles / out.bounds.front().cycles;
  }
  out.time_us = cycles / spec.clock_hz * 1e6 + spec.launch_overhead_us;
  out.dram_read_bytes = launch.dram.read * kSectorBytes;
  out.dram_write_bytes = launch.dram.write * kSectorBytes;
  out.l2_bytes = (launch.demand.l2_read_sectors + launch.demand.l2_write_sectors) * launch.scale *
                 kSectorBytes;
  out.issued_warp_instructions = launch.demand.issued * launch.scale;
  out.shared_load_wavefronts = launch.demand.shared_load_wavefronts * launch.scale;
  out.shared_store_wavefronts = launch.demand.shared_store_wavefronts * launch.scale;
  return out;
}

}  // namespace kernelpro::model
