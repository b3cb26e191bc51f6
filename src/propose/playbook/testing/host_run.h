// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "task/task.h"

namespace kernelpro::playbook {

/// Compiles a candidate for the CPU (host_cuda.h), runs it on the task's checked and hidden
/// workloads and compares every output with the task's own reference. Empty: all equal within
/// `relative`. Otherwise what went wrong.
[[nodiscard]] std::string DifferenceOnHost(const Task& task, std::string_view source,
                                           double relative);

/// nvcc -ptx; empty when it compiles, else what nvcc said.
[[nodiscard]] std::string NvccErrors(const Task& task, std::string_view source);

}  // namespace kernelpro::playbook
