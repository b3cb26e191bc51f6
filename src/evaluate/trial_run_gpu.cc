// SPDX-License-Identifier: Apache-2.0
// One call on a real GPU, filled and judged there: the same rules as in trial_run.cc and
// compare.cc.
#include <fmt/format.h>

#include <span>
#include <vector>

#include "base/rng.h"
#include "device/cuda/session.h"
#include "evaluate/trial_run.h"

namespace kernelpro {

Status TrialRun::PrepareOnGpu(const Trial& trial, std::uint64_t poison_seed) {
  cuda::Gpu& gpu = copies_->gpu();
  KP_RETURN_IF_ERROR(gpu.MakeCurrent());
  KP_ASSIGN_OR_RETURN(const GpuTrials::Copy* copy, copies_->Of(trial));
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const TensorSpec& tensor = task_->tensors[i];
    Buffer& buffer = buffers_[i];
    KP_ASSIGN_OR_RETURN(const cuda::DevicePointer address, session_->cuda()->Address(buffer.id));
    if (tensor.role == Role::kInput) {
      KP_RETURN_IF_ERROR(
          gpu.CopyOnDevice(address, copy->inputs.at(tensor.name).address(), buffer.bytes));
    } else {
      buffer.poison_seed = Rng(poison_seed).Fork(i).Next();
      gpu.kernels().Poison(address, buffer.bytes, buffer.poison_seed);
    }
  }
  return gpu.Synchronize();
}

Result<std::optional<Condemnation>> TrialRun::CheckBuffersOnGpu(const Trial& trial) {
  cuda::Gpu& gpu = copies_->gpu();
  KP_ASSIGN_OR_RETURN(const GpuTrials::Copy* copy, copies_->Of(trial));
  std::vector<BufferId> ids;
  std::vector<std::uint64_t> changed(buffers_.size());
  KP_RETURN_IF_ERROR(gpu.Zero(copy->counts.address(), changed.size() * sizeof(std::uint64_t)));
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    ids.push_back(buffers_[i].id);
    if (task_->tensors[i].role == Role::kInput) {
      KP_ASSIGN_OR_RETURN(const cuda::DevicePointer address,
                          session_->cuda()->Address(buffers_[i].id));
      gpu.kernels().CountDifferences(address, copy->inputs.at(task_->tensors[i].name).address(),
                                     buffers_[i].bytes, copy->counts.address() + 8 * i);
    }
  }
  KP_RETURN_IF_ERROR(
      gpu.Download(std::as_writable_bytes(std::span(changed)), copy->counts.address()));
  KP_ASSIGN_OR_RETURN(const std::string guard, session_->cuda()->BrokenGuard(ids));
  if (!guard.empty()) {
    return std::optional(Condemnation{
        Verdict::kOutOfBounds,
        fmt::format("memory in front of or behind tensor '{}' was overwritten", guard)});
  }
  for (std::size_t i = 0; i < changed.size(); ++i) {
    if (changed[i] != 0) {
      return std::optional(Condemnation{Verdict::kInputModified,
                                        fmt::format("input tensor '{}' was changed ({} bytes)",
                                                    task_->tensors[i].name, changed[i])});
    }
  }
  return std::optional<Condemnation>();
}

Status TrialRun::CompareOnGpu(const Trial& trial, Ruling* ruling) {
  cuda::Gpu& gpu = copies_->gpu();
  KP_ASSIGN_OR_RETURN(const GpuTrials::Copy* copy, copies_->Of(trial));
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const TensorSpec& tensor = task_->tensors[i];
    if (tensor.role != Role::kOutput) {
      continue;
    }
    const auto magnitude = copy->magnitude.find(tensor.name);
    const bool scaled = magnitude != copy->magnitude.end();
    cuda::CompareRule rule;
    rule.dtype = tensor.dtype;
    rule.count = buffers_[i].bytes / SizeOf(tensor.dtype);
    rule.poison = buffers_[i].poison_seed;
    rule.overflow = OverflowOf(tensor.dtype);
    if (IsFloat(tensor.dtype)) {
      rule.absolute = task_->tolerance.absolute * (scaled ? 1 : copy->rms.at(tensor.name));
      rule.relative = task_->tolerance.relative;
      rule.scale = scaled ? magnitude->second.address() : 0;
    }
    cuda::Comparison found;
    KP_RETURN_IF_ERROR(gpu.Upload(copy->counts.address(), std::as_bytes(std::span(&found, 1))));
    KP_ASSIGN_OR_RETURN(const cuda::DevicePointer got, session_->cuda()->Address(buffers_[i].id));
    gpu.kernels().Compare(got, copy->expected.at(tensor.name).address(), rule,
                          copy->counts.address());
    KP_RETURN_IF_ERROR(
        gpu.Download(std::as_writable_bytes(std::span(&found, 1)), copy->counts.address()));
    OutputError error;
    error.tensor = tensor.name;
    error.elements = rule.count;
    error.failed_elements = found.failed;
    error.unwritten_elements = found.unwritten;
    error.max_absolute = found.max_absolute;
    error.max_relative = found.max_relative;
    error.worst_ratio = found.worst_ratio;
    error.first_failed = found.failed == 0 ? -1 : static_cast<std::int64_t>(found.first_failed);
    ruling->errors.push_back(std::move(error));
    ruling->written_elements += rule.count - found.unwritten;
    ruling->output_elements += rule.count;
  }
  return gpu.kernels().TakeFailure();
}

}  // namespace kernelpro
