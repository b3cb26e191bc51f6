// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/result.h"
#include "device/device.h"

namespace kernelpro::cuda {

/// The real GPU of this number. kUnavailable says what the machine lacks (driver, GPU, runtime,
/// CUDA IPC).
[[nodiscard]] Result<std::unique_ptr<Device>> OpenCuda(int index);

/// How many GPUs the driver counts; 0 without a driver.
[[nodiscard]] int CountGpus();

/// The emulator's data file that describes a GPU of this name, or the nearest by generation.
[[nodiscard]] std::string SpecFor(std::string_view gpu_name, int major, int minor);

}  // namespace kernelpro::cuda
