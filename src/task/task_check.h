// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "task/task.h"
#include "task/toml.h"

namespace kernelpro {

/// Where the parts of a task stand in task.toml; same indices as in the Task.
struct TaskLines {
  std::vector<std::uint32_t> tensors;
  std::vector<std::uint32_t> workloads;
  std::uint32_t flops = 0;
  std::uint32_t compulsory_bytes = 0;
};

/// Why `name` cannot be a field of TaskArgs; empty when it can.
[[nodiscard]] std::string_view WhyNotAFieldName(std::string_view name);

/// Why `name` cannot name a task or a workload (it becomes part of file names); empty when it can.
[[nodiscard]] std::string_view WhyNotALabel(std::string_view name);

/// Every expression has a sound value under every workload, axes and scalars fit, and there is
/// something to compute and to time.
[[nodiscard]] Status CheckTask(const Task& task, const TaskLines& lines, const TomlSource& source);

/// Syntax and names of an expression. The Error has no line.
[[nodiscard]] Status CheckExpression(const std::string& text, const std::vector<std::string>& axes);

}  // namespace kernelpro
