// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <stop_token>
#include <utility>

#include "base/result.h"
#include "evaluate/reference.h"
#include "task/task.h"

namespace kernelpro {

/// One trial of a workload: what goes in and what must come out.
struct Trial {
  TensorBytes inputs;
  TensorDoubles expected;
  /// Of outputs with ErrorScale::kMagnitude: what the reference makes of the inputs' absolute
  /// values.
  TensorDoubles magnitude;
  Distribution distribution = Distribution::kFill;
};

/// Of trial `number` of a workload: the fill first, then the task's other distributions in turn,
/// from another one in every workload. Timed workloads have the fill only: what a call costs may
/// depend on the values.
[[nodiscard]] Distribution DistributionOf(const Task& task, std::size_t workload,
                                          std::uint32_t number);

/// Makes and keeps trials. Inputs follow from the secret seed, the workload and the trial's number,
/// so a trial is the same for every candidate of one referee and unknown to all of them.
class Trials {
 public:
  Trials(const Task& task, const Reference& reference, std::uint64_t seed)
      : task_(task), reference_(reference), seed_(seed) {}

  [[nodiscard]] Result<const Trial*> Get(std::size_t workload, std::uint32_t number,
                                         const std::stop_token& stop);

 private:
  const Task& task_;
  const Reference& reference_;
  std::uint64_t seed_;
  std::map<std::pair<std::size_t, std::uint32_t>, Trial> kept_;
};

}  // namespace kernelpro
