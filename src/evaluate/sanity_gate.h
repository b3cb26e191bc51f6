// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "evaluate/inputs.h"
#include "task/task.h"

namespace kernelpro {

/// A trial that candidates will be judged by, and its workload.
struct GateTrial {
  std::size_t workload = 0;
  const Trial* trial = nullptr;
};

/// Whether the task can tell a kernel that computes from one that does not. For every output, each
/// of these must be wrong on at least one of the trials (candidates must be right on all of them):
/// - nothing written, and zeros;
/// - a constant: the mean of the expected values, which a kernel may know for every workload;
/// - a copy of an input with as many elements of the same type, unless the expected output is that
///   input bit for bit in every trial (then a copy is the task);
/// - the right answer in the first 1 % of the elements, zeros in the others.
/// An output with ErrorScale::kMagnitude must not be larger than its magnitude anywhere: else it is
/// no sum of products. Returns the sentence for the user, empty when the task is fit.
[[nodiscard]] std::string WhyUnfit(const Task& task, std::span<const GateTrial> trials);

/// Why two runs of the reference on the same inputs do not agree bit for bit; empty when they do.
[[nodiscard]] std::string WhyUnrepeatable(const TensorDoubles& first, const TensorDoubles& second);

}  // namespace kernelpro
