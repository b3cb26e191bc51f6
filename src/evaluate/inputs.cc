// SPDX-License-Identifier: Apache-2.0
#include "evaluate/inputs.h"

#include <algorithm>
#include <vector>

#include "base/rng.h"
#include "evaluate/fill.h"

namespace kernelpro {

namespace {

/// The same inputs without their signs.
TensorBytes AbsoluteValues(const Task& task, const TensorBytes& inputs) {
  TensorBytes absolute = inputs;
  for (const TensorSpec& tensor : task.tensors) {
    if (tensor.role != Role::kInput || !IsFloat(tensor.dtype)) {
      continue;
    }
    // Every float type has its sign in the top bit of its last byte.
    std::vector<std::byte>& bytes = absolute.at(tensor.name);
    const std::size_t size = SizeOf(tensor.dtype);
    for (std::size_t last = size - 1; last < bytes.size(); last += size) {
      bytes[last] &= std::byte{0x7f};
    }
  }
  return absolute;
}

bool NeedsMagnitude(const TensorSpec& tensor) {
  return tensor.role == Role::kOutput && tensor.error_scale == ErrorScale::kMagnitude;
}

}  // namespace

Distribution DistributionOf(const Task& task, std::size_t workload, std::uint32_t number) {
  std::vector<Distribution> others = task.distributions;
  std::erase(others, Distribution::kFill);
  if (number == 0 || others.empty() || task.workloads[workload].kind == Workload::Kind::kTimed) {
    return Distribution::kFill;
  }
  // Two on: workloads with three trials each have all of five among them.
  return others[(number - 1 + 2 * workload) % others.size()];
}

Result<const Trial*> Trials::Get(std::size_t workload, std::uint32_t number,
                                 const std::stop_token& stop) {
  const auto key = std::pair(workload, number);
  if (const auto found = kept_.find(key); found != kept_.end()) {
    return &found->second;
  }
  const AxisValues& axes = task_.workloads[workload].axes;
  const Rng base = Rng(seed_).Fork(workload).Fork(number);
  Trial trial;
  trial.distribution = DistributionOf(task_, workload, number);
  for (std::size_t i = 0; i < task_.tensors.size(); ++i) {
    const TensorSpec& tensor = task_.tensors[i];
    if (tensor.role == Role::kInput) {
      KP_ASSIGN_OR_RETURN(const std::int64_t count, ElementCount(tensor, axes));
      trial.inputs[tensor.name] = MakeInput(tensor, static_cast<std::uint64_t>(count),
                                            Rng(base).Fork(i).Next(), trial.distribution);
    }
  }
  KP_ASSIGN_OR_RETURN(trial.expected, reference_.Run(axes, trial.inputs, stop));
  if (std::ranges::any_of(task_.tensors, NeedsMagnitude)) {
    KP_ASSIGN_OR_RETURN(TensorDoubles all,
                        reference_.Run(axes, AbsoluteValues(task_, trial.inputs), stop));
    for (const TensorSpec& tensor : task_.tensors) {
      if (NeedsMagnitude(tensor)) {
        trial.magnitude[tensor.name] = std::move(all.at(tensor.name));
      }
    }
  }
  return &kept_.emplace(key, std::move(trial)).first->second;
}

}  // namespace kernelpro
