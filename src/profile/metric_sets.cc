// SPDX-License-Identifier: Apache-2.0
#include "profile/metric_sets.h"

#include <array>
#include <cstdint>
#include <span>

namespace kernelpro::metric_sets {
namespace {

constexpr std::uint8_t k80 = 1, k90 = 2, k100 = 4, kAll = k80 | k90 | k100;

constexpr Entry kRoofline[] = {
    {"gpu__time_duration.sum", kAll},
    {"sm__cycles_elapsed.max", kAll},
    {"sm__cycles_elapsed.avg.per_second", kAll},
    {"sm__cycles_active.avg", kAll},
    {"sm__cycles_active.max", kAll},
    {"sm__cycles_active.min", kAll},
    {"dram__bytes_read.sum", kAll},
    {"dram__bytes_write.sum", kAll},
    {"dram__bytes.sum.pct_of_peak_sustained_elapsed", kAll},
    {"dram__bytes.sum.peak_sustained", kAll},
    {"dram__cycles_elapsed.avg.per_second", kAll},
    {"lts__t_sectors.sum", kAll},
    {"lts__t_sectors.avg.pct_of_peak_sustained_elapsed", kAll},
    {"lts__t_sector_hit_rate.pct", kAll},
    {"lts__lts2xbar_cycles_active.sum", kAll},
    {"lts__lts2xbar_cycles_active.avg.pct_of_peak_sustained_elapsed", kAll},
    {"l1tex__t_sector_hit_rate.pct", kAll},
    {"l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed", kAll},
    {"l1tex__m_xbar2l1tex_read_sectors.sum", kAll},
    {"smsp__issue_active.avg.per_cycle_active", kAll},
    {"smsp__inst_executed.sum", kAll},
    {"sm__warps_active.avg.pct_of_peak_sustained_active", kAll},
    {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", kAll},
    {"sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed", kAll},
    {"sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_elapsed", kAll},
    {"sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_elapsed", kAll},
    {"sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_elapsed", kAll},
    {"sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_elapsed", kAll},
};

constexpr Entry kLaunch[] = {
    {"launch__grid_size", kAll},
    {"launch__block_size", kAll},
    {"launch__waves_per_multiprocessor", kAll},
    {"launch__registers_per_thread", kAll},
    {"launch__shared_mem_per_block", kAll},
    {"launch__shared_mem_per_block_static", kAll},
    {"launch__shared_mem_per_block_dynamic", kAll},
    {"launch__occupancy_limit_registers", kAll},
    {"launch__occupancy_limit_shared_mem", kAll},
    {"launch__occupancy_limit_blocks", kAll},
    {"launch__occupancy_limit_warps", kAll},
    {"launch__occupancy_limit_barriers", kAll},
    {"launch__occupancy_cluster_pct", kAll},
    {"launch__sm_count", kAll},
    {"launch__cluster_size", kAll},
    {"sm__maximum_warps_per_active_cycle_pct", kAll},
    {"device__attribute_display_name", kAll},
    {"device__attribute_compute_capability_major", kAll},
    {"device__attribute_compute_capability_minor", kAll},
    {"device__attribute_l2_cache_size", kAll},
    {"profiler__replayer_passes", kAll},
};

constexpr Entry kDuration[] = {
    {"gpu__time_duration.sum", kAll},
};

constexpr Entry kShared[] = {
    {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", kAll},
    {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum", kAll},
    {"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", kAll},
    {"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum", kAll},
    {"l1tex__data_pipe_lsu_wavefronts.sum", kAll},
};

constexpr Entry kL1[] = {
    {"l1tex__t_sector_pipe_lsu_mem_global_op_ld_hit_rate.pct", kAll},
    {"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", kAll},
    {"l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", kAll},
    {"l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum", kAll},
    {"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio", kAll},
    {"l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", kAll},
    {"l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", kAll},
    {"l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum", kAll},
    {"l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum", kAll},
};

constexpr Entry kL2[] = {
    {"lts__t_sector_op_read_hit_rate.pct", kAll},   {"lts__t_sectors_op_read.sum", kAll},
    {"lts__t_sectors_op_write.sum", kAll},          {"lts__t_sectors_srcunit_tex.sum", kAll},
    {"lts__t_sectors_srcunit_ltcfabric.sum", kAll},
};

constexpr Entry kAperture[] = {
    {"lts__t_sectors_aperture_sysmem.sum", k80 | k90},
    {"lts__t_sectors_aperture_peer.sum", k80 | k90},
    {"syslts__t_sectors_aperture_sysmem.sum", k100},
    {"syslts__t_sectors_aperture_peer.sum", k100},
};

constexpr Entry kScheduler[] = {
    {"smsp__issue_active.avg.per_cycle_active", kAll},
    {"smsp__warps_active.avg.per_cycle_active", kAll},
    {"smsp__warps_eligible.avg.per_cycle_active", kAll},
    {"sm__warps_active.avg.pct_of_peak_sustained_active", kAll},
};

constexpr Entry kStall6[] = {
    {"smsp__average_warp_latency_per_inst_issued.ratio", kAll},
    {"smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio", kAll},
    {"smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio", kAll},
    {"smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio", kAll},
    {"smsp__average_warps_issue_stalled_wait_per_issue_active.ratio", kAll},
    {"smsp__average_warps_issue_stalled_math_pipe_throttle_per_issue_active.ratio", kAll},
    {"smsp__average_warps_issue_stalled_mio_throttle_per_issue_active.ratio", kAll},
};

constexpr Entry kStalls[] = {
    {"smsp__average_warps_issue_stalled_branch_resolving_per_issue_active.ratio", kAll},
    {"smsp__average_warps_issue_stalled_dispatch_stall_per_issue_active.ratio", kAll},
    {"smsp__average_warps_issue_stalled_drain_per_issue_active.ratio", kAll},
    {"smsp__average_warps_issue_stalled_imc_miss_per_issue_active.ratio", k80 | k90},
    {"smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio", kAll},
    {"smsp__average_warps_issue_stalled_membar_per_issue_active.ratio", kAll},
    {"smsp__average_warps_issue_stalled_misc_per_issue_active.ratio", kAll},
    {"smsp__average_warps_issue_stalled_no_instruction_per_issue_active.ratio", kAll},
    {"smsp__average_warps_issue_stalled_not_selected_per_issue_active.ratio", kAll},
    {"smsp__average_warps_issue_stalled_selected_per_issue_active.ratio", kAll},
    {"smsp__average_warps_issue_stalled_sleeping_per_issue_active.ratio", kAll},
    {"smsp__average_warps_issue_stalled_tex_throttle_per_issue_active.ratio", kAll},
    {"smsp__average_warps_issue_stalled_gmma_per_issue_active.ratio", k90},
};

constexpr Entry kIcache[] = {
    {"sm__icc_requests.sum", kAll},
    {"sm__icc_requests_lookup_miss.sum", kAll},
    {"gcc__cache_requests_type_instruction.sum", kAll},
    {"gcc__cache_requests_type_instruction_lookup_miss.sum", kAll},
};

constexpr Entry kLatency[] = {
    {"sm__average_inst_latency_pipe_lsu_mem_lg_cmd_read.ratio", kAll},
    {"smsp__average_warp_latency.ratio", kAll},
};

constexpr Entry kTensor[] = {
    {"sm__inst_executed_pipe_tensor_op_hmma.sum", k80 | k90},
    {"sm__inst_executed_pipe_tensor_op_imma.sum", k80 | k90},
    {"sm__inst_executed_pipe_tensor_op_dmma.sum", k80 | k90},
    {"sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_elapsed", k80 | k90},
    {"sm__inst_executed_pipe_tensor_op_gmma.sum", k90},
    {"sm__inst_executed_pipe_tensor_subpipe_hmma.sum", k100},
    {"sm__inst_executed_pipe_tensor_subpipe_imma.sum", k100},
    {"sm__inst_executed_pipe_tc.sum", k100},
    {"sm__pipe_tensor_subpipe_hmma_cycles_active.avg.pct_of_peak_sustained_elapsed", k100},
    {"sm__pipe_tc_cycles_active.avg.pct_of_peak_sustained_elapsed", k100},
};

constexpr Entry kPipes[] = {
    {"sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active", kAll},
    {"sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_active", kAll},
    {"sm__inst_executed_pipe_uniform.avg.pct_of_peak_sustained_active", kAll},
    {"sm__inst_executed_pipe_cbu.avg.pct_of_peak_sustained_active", kAll},
    {"sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_active", kAll},
};

constexpr Entry kDivergence[] = {
    {"smsp__thread_inst_executed_per_inst_executed.ratio", kAll},
    {"smsp__thread_inst_executed_pred_on_per_inst_executed.ratio", kAll},
};

constexpr Entry kBalance[] = {
    {"sm__cycles_active.avg", kAll},  {"sm__cycles_active.max", kAll},
    {"sm__cycles_active.min", kAll},  {"lts__t_sectors.avg", kAll},
    {"lts__t_sectors.max", kAll},     {"dram__bytes.avg", kAll},
    {"dram__bytes.max", kAll},        {"dram__bytes.min", kAll},
    {"lts__cycles_active.max", kAll}, {"lts__cycles_active.avg", kAll},
};

constexpr Entry kCtaLaunch[] = {
    {"tpc__warp_launch_cycles_stalled_shader_cs_reason_barrier_allocation.sum", kAll},
    {"tpc__warp_launch_cycles_stalled_shader_cs_reason_cta_allocation.sum", kAll},
    {"tpc__warp_launch_cycles_stalled_shader_cs_reason_register_allocation.sum", kAll},
    {"tpc__warp_launch_cycles_stalled_shader_cs_reason_shmem_allocation.sum", kAll},
};

constexpr Entry kAtomics[] = {
    {"lts__t_sectors_op_atom.sum", kAll},
    {"lts__t_sectors_op_red.sum", kAll},
    {"lts__d_atomic_input_cycles_active.avg.pct_of_peak_sustained_elapsed", kAll},
    {"lts__d_atomic_input_cycles_active.max.pct_of_peak_sustained_elapsed", kAll},
    {"l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum", kAll},
    {"l1tex__t_requests_pipe_lsu_mem_global_op_red.sum", kAll},
};

constexpr Entry kTma[] = {
    {"l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld.sum", k90 | k100},
    {"l1tex__m_xbar2l1tex_read_bytes_mem_lg_op_ld.sum", k90 | k100},
    {"sm__pipe_tma_cycles_active.avg.pct_of_peak_sustained_active", k90 | k100},
    {"sm__inst_executed_pipe_tma.sum", k90 | k100},
};

constexpr Entry kSass[] = {
    {"smsp__sass_inst_executed.sum", kAll},
    {"smsp__sass_thread_inst_executed.sum", kAll},
    {"smsp__sass_thread_inst_executed_pred_on.sum", kAll},
    {"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", kAll},
    {"smsp__sass_thread_inst_executed_op_fadd_pred_on.sum", kAll},
    {"smsp__sass_thread_inst_executed_op_fmul_pred_on.sum", kAll},
    {"smsp__sass_thread_inst_executed_op_dfma_pred_on.sum", kAll},
    {"smsp__sass_thread_inst_executed_op_dadd_pred_on.sum", kAll},
    {"smsp__sass_thread_inst_executed_op_dmul_pred_on.sum", kAll},
    {"smsp__sass_thread_inst_executed_op_hfma_pred_on.sum", kAll},
    {"smsp__sass_thread_inst_executed_op_hadd_pred_on.sum", kAll},
    {"smsp__sass_thread_inst_executed_op_hmul_pred_on.sum", kAll},
    {"smsp__sass_thread_inst_executed_op_integer_pred_on.sum", kAll},
    {"smsp__sass_thread_inst_executed_op_bit_pred_on.sum", kAll},
    {"smsp__sass_thread_inst_executed_op_control_pred_on.sum", kAll},
    {"smsp__sass_thread_inst_executed_op_conversion_pred_on.sum", kAll},
    {"smsp__sass_thread_inst_executed_op_memory_pred_on.sum", kAll},
    {"smsp__sass_thread_inst_executed_op_misc_pred_on.sum", kAll},
    {"smsp__sass_thread_inst_executed_op_uniform_pred_on.sum", kAll},
    {"smsp__sass_thread_inst_executed_op_inter_thread_communication_pred_on.sum", kAll},
    {"smsp__sass_inst_executed_op_memory_8b.sum", kAll},
    {"smsp__sass_inst_executed_op_memory_16b.sum", kAll},
    {"smsp__sass_inst_executed_op_memory_32b.sum", kAll},
    {"smsp__sass_inst_executed_op_memory_64b.sum", kAll},
    {"smsp__sass_inst_executed_op_memory_128b.sum", kAll},
    {"smsp__sass_inst_executed_op_global_ld.sum", kAll},
    {"smsp__sass_inst_executed_op_global_st.sum", kAll},
    {"smsp__sass_inst_executed_op_global_atom.sum", kAll},
    {"smsp__sass_inst_executed_op_global_red.sum", kAll},
    {"smsp__sass_inst_executed_op_shared_ld.sum", kAll},
    {"smsp__sass_inst_executed_op_shared_st.sum", kAll},
    {"smsp__sass_inst_executed_op_shared_atom.sum", kAll},
    {"smsp__sass_inst_executed_op_local_ld.sum", kAll},
    {"smsp__sass_inst_executed_op_local_st.sum", kAll},
    {"smsp__sass_inst_executed_op_ldgsts.sum", kAll},
    {"smsp__sass_inst_executed_op_ldsm.sum", kAll},
    {"smsp__sass_inst_executed_op_branch.sum", kAll},
    {"smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio", kAll},
    {"smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio", kAll},
    {"smsp__sass_data_bytes_mem_global_op_ld.sum", kAll},
    {"smsp__sass_data_bytes_mem_global_op_st.sum", kAll},
    {"smsp__sass_data_bytes_mem_local_op_ld.sum", kAll},
    {"smsp__sass_data_bytes_mem_local_op_st.sum", kAll},
    {"smsp__sass_data_bytes_mem_shared.sum", kAll},
    {"smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ld.sum", kAll},
    {"smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_st.sum", kAll},
    {"smsp__sass_l1tex_t_sectors_pipe_lsu_mem_local_op_ld.sum", kAll},
    {"smsp__sass_l1tex_t_sectors_pipe_lsu_mem_local_op_st.sum", kAll},
    {"smsp__sass_l1tex_pipe_lsu_wavefronts_mem_shared.sum", kAll},
    {"smsp__sass_average_data_bytes_per_wavefront_mem_shared.ratio", kAll},
    {"smsp__sass_average_branch_targets_threads_uniform.pct", kAll},
    {"smsp__sass_branch_targets_threads_divergent.sum", kAll},
    {"smsp__sass_inst_executed_op_tma_ld.sum", k90 | k100},
    {"smsp__sass_inst_executed_op_tma_st.sum", k90 | k100},
    {"smsp__sass_inst_executed_op_shared_gmma.sum", k90},
    {"smsp__sass_inst_executed_op_dshared.sum", k90 | k100},
    {"smsp__sass_inst_executed_op_utcmma.sum", k100},
    {"smsp__sass_thread_inst_executed_op_fp64_pred_on.sum", kAll},
};

/// One by one: the group "smsp__pcsamp_warp_stall_reasons" gives only its total on the source page
/// (ncu 2025.3).
constexpr Entry kSamples[] = {
    {"smsp__pcsamp_warps_issue_stalled_barrier", kAll},
    {"smsp__pcsamp_warps_issue_stalled_branch_resolving", kAll},
    {"smsp__pcsamp_warps_issue_stalled_dispatch_stall", kAll},
    {"smsp__pcsamp_warps_issue_stalled_drain", kAll},
    {"smsp__pcsamp_warps_issue_stalled_imc_miss", k80 | k90},
    {"smsp__pcsamp_warps_issue_stalled_lg_throttle", kAll},
    {"smsp__pcsamp_warps_issue_stalled_long_scoreboard", kAll},
    {"smsp__pcsamp_warps_issue_stalled_math_pipe_throttle", kAll},
    {"smsp__pcsamp_warps_issue_stalled_membar", kAll},
    {"smsp__pcsamp_warps_issue_stalled_mio_throttle", kAll},
    {"smsp__pcsamp_warps_issue_stalled_misc", kAll},
    {"smsp__pcsamp_warps_issue_stalled_no_instructions", kAll},
    {"smsp__pcsamp_warps_issue_stalled_not_selected", kAll},
    {"smsp__pcsamp_warps_issue_stalled_selected", kAll},
    {"smsp__pcsamp_warps_issue_stalled_short_scoreboard", kAll},
    {"smsp__pcsamp_warps_issue_stalled_sleeping", kAll},
    {"smsp__pcsamp_warps_issue_stalled_tex_throttle", kAll},
    {"smsp__pcsamp_warps_issue_stalled_wait", kAll},
    {"smsp__pcsamp_warps_issue_stalled_warpgroup_arrive", k90},
    {"smsp__pcsamp_sample_count", kAll},
};

constexpr std::array<Group, 21> kGroups = {{
    {"roofline", How::kCounter, kRoofline},
    {"launch", How::kTool, kLaunch},
    {"duration", How::kCounter, kDuration},
    {"shared", How::kCounter, kShared},
    {"l1", How::kCounter, kL1},
    {"l2", How::kCounter, kL2},
    {"aperture", How::kCounter, kAperture},
    {"scheduler", How::kCounter, kScheduler},
    {"stall6", How::kCounter, kStall6},
    {"stalls", How::kCounter, kStalls},
    {"icache", How::kCounter, kIcache},
    {"latency", How::kCounter, kLatency},
    {"tensor", How::kCounter, kTensor},
    {"pipes", How::kCounter, kPipes},
    {"divergence", How::kCounter, kDivergence},
    {"balance", How::kCounter, kBalance},
    {"cta_launch", How::kCounter, kCtaLaunch},
    {"atomics", How::kCounter, kAtomics},
    {"tma", How::kCounter, kTma},
    {"sass", How::kPatched, kSass},
    {"samples", How::kSampled, kSamples},
}};

}  // namespace

std::span<const Group> Groups() {
  return kGroups;
}

}  // namespace kernelpro::metric_sets
