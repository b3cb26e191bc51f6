// SPDX-License-Identifier: Apache-2.0
#include "evaluate/inputs.h"

#include "base/rng.h"
#include "evaluate/fill.h"

namespace kernelpro {

Result<const Trial*> Trials::Get(std::size_t workload, std::uint32_t number,
                                 const std::stop_token& stop) {
  const auto key = std::pair(workload, number);
  if (const auto found = kept_.find(key); found != kept_.end()) {
    return &found->second;
  }
  const AxisValues& axes = task_.workloads[workload].axes;
  const Rng base = Rng(seed_).Fork(workload).Fork(number);
  Trial trial;
  for (std::size_t i = 0; i < task_.tensors.size(); ++i) {
    const TensorSpec& tensor = task_.tensors[i];
    if (tensor.role == Role::kInput) {
      KP_ASSIGN_OR_RETURN(const std::int64_t count, ElementCount(tensor, axes));
      trial.inputs[tensor.name] =
          MakeInput(tensor, static_cast<std::uint64_t>(count), Rng(base).Fork(i).Next());
    }
  }
  KP_ASSIGN_OR_RETURN(trial.expected, reference_.Run(axes, trial.inputs, stop));
  return &kept_.emplace(key, std::move(trial)).first->second;
}

}  // namespace kernelpro
