// SPDX-License-Identifier: Apache-2.0
#include "evaluate/gpu_trials.h"

#include <span>
#include <utility>
#include <vector>

#include "evaluate/compare.h"

namespace kernelpro {
namespace {

constexpr std::uint64_t kResultBytes = 4096;

Result<cuda::Memory> Upload(const cuda::Gpu& gpu, std::span<const std::byte> bytes) {
  KP_ASSIGN_OR_RETURN(cuda::Memory memory, gpu.Allocate(bytes.size()));
  KP_RETURN_IF_ERROR(gpu.Upload(memory.address(), bytes));
  return memory;
}

}  // namespace

Result<GpuTrials::Copy> GpuTrials::Make(const Trial& trial) {
  Copy copy;
  KP_ASSIGN_OR_RETURN(copy.counts, gpu_.Allocate(kResultBytes));
  for (const auto& [name, bytes] : trial.inputs) {
    KP_ASSIGN_OR_RETURN(copy.inputs[name], Upload(gpu_, bytes));
  }
  for (const auto& [name, values] : trial.expected) {
    KP_ASSIGN_OR_RETURN(copy.expected[name], Upload(gpu_, std::as_bytes(std::span(values))));
  }
  for (const auto& [name, values] : trial.magnitude) {
    KP_ASSIGN_OR_RETURN(copy.magnitude[name], Upload(gpu_, std::as_bytes(std::span(values))));
  }
  for (const TensorSpec& tensor : task_.tensors) {
    if (const auto found = trial.expected.find(tensor.name); found != trial.expected.end()) {
      copy.rms[tensor.name] = RmsForTolerance(tensor, found->second);
    }
  }
  return copy;
}

Result<const GpuTrials::Copy*> GpuTrials::Of(const Trial& trial) {
  if (const auto found = kept_.find(&trial); found != kept_.end()) {
    return &found->second;
  }
  Result<Copy> made = Make(trial);
  if (!made && !kept_.empty()) {
    kept_.clear();  // Full: make room and try once more.
    made = Make(trial);
  }
  KP_ASSIGN_OR_RETURN(Copy copy, std::move(made));
  return &kept_.emplace(&trial, std::move(copy)).first->second;
}

}  // namespace kernelpro
