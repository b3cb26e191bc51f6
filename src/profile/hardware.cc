// SPDX-License-Identifier: Apache-2.0
#include "profile/hardware.h"

#include "emulator/model/model.h"
#include "kernelpro/tool.h"

namespace kernelpro {

Hardware HardwareOf(const model::GpuSpec& spec) {
  Hardware hardware;
  hardware.name = spec.title.empty() ? spec.name : spec.title;
  hardware.sm_count = spec.sm_count;
  hardware.clock_hz = spec.clock_hz;
  hardware.dram_bytes_per_s = spec.dram_bytes_per_s;
  hardware.dram_peak_bytes_per_s = spec.dram_peak_bytes_per_s;
  hardware.l2_bytes_per_s = spec.l2_bytes_per_s;
  const double lane_flops = 2.0 * spec.sm_count * spec.clock_hz;
  hardware.fp32_flops_per_s = spec.fp32_lanes * lane_flops;
  hardware.fp64_flops_per_s = spec.fp64_lanes * lane_flops;
  hardware.warps_per_sm = spec.warps_per_sm;
  hardware.ctas_per_sm = spec.ctas_per_sm;
  hardware.registers_per_sm = spec.registers_per_sm;
  hardware.shared_per_sm_bytes = static_cast<double>(spec.shared_per_sm_bytes);
  hardware.cta_launches_per_s = spec.cta_launches_per_cycle * spec.clock_hz;
  hardware.dram_latency_s = spec.clock_hz > 0 ? spec.latency_dram / spec.clock_hz : 0;
  hardware.int_lanes = spec.int_lanes;
  hardware.fp64_lanes = spec.fp64_lanes;
  hardware.sfu_lanes = spec.sfu_lanes;
  hardware.fp32_lanes = spec.fp32_lanes;
  return hardware;
}

}  // namespace kernelpro
