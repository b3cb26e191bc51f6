// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

/// Nsight Compute's metric names as used here (sm_90 catalogue), and three own prefixes for figures
/// that Nsight Compute has no name for: "model." (the time model), "ptxas." (the assembler) and
/// "ptx." (counts of PTX instructions).
namespace kernelpro::metric {

inline constexpr std::string_view kDuration = "gpu__time_duration.sum";
inline constexpr std::string_view kCyclesElapsed = "sm__cycles_elapsed.max";
inline constexpr std::string_view kClock = "sm__cycles_elapsed.avg.per_second";
inline constexpr std::string_view kCyclesActive = "sm__cycles_active.avg";
inline constexpr std::string_view kCyclesActiveMax = "sm__cycles_active.max";
inline constexpr std::string_view kWarpsActivePct =
    "sm__warps_active.avg.pct_of_peak_sustained_active";
inline constexpr std::string_view kWarpsMaximumPct = "sm__maximum_warps_per_active_cycle_pct";
inline constexpr std::string_view kWarpsEligible = "smsp__warps_eligible.avg.per_cycle_active";

inline constexpr std::string_view kDramRead = "dram__bytes_read.sum";
inline constexpr std::string_view kDramWrite = "dram__bytes_write.sum";
inline constexpr std::string_view kDramPct = "dram__bytes.sum.pct_of_peak_sustained_elapsed";
inline constexpr std::string_view kDramThroughputPct =
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed";
inline constexpr std::string_view kSmThroughputPct =
    "sm__throughput.avg.pct_of_peak_sustained_elapsed";
inline constexpr std::string_view kMemoryThroughputPct =
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed";
inline constexpr std::string_view kL2Pct = "lts__t_sectors.avg.pct_of_peak_sustained_elapsed";
inline constexpr std::string_view kL2XbarPct =
    "lts__lts2xbar_cycles_active.avg.pct_of_peak_sustained_elapsed";
inline constexpr std::string_view kL2SectorsTex = "lts__t_sectors_srcunit_tex.sum";
inline constexpr std::string_view kL2HitPct = "lts__t_sector_hit_rate.pct";
inline constexpr std::string_view kL2AtomSectors = "lts__t_sectors_op_atom.sum";
inline constexpr std::string_view kL2RedSectors = "lts__t_sectors_op_red.sum";
inline constexpr std::string_view kAtomicInputMaxPct =
    "lts__d_atomic_input_cycles_active.max.pct_of_peak_sustained_elapsed";
inline constexpr std::string_view kAtomicInputAvgPct =
    "lts__d_atomic_input_cycles_active.avg.pct_of_peak_sustained_elapsed";

inline constexpr std::string_view kL1Pct =
    "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed";
inline constexpr std::string_view kL1Wavefronts = "l1tex__data_pipe_lsu_wavefronts.sum";
inline constexpr std::string_view kL1HitPct = "l1tex__t_sector_hit_rate.pct";
inline constexpr std::string_view kLoadHitPct =
    "l1tex__t_sector_pipe_lsu_mem_global_op_ld_hit_rate.pct";
inline constexpr std::string_view kLoadRequests = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum";
inline constexpr std::string_view kStoreRequests =
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum";
inline constexpr std::string_view kAtomRequests =
    "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum";
inline constexpr std::string_view kRedRequests = "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum";
inline constexpr std::string_view kLoadSectors = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum";
inline constexpr std::string_view kLoadHitSectors =
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum";
inline constexpr std::string_view kStoreSectors = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum";
inline constexpr std::string_view kLocalLoadSectors =
    "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum";
inline constexpr std::string_view kLocalStoreSectors =
    "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum";
/// The same as the instrumented pass counts them.
inline constexpr std::string_view kLocalLoadSectorsCounted =
    "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_local_op_ld.sum";
inline constexpr std::string_view kLocalStoreSectorsCounted =
    "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_local_op_st.sum";
inline constexpr std::string_view kLoadSectorsCounted =
    "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ld.sum";
inline constexpr std::string_view kStoreSectorsCounted =
    "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_st.sum";
inline constexpr std::string_view kLoadBytesPerSector =
    "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio";
inline constexpr std::string_view kStoreBytesPerSector =
    "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio";
inline constexpr std::string_view kLoadBytes = "smsp__sass_data_bytes_mem_global_op_ld.sum";
inline constexpr std::string_view kStoreBytes = "smsp__sass_data_bytes_mem_global_op_st.sum";

inline constexpr std::string_view kSharedLoadWavefronts =
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum";
inline constexpr std::string_view kSharedStoreWavefronts =
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum";
inline constexpr std::string_view kSharedLoadConflicts =
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum";
inline constexpr std::string_view kSharedStoreConflicts =
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum";
inline constexpr std::string_view kSharedLoads = "smsp__sass_inst_executed_op_shared_ld.sum";
inline constexpr std::string_view kSharedStores = "smsp__sass_inst_executed_op_shared_st.sum";
inline constexpr std::string_view kSharedAtomics = "smsp__sass_inst_executed_op_shared_atom.sum";
inline constexpr std::string_view kSharedLoadsHw = "smsp__inst_executed_op_shared_ld.sum";
inline constexpr std::string_view kSharedStoresHw = "smsp__inst_executed_op_shared_st.sum";
inline constexpr std::string_view kGlobalLoads = "smsp__sass_inst_executed_op_global_ld.sum";
inline constexpr std::string_view kGlobalStores = "smsp__sass_inst_executed_op_global_st.sum";
inline constexpr std::string_view kAsyncCopies = "smsp__sass_inst_executed_op_ldgsts.sum";
inline constexpr std::string_view kLocalLoads = "smsp__sass_inst_executed_op_local_ld.sum";
inline constexpr std::string_view kLocalStores = "smsp__sass_inst_executed_op_local_st.sum";
inline constexpr std::string_view kMemory8b = "smsp__sass_inst_executed_op_memory_8b.sum";
inline constexpr std::string_view kMemory16b = "smsp__sass_inst_executed_op_memory_16b.sum";
inline constexpr std::string_view kMemory32b = "smsp__sass_inst_executed_op_memory_32b.sum";
inline constexpr std::string_view kMemory64b = "smsp__sass_inst_executed_op_memory_64b.sum";
inline constexpr std::string_view kMemory128b = "smsp__sass_inst_executed_op_memory_128b.sum";

inline constexpr std::string_view kInstructions = "smsp__inst_executed.sum";
inline constexpr std::string_view kThreadInstructions = "smsp__thread_inst_executed.sum";
inline constexpr std::string_view kThreadInstructionsOn = "smsp__thread_inst_executed_pred_on.sum";
inline constexpr std::string_view kThreadInstructionsCounted =
    "smsp__sass_thread_inst_executed_pred_on.sum";
inline constexpr std::string_view kLanesActive =
    "smsp__thread_inst_executed_per_inst_executed.ratio";
inline constexpr std::string_view kLanesOn =
    "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio";
inline constexpr std::string_view kBranchesDivergent =
    "smsp__sass_branch_targets_threads_divergent.sum";
inline constexpr std::string_view kBranchesUniformPct =
    "smsp__sass_average_branch_targets_threads_uniform.pct";
inline constexpr std::string_view kIssueActive = "smsp__issue_active.avg.per_cycle_active";

inline constexpr std::string_view kFadd = "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum";
inline constexpr std::string_view kFmul = "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum";
inline constexpr std::string_view kFfma = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum";
inline constexpr std::string_view kDadd = "smsp__sass_thread_inst_executed_op_dadd_pred_on.sum";
inline constexpr std::string_view kDmul = "smsp__sass_thread_inst_executed_op_dmul_pred_on.sum";
inline constexpr std::string_view kDfma = "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum";
inline constexpr std::string_view kFp64 = "smsp__sass_thread_inst_executed_op_fp64_pred_on.sum";
inline constexpr std::string_view kInteger =
    "smsp__sass_thread_inst_executed_op_integer_pred_on.sum";
inline constexpr std::string_view kBit = "smsp__sass_thread_inst_executed_op_bit_pred_on.sum";
inline constexpr std::string_view kConversion =
    "smsp__sass_thread_inst_executed_op_conversion_pred_on.sum";
inline constexpr std::string_view kControl =
    "smsp__sass_thread_inst_executed_op_control_pred_on.sum";
inline constexpr std::string_view kMemoryThreads =
    "smsp__sass_thread_inst_executed_op_memory_pred_on.sum";

inline constexpr std::string_view kFmaPct =
    "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed";
inline constexpr std::string_view kAluPct =
    "sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_elapsed";
inline constexpr std::string_view kFp64Pct =
    "sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_elapsed";
inline constexpr std::string_view kTensorPct =
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed";
inline constexpr std::string_view kXuPct =
    "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_elapsed";
inline constexpr std::string_view kLsuPct =
    "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_elapsed";
inline constexpr std::string_view kPipeFma = "smsp__inst_executed_pipe_fma.sum";
inline constexpr std::string_view kPipeAlu = "smsp__inst_executed_pipe_alu.sum";
inline constexpr std::string_view kPipeFp64 = "smsp__inst_executed_pipe_fp64.sum";
inline constexpr std::string_view kPipeXu = "smsp__inst_executed_pipe_xu.sum";
inline constexpr std::string_view kPipeLsu = "smsp__inst_executed_pipe_lsu.sum";

inline constexpr std::string_view kGridSize = "launch__grid_size";
inline constexpr std::string_view kBlockSize = "launch__block_size";
inline constexpr std::string_view kWaves = "launch__waves_per_multiprocessor";
inline constexpr std::string_view kRegisters = "launch__registers_per_thread";
inline constexpr std::string_view kSharedPerBlock = "launch__shared_mem_per_block";
inline constexpr std::string_view kSharedStatic = "launch__shared_mem_per_block_static";
inline constexpr std::string_view kSharedDynamic = "launch__shared_mem_per_block_dynamic";
inline constexpr std::string_view kLimitRegisters = "launch__occupancy_limit_registers";
inline constexpr std::string_view kLimitShared = "launch__occupancy_limit_shared_mem";
inline constexpr std::string_view kLimitBlocks = "launch__occupancy_limit_blocks";
inline constexpr std::string_view kLimitWarps = "launch__occupancy_limit_warps";

inline constexpr std::string_view kWarpLatency = "smsp__average_warp_latency_per_inst_issued.ratio";
inline constexpr std::string_view kStallBarrier =
    "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio";
inline constexpr std::string_view kStallLongScoreboard =
    "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio";
inline constexpr std::string_view kStallShortScoreboard =
    "smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio";
inline constexpr std::string_view kStallMioThrottle =
    "smsp__average_warps_issue_stalled_mio_throttle_per_issue_active.ratio";
inline constexpr std::string_view kStallLgThrottle =
    "smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio";
inline constexpr std::string_view kStallWait =
    "smsp__average_warps_issue_stalled_wait_per_issue_active.ratio";

/// The time model's exposed latency, CTA launch and fixed launch cost, in percent of the kernel's
/// modelled time.
inline constexpr std::string_view kModelLatencyPct = "model.latency.pct";
inline constexpr std::string_view kModelCtaLaunchPct = "model.cta_launch.pct";
inline constexpr std::string_view kModelLaunchOverheadPct = "model.launch_overhead.pct";
inline constexpr std::string_view kSpillStores = "ptxas.spill_store_bytes";
inline constexpr std::string_view kSpillLoads = "ptxas.spill_load_bytes";
inline constexpr std::string_view kLocalBytes = "ptxas.local_bytes_per_thread";
/// Warp-level executions.
inline constexpr std::string_view kBarriers = "ptx.barriers";
/// Lane-level executions: conversions between f32 (or narrower) and f64; integer division and
/// remainder; special functions.
inline constexpr std::string_view kDoubleConversions = "ptx.double_conversions";
inline constexpr std::string_view kDivisions = "ptx.integer_divisions";
inline constexpr std::string_view kSpecialFunctions = "ptx.special_functions";
/// Lane-level accesses to global memory of 64-bit floating-point type.
inline constexpr std::string_view kDoubleAccesses = "ptx.double_global_accesses";
/// Lane-level global atomics and reductions, and those on the busiest 32-byte sector.
inline constexpr std::string_view kAtomicOperations = "ptx.global_atomic_operations";
inline constexpr std::string_view kAtomicHottest = "ptx.global_atomic_hottest_sector";

}  // namespace kernelpro::metric
