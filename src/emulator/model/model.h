// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "emulator/ptx/module.h"
#include "emulator/simt/engine.h"
#include "emulator/simt/report.h"

/// Modelled time: "bounded resources + exposed latency", a p-norm over the busiest SM's demands.
namespace kernelpro::model {

/// One figure of a spec file as it stands there.
struct SpecNumber {
  std::string key;  ///< with its unit: "dram_gb_s"
  double value = 0;
  std::string source;
  bool calibrated = false;  ///< measured on, or confirmed by kernels timed on, this very GPU
  bool verify = false;      ///< nobody looked it up: check before printing it as a fact
};

/// Constants of one GPU, read from a data file (src/emulator/model/specs/<name>.toml) in which
/// every number carries its source.
struct GpuSpec {
  std::string name;         ///< "h200"
  std::string title;        ///< "NVIDIA H200 SXM"
  bool calibrated = false;  ///< constants measured on the real thing, or taken from data sheets
  std::uint32_t compute_capability = 90;
  std::uint32_t sm_count = 0;
  double clock_hz = 0;
  std::uint32_t warps_per_sm = 0, ctas_per_sm = 0, registers_per_sm = 0;
  std::uint64_t shared_per_sm_bytes = 0, shared_per_cta_bytes = 0,
                shared_reserved_per_cta_bytes = 0;
  std::uint64_t l1_bytes = 0, l2_bytes = 0, memory_bytes = 0;
  double dram_bytes_per_s = 0;       ///< achievable, measured
  double dram_peak_bytes_per_s = 0;  ///< data sheet
  double l2_bytes_per_s = 0;
  double warp_schedulers = 4;                                           ///< per SM
  double fp32_lanes = 0, int_lanes = 0, fp64_lanes = 0, sfu_lanes = 0;  ///< per SM per cycle
  double latency_l1 = 0, latency_shared = 0, latency_l2 = 0, latency_dram = 0;  ///< cycles
  double latency_alu = 0, latency_fp64 = 0, latency_sfu = 0, latency_division = 0,
         latency_shuffle = 0, latency_barrier = 0;
  double cta_launches_per_cycle = 0;  ///< chip wide
  double cta_overhead_cycles = 0, atomic_cycles_per_sector_op = 0, launch_overhead_us = 0;
  double p_norm = 4;
  double tensor_f16_flops_per_s = 0;  ///< dense f16/bf16 with f32 accumulation, chip wide
  double mma_sync_efficiency = 1;     ///< share of that which mma.sync and wmma reach
  double store_cycles_per_line = 4;   ///< L1 cycles of one 128-byte line of a store
  std::vector<SpecNumber> numbers;    ///< everything above with its source, in file order
};

/// kNotFound lists the known names.
[[nodiscard]] Result<GpuSpec> LoadSpec(std::string_view name);
[[nodiscard]] std::vector<std::string> SpecNames();
[[nodiscard]] simt::EngineSpec ToEngineSpec(const GpuSpec& spec);

/// What the assembler said of a kernel; registers 0 when unknown (then estimated and said so).
struct KernelResources {
  std::uint32_t registers_per_thread = 0;
  std::uint64_t static_shared_bytes = 0;
  std::uint64_t local_bytes_per_thread = 0;
  std::uint64_t spill_store_bytes = 0, spill_load_bytes = 0;
};

struct Occupancy {
  std::uint32_t ctas_per_sm = 0;  ///< 0: the block does not fit at all
  std::uint32_t warps_per_sm = 0;
  double theoretical = 0;  ///< 0..1 of warps_per_sm
  /// CTAs per SM that each limit alone would allow (ncu launch__occupancy_limit_*).
  std::uint32_t limit_warps = 0, limit_registers = 0, limit_shared = 0, limit_ctas = 0;
};

/// Where no assembler is at hand: registers from the largest number of 32-bit values alive at once
/// plus 8, shared and local memory from the declarations. An estimate: ptxas also moves code, which
/// can need fewer registers or more; show it as one.
[[nodiscard]] KernelResources EstimateResources(const ptx::Function& kernel);

/// The CUDA occupancy rules of compute capability 8.0 to 9.0 (cuda_occupancy.h): warps allocate
/// registers in units of 256, shared memory in units of 128 bytes.
[[nodiscard]] Occupancy ComputeOccupancy(const GpuSpec& spec, const KernelResources& resources,
                                         std::uint32_t threads_per_cta,
                                         std::uint64_t dynamic_shared);

/// Bytes of the L1 that the driver turns into shared memory: the smallest size the hardware offers
/// that holds `ctas_per_sm` CTAs with this much static and dynamic shared memory each. For
/// simt::LaunchConfig::l1_carveout_bytes.
[[nodiscard]] std::uint64_t SharedCarveout(const GpuSpec& spec, std::uint32_t ctas_per_sm,
                                           std::uint64_t shared_per_cta);

/// One resource's demand on the busiest SM.
struct Bound {
  std::string name;  ///< issue fma alu sfu fp64 tensor l1 lsu l2 dram atomics cta_launch latency
  double cycles = 0;
  double share = 0;  ///< cycles / cycles of the largest bound
};

struct ModelledTime {
  /// Infinite when there is nothing to model: the block does not fit on an SM, or no CTA ran.
  double time_us = 0;
  bool registers_estimated = false;  ///< no figure from ptxas: see EstimateResources
  std::vector<Bound> bounds;         ///< largest first, all of them
  Occupancy occupancy;
  double dram_read_bytes = 0, dram_write_bytes = 0, l2_bytes = 0;
  /// Chip-wide totals scaled to the whole grid, after the corrections below (SASS-like counts).
  double issued_warp_instructions = 0;
  double shared_load_wavefronts = 0, shared_store_wavefronts = 0;
};

[[nodiscard]] ModelledTime ModelTime(const GpuSpec& spec, const ptx::Function& kernel,
                                     const simt::LaunchReport& report,
                                     const KernelResources& resources);

}  // namespace kernelpro::model
