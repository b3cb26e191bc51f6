// SPDX-License-Identifier: Apache-2.0
#include "device/emulated_launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

namespace kernelpro {

Result<EmulatedLaunch> RunEmulatedLaunch(const LaunchContext& context, simt::LaunchConfig config,
                                         simt::DeviceMemory& memory) {
  const model::Occupancy occupancy = model::ComputeOccupancy(
      context.spec, context.resources, static_cast<std::uint32_t>(config.block.Count()),
      config.dynamic_shared);
  config.resident_ctas_per_sm = std::max(1U, occupancy.ctas_per_sm);
  config.l1_carveout_bytes =
      model::SharedCarveout(context.spec, config.resident_ctas_per_sm,
                            context.resources.static_shared_bytes + config.dynamic_shared);
  EmulatedLaunch launch;
  KP_ASSIGN_OR_RETURN(launch.report, simt::Launch(context.program, config,
                                                  model::ToEngineSpec(context.spec), memory));
  if (launch.report.Completed()) {
    launch.time = model::ModelTime(context.spec, context.kernel, launch.report, context.resources);
  }
  launch.resources = context.resources;
  launch.resources_estimated = context.resources_estimated;
  // Names, not paths: a build cache's folder says nothing to the user.
  for (const std::string& file : context.program.module().files) {
    launch.files.push_back(std::filesystem::path(file).filename().string());
  }
  launch.instructions.reserve(context.kernel.body.size());
  for (const ptx::Instruction& instruction : context.kernel.body) {
    launch.instructions.push_back(
        {instruction.opcode, instruction.where.file, instruction.where.line});
  }
  return launch;
}

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
  hardware.arch = spec.compute_capability;
  hardware.tensor_flops_per_s = spec.tensor_f16_flops_per_s;
  hardware.l2_bytes = static_cast<double>(spec.l2_bytes);
  return hardware;
}

DeviceInfo EmulatorInfo(const model::GpuSpec& spec) {
  DeviceInfo info;
  info.id = "emulator:" + spec.name;
  info.title = fmt::format("{} (emulated: times are modelled{})", spec.title,
                           spec.calibrated ? "" : ", uncalibrated");
  info.arch = "sm_90";
  info.spec = spec.name;
  info.emulated = true;
  info.calibrated = spec.calibrated;
  info.l2_bytes = spec.l2_bytes;
  info.hardware = HardwareOf(spec);
  return info;
}

}  // namespace kernelpro
