// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "device/cuda/gpu.h"
#include "evaluate/inputs.h"
#include "task/task.h"

namespace kernelpro {

/// Copies of trials in the referee's own device memory, so that filling and comparing need no bus.
/// A candidate's process never maps them. Made on first use and kept.
class GpuTrials {
 public:
  struct Copy {
    std::map<std::string, cuda::Memory> inputs;
    std::map<std::string, cuda::Memory> expected, magnitude;  ///< doubles
    std::map<std::string, double> rms;                        ///< of expected: see compare.h
    cuda::Memory counts;                                      ///< a few words for results
  };

  GpuTrials(const Task& task, cuda::Gpu& gpu) : task_(task), gpu_(gpu) {}

  /// `trial` must stay where it is.
  [[nodiscard]] Result<const Copy*> Of(const Trial& trial);

  [[nodiscard]] cuda::Gpu& gpu() { return gpu_; }

 private:
  [[nodiscard]] Result<Copy> Make(const Trial& trial);

  const Task& task_;
  cuda::Gpu& gpu_;
  std::map<const Trial*, Copy> kept_;
};

}  // namespace kernelpro
