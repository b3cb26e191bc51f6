// SPDX-License-Identifier: Apache-2.0
#include "profile/emulation_profile.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/device.h"
#include "emulator/model/model.h"
#include "kernelpro/profile.h"
#include "profile/demangle.h"
#include "profile/emulation_tally.h"
#include "profile/metric_names.h"
#include "profile/ptx_opcode.h"

namespace kernelpro {
namespace {

using Metrics = std::map<std::string, Metric>;

void Counted(Metrics& metrics, std::string_view name, double value, std::string_view unit) {
  metrics[std::string(name)] = {value, std::string(unit), Provenance::kCounted};
}

void Modelled(Metrics& metrics, std::string_view name, double value, std::string_view unit) {
  metrics[std::string(name)] = {value, std::string(unit), Provenance::kModelled};
}

/// A ratio exists only where its denominator does.
void CountedRatio(Metrics& metrics, std::string_view name, double part, double whole,
                  std::string_view unit) {
  if (whole > 0) {
    Counted(metrics, name, part / whole, unit);
  }
}

double LanesOf(const Tally& t, OpClass op) {
  const auto found = t.lanes_by_class.find(op);
  return found == t.lanes_by_class.end() ? 0 : found->second;
}

void GlobalMetrics(const Tally& t, Metrics& m) {
  Counted(m, metric::kGlobalLoads, t.load.instructions, "inst");
  Counted(m, metric::kGlobalStores, t.store.instructions, "inst");
  Counted(m, metric::kAsyncCopies, t.async_copy.instructions, "inst");
  // The hardware's counters of loads hold LDGSTS too (seen on the H200); the instrumented ones,
  // which count instructions and bytes, do not.
  const double load_sectors = t.load.sectors + t.async_copy.sectors;
  const double load_hits = t.load.hit_sectors + t.async_copy.hit_sectors;
  Counted(m, metric::kLoadRequests, t.load.requests + t.async_copy.requests, "request");
  Counted(m, metric::kStoreRequests, t.store.requests, "request");
  Counted(m, metric::kAtomRequests, t.atomic.requests, "request");
  Counted(m, metric::kRedRequests, t.reduction.requests, "request");
  Counted(m, metric::kLoadSectors, load_sectors, "sector");
  Counted(m, metric::kLoadHitSectors, load_hits, "sector");
  Counted(m, metric::kStoreSectors, t.store.sectors, "sector");
  Counted(m, metric::kLoadBytes, t.load.bytes, "byte");
  Counted(m, metric::kStoreBytes, t.store.bytes, "byte");
  CountedRatio(m, metric::kLoadBytesPerSector, t.load.used_bytes, t.load.sectors, "byte/sector");
  CountedRatio(m, metric::kStoreBytesPerSector, t.store.used_bytes, t.store.sectors, "byte/sector");
  CountedRatio(m, metric::kLoadHitPct, 100 * load_hits, load_sectors, "%");
  CountedRatio(m, metric::kL1HitPct, 100 * (load_hits + t.local_load.hit_sectors),
               load_sectors + t.local_load.sectors, "%");
  Counted(m, metric::kLocalLoads, t.local_load.instructions, "inst");
  Counted(m, metric::kLocalStores, t.local_store.instructions, "inst");
  Counted(m, metric::kLocalLoadSectors, t.local_load.sectors, "sector");
  Counted(m, metric::kLocalStoreSectors, t.local_store.sectors, "sector");
}

void SharedMetrics(const Tally& t, Metrics& m) {
  Counted(m, metric::kSharedLoads, t.shared_load.instructions, "inst");
  Counted(m, metric::kSharedStores, t.shared_store.instructions, "inst");
  Counted(m, metric::kSharedAtomics, t.shared_atomic.instructions, "inst");
  Counted(m, metric::kSharedLoadWavefronts, t.shared_load.wavefronts, "wavefront");
  Counted(m, metric::kSharedStoreWavefronts, t.shared_store.wavefronts, "wavefront");
  Counted(m, metric::kSharedLoadConflicts,
          std::max(0.0, t.shared_load.wavefronts - t.shared_load.ideal_wavefronts), "conflict");
  Counted(m, metric::kSharedStoreConflicts,
          std::max(0.0, t.shared_store.wavefronts - t.shared_store.ideal_wavefronts), "conflict");
}

void InstructionMetrics(const Tally& t, Metrics& m) {
  constexpr std::array<std::string_view, 5> kWidths = {metric::kMemory8b, metric::kMemory16b,
                                                       metric::kMemory32b, metric::kMemory64b,
                                                       metric::kMemory128b};
  for (std::size_t i = 0; i < kWidths.size(); ++i) {
    Counted(m, kWidths[i], t.width[i], "inst");
  }
  constexpr std::array<std::pair<OpClass, std::string_view>, 10> kClasses = {{
      {OpClass::kFadd, metric::kFadd},
      {OpClass::kFmul, metric::kFmul},
      {OpClass::kFfma, metric::kFfma},
      {OpClass::kDadd, metric::kDadd},
      {OpClass::kDmul, metric::kDmul},
      {OpClass::kDfma, metric::kDfma},
      {OpClass::kBit, metric::kBit},
      {OpClass::kConversion, metric::kConversion},
      {OpClass::kControl, metric::kControl},
      {OpClass::kMemory, metric::kMemoryThreads},
  }};
  for (const auto& [op, name] : kClasses) {
    Counted(m, name, LanesOf(t, op), "inst");
  }
  Counted(m, metric::kInteger,
          LanesOf(t, OpClass::kInteger) + LanesOf(t, OpClass::kIntegerDivision), "inst");
  Counted(m, metric::kFp64, t.fp64, "inst");
  Counted(m, metric::kThreadInstructions, t.lanes, "inst");
  Counted(m, metric::kThreadInstructionsOn, t.lanes_on, "inst");
  CountedRatio(m, metric::kLanesActive, t.lanes, t.warps, "");
  CountedRatio(m, metric::kLanesOn, t.lanes_on, t.warps, "");
  Counted(m, metric::kBranchesDivergent, t.divergent, "branch");
  CountedRatio(m, metric::kBranchesUniformPct, 100 * (t.branches - t.divergent), t.branches, "%");
  Counted(m, metric::kBarriers, t.barriers, "inst");
  Counted(m, metric::kDoubleConversions, t.double_conversions, "inst");
  Counted(m, metric::kDoubleAccesses, t.double_accesses, "access");
  Counted(m, metric::kDivisions, LanesOf(t, OpClass::kIntegerDivision), "inst");
  Counted(m, metric::kSpecialFunctions, LanesOf(t, OpClass::kSpecial), "inst");
}

void TallyMetrics(const Tally& t, Metrics& m) {
  GlobalMetrics(t, m);
  SharedMetrics(t, m);
  InstructionMetrics(t, m);
}

double BoundPct(const KernelTally& k, const std::string& name) {
  const auto found = k.bound_cycles.find(name);
  if (found == k.bound_cycles.end() || k.run_cycles <= 0) {
    return 0;
  }
  return std::min(100.0, 100 * found->second / k.run_cycles);
}

void PipeMetrics(const KernelTally& k, const model::GpuSpec& spec, KernelProfile& out) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kBounds = {{
      {"fma", metric::kFmaPct},
      {"alu", metric::kAluPct},
      {"fp64", metric::kFp64Pct},
      {"sfu", metric::kXuPct},
      {"tensor", metric::kTensorPct},
      {"lsu", metric::kLsuPct},
      {"l1", metric::kL1Pct},
      {"l2", metric::kL2Pct},
      {"latency", metric::kModelLatencyPct},
      {"cta_launch", metric::kModelCtaLaunchPct},
  }};
  Metrics& m = out.metrics;
  for (const auto& [bound, name] : kBounds) {
    if (k.bound_cycles.contains(std::string(bound))) {
      Modelled(m, name, BoundPct(k, std::string(bound)), "%");
    } else {
      out.missing.emplace_back(name);
    }
  }
  if (k.bound_cycles.contains("issue")) {
    Modelled(m, metric::kIssueActive, BoundPct(k, "issue") / 100, "inst/cycle");
  } else {
    out.missing.emplace_back(metric::kIssueActive);
  }
  if (k.atomic_operations > 0 && k.bound_cycles.contains("atomics")) {
    Modelled(m, metric::kAtomicInputMaxPct, BoundPct(k, "atomics"), "%");
  }
  const double seconds = spec.clock_hz > 0 ? k.run_cycles / spec.clock_hz : 0;
  if (seconds > 0 && spec.dram_peak_bytes_per_s > 0) {
    const double rate = (k.dram_read + k.dram_write) / seconds;
    Modelled(m, metric::kDramPct, std::min(100.0, 100 * rate / spec.dram_peak_bytes_per_s), "%");
  } else {
    out.missing.emplace_back(metric::kDramPct);
  }
}

void MemoryModelMetrics(const KernelTally& k, Metrics& m) {
  Modelled(m, metric::kDramRead, k.dram_read, "byte");
  Modelled(m, metric::kDramWrite, k.dram_write, "byte");
  Modelled(m, metric::kL2SectorsTex, k.l2_bytes / 32, "sector");
  if (k.l2_bytes > 0) {
    const double miss = std::min(1.0, (k.dram_read + k.dram_write) / k.l2_bytes);
    Modelled(m, metric::kL2HitPct, 100 * (1 - miss), "%");
  }
  Counted(m, metric::kL2AtomSectors, k.total.atomic.sectors, "sector");
  Counted(m, metric::kL2RedSectors, k.total.reduction.sectors, "sector");
  Counted(m, metric::kAtomicOperations, k.atomic_operations, "access");
  Counted(m, metric::kAtomicHottest, k.atomic_hottest, "access");
  // After the model's corrections for vector merging, conflicts keep their share of the wavefronts.
  const auto correct = [&m](std::string_view wavefronts, std::string_view conflicts,
                            double modelled) {
    Metric& count = m[std::string(wavefronts)];
    if (modelled > 0 && count.value > 0) {
      const double factor = modelled / count.value;
      const double replays = m[std::string(conflicts)].value * factor;
      Modelled(m, wavefronts, modelled, "wavefront");
      Modelled(m, conflicts, replays, "conflict");
    }
  };
  correct(metric::kSharedLoadWavefronts, metric::kSharedLoadConflicts, k.shared_load_wavefronts);
  correct(metric::kSharedStoreWavefronts, metric::kSharedStoreConflicts, k.shared_store_wavefronts);
  // A load takes the data stage for one cycle a line; a store for about two (measured on sm_90).
  const Tally& t = k.total;
  Modelled(m, metric::kL1Wavefronts,
           t.load.lines + t.async_copy.lines + t.async_copy.wavefronts + 2 * t.store.lines +
               t.atomic.lines + t.reduction.lines + t.local_load.lines + 2 * t.local_store.lines +
               m[std::string(metric::kSharedLoadWavefronts)].value +
               m[std::string(metric::kSharedStoreWavefronts)].value +
               2 * t.shared_atomic.wavefronts,
           "wavefront");
  Modelled(m, metric::kInstructions, k.issued > 0 ? k.issued : t.warps, "inst");
}

void LaunchMetrics(const KernelTally& k, const model::GpuSpec& spec, KernelProfile& out) {
  const EmulatedLaunch& launch = *k.longest;
  const model::Occupancy& occupancy = launch.time.occupancy;
  Metrics& m = out.metrics;
  const auto threads = static_cast<double>(launch.report.block.Count());
  const auto ctas = static_cast<double>(launch.report.ctas);
  Counted(m, metric::kGridSize, ctas, "");
  Counted(m, metric::kBlockSize, threads, "");
  CountedRatio(m, metric::kWaves, ctas, double{1} * spec.sm_count * occupancy.ctas_per_sm, "");
  const auto registers = static_cast<double>(launch.resources.registers_per_thread);
  if (registers > 0 && !launch.resources_estimated) {
    Counted(m, metric::kRegisters, registers, "register/thread");
  } else if (registers > 0) {
    Modelled(m, metric::kRegisters, registers, "register/thread");
  } else {
    out.missing.emplace_back(metric::kRegisters);
  }
  const auto fixed = static_cast<double>(launch.report.static_shared);
  const auto dynamic = static_cast<double>(launch.report.dynamic_shared);
  Counted(m, metric::kSharedStatic, fixed, "byte");
  Counted(m, metric::kSharedDynamic, dynamic, "byte");
  Counted(m, metric::kSharedPerBlock, fixed + dynamic, "byte");
  Counted(m, metric::kLimitRegisters, occupancy.limit_registers, "block");
  Counted(m, metric::kLimitShared, occupancy.limit_shared, "block");
  Counted(m, metric::kLimitBlocks, occupancy.limit_ctas, "block");
  Counted(m, metric::kLimitWarps, occupancy.limit_warps, "block");
  Counted(m, metric::kWarpsMaximumPct, 100 * occupancy.theoretical, "%");
  Modelled(m, metric::kWarpsActivePct, k.time_us > 0 ? 100 * k.occupancy_time / k.time_us : 0, "%");
  if (launch.resources_estimated) {
    out.missing.emplace_back(metric::kSpillStores);
    out.missing.emplace_back(metric::kSpillLoads);
  } else {
    Counted(m, metric::kSpillStores, static_cast<double>(launch.resources.spill_store_bytes),
            "byte/thread");
    Counted(m, metric::kSpillLoads, static_cast<double>(launch.resources.spill_load_bytes),
            "byte/thread");
    Counted(m, metric::kLocalBytes, static_cast<double>(launch.resources.local_bytes_per_thread),
            "byte/thread");
  }
}

void TimeMetrics(const KernelTally& k, const model::GpuSpec& spec, Metrics& m) {
  Modelled(m, metric::kDuration, k.time_us * 1e3, "ns");
  Modelled(m, metric::kCyclesElapsed, k.run_cycles, "cycle");
  Modelled(m, metric::kClock, spec.clock_hz, "hz");
  if (k.time_us > 0) {
    const double overhead = std::min(k.time_us, k.launches * spec.launch_overhead_us);
    Modelled(m, metric::kModelLaunchOverheadPct, 100 * overhead / k.time_us, "%");
  }
}

/// Only what is not zero: a line has few of the many kinds.
void LineProfiles(const KernelTally& k, KernelProfile& out) {
  for (const auto& [where, tally] : k.lines) {
    LineMetrics line{.file = where.first, .line = where.second, .metrics = {}};
    TallyMetrics(tally, line.metrics);
    Counted(line.metrics, metric::kInstructions, tally.warps, "inst");
    std::erase_if(line.metrics, [](const auto& entry) { return entry.second.value == 0; });
    out.lines.push_back(std::move(line));
  }
}

/// A launch that was run whole has no L1 hits counted: unknown, not zero.
void DropHits(KernelProfile& out) {
  for (const std::string_view name :
       {metric::kLoadHitSectors, metric::kLoadHitPct, metric::kL1HitPct}) {
    out.metrics.erase(std::string(name));
    out.missing.emplace_back(name);
    for (LineMetrics& line : out.lines) {
      line.metrics.erase(std::string(name));
    }
  }
}

KernelProfile ToProfile(const KernelTally& k, const model::GpuSpec& spec) {
  KernelProfile out;
  const EmulatedLaunch& launch = *k.longest;
  out.mangled = launch.report.kernel;
  out.name = KernelName(out.mangled);
  const simt::Dim3& grid = launch.report.grid;
  const simt::Dim3& block = launch.report.block;
  std::ranges::copy(std::array{grid.x, grid.y, grid.z}, out.grid);
  std::ranges::copy(std::array{block.x, block.y, block.z}, out.block);
  out.time_us = k.time_us;
  out.time_provenance = Provenance::kModelled;
  TallyMetrics(k.total, out.metrics);
  MemoryModelMetrics(k, out.metrics);
  PipeMetrics(k, spec, out);
  LaunchMetrics(k, spec, out);
  TimeMetrics(k, spec, out.metrics);
  LineProfiles(k, out);
  if (!k.hits_known) {
    DropHits(out);
  }
  for (const auto& [opcode, count] : k.opcodes) {
    out.opcodes[opcode] = static_cast<std::uint64_t>(std::llround(count));
  }
  for (const std::string_view name :
       {metric::kWarpLatency, metric::kStallBarrier, metric::kStallLongScoreboard,
        metric::kStallShortScoreboard, metric::kStallMioThrottle, metric::kStallLgThrottle,
        metric::kStallWait, metric::kWarpsEligible}) {
    out.missing.emplace_back(name);
  }
  return out;
}

void FillTask(const TaskNeeds& needs, const model::GpuSpec& spec, Profile& profile) {
  double floor_s = 0;
  if (needs.compulsory_bytes > 0) {
    profile.task["compulsory_bytes"] = {needs.compulsory_bytes, "byte", Provenance::kCounted};
    if (spec.dram_bytes_per_s > 0) {
      floor_s = needs.compulsory_bytes / spec.dram_bytes_per_s;
    }
  }
  if (needs.flops > 0) {
    profile.task["flops"] = {needs.flops, "flop", Provenance::kCounted};
    const double rate = 2 * spec.fp32_lanes * spec.sm_count * spec.clock_hz;
    if (rate > 0) {
      floor_s = std::max(floor_s, needs.flops / rate);
    }
  }
  if (needs.widest_float_bytes) {
    profile.task["widest_float_bytes"] = {*needs.widest_float_bytes, "byte", Provenance::kCounted};
  }
  if (floor_s > 0) {
    profile.task["floor_us"] = {floor_s * 1e6, "us", Provenance::kModelled};
  }
}

}  // namespace

Profile FromEmulation(const std::vector<EmulatedLaunch>& launches, const DeviceInfo& device,
                      const model::GpuSpec& spec, const TaskNeeds& needs) {
  Profile profile;
  profile.device = device.id;
  profile.source = "emulation";
  std::map<std::string, KernelTally> kernels;
  for (const EmulatedLaunch& launch : launches) {
    kernels[launch.report.kernel].Add(launch, spec);
  }
  double total_us = 0;
  for (const auto& [name, tally] : kernels) {
    profile.kernels.push_back(ToProfile(tally, spec));
    total_us += tally.time_us;
  }
  for (KernelProfile& kernel : profile.kernels) {
    kernel.time_share = total_us > 0 ? kernel.time_us / total_us : 1;
  }
  std::ranges::stable_sort(profile.kernels, [](const KernelProfile& a, const KernelProfile& b) {
    return a.time_us > b.time_us;
  });
  FillTask(needs, spec, profile);
  return profile;
}

}  // namespace kernelpro
