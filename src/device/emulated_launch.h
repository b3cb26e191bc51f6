// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/device.h"
#include "emulator/model/model.h"
#include "emulator/ptx/module.h"
#include "emulator/simt/engine.h"
#include "kernelpro/tool.h"

namespace kernelpro {

/// What is known of a kernel before it is launched.
struct LaunchContext {
  const model::GpuSpec& spec;
  const simt::Program& program;
  const ptx::Function& kernel;
  model::KernelResources resources;
  bool resources_estimated = false;
};

/// Runs one launch on the interpreter and models its time (when it completed). Of the config,
/// residency and L1 carve-out are filled in here, from the kernel's occupancy. Errors are
/// simt::Launch's.
[[nodiscard]] Result<EmulatedLaunch> RunEmulatedLaunch(const LaunchContext& context,
                                                       simt::LaunchConfig config,
                                                       simt::DeviceMemory& memory);

/// How the emulator of this GPU presents itself.
[[nodiscard]] DeviceInfo EmulatorInfo(const model::GpuSpec& spec);

/// The rates that floors and diagnosis need.
[[nodiscard]] Hardware HardwareOf(const model::GpuSpec& spec);

}  // namespace kernelpro
