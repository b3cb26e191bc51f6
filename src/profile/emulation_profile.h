// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "device/device.h"
#include "emulator/model/model.h"
#include "kernelpro/profile.h"

namespace kernelpro {

/// What the task needs at least; 0 and absent when unknown.
struct TaskNeeds {
  double flops = 0;
  double compulsory_bytes = 0;
  /// Bytes of the widest floating-point element among the task's tensors; tells whether f64
  /// arithmetic was asked for.
  std::optional<double> widest_float_bytes;
};

/// The launches of one call as a Profile: counters from emulation (counted), utilisations from the
/// bounds of the time model (modelled, in percent of the kernel's modelled time without the fixed
/// launch cost). Launches of the same kernel are merged: counts add up, ratios and percentages are
/// formed from the sums, launch figures are those of the longest launch. Kernels are ordered by
/// time, longest first. What emulation cannot know (stall sampling, tensor pipe, eligible warps) is
/// named in `missing`.
[[nodiscard]] Profile FromEmulation(const std::vector<EmulatedLaunch>& launches,
                                    const DeviceInfo& device, const model::GpuSpec& spec,
                                    const TaskNeeds& needs);

}  // namespace kernelpro
