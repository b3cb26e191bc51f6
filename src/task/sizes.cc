// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "task/task.h"

namespace kernelpro {
namespace {

constexpr double kMaxElements = 1099511627776.0;  // 2^40; products below 2^80 are exact enough

Result<double> NonNegative(const std::string& expression, const AxisValues& axes,
                           const char* field) {
  KP_ASSIGN_OR_RETURN(const double value, EvaluateExpression(expression, axes, field));
  if (value < 0) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} = \"{}\" is negative: {}", field, expression, value));
  }
  return value;
}

}  // namespace

Result<std::int64_t> ElementCount(const TensorSpec& tensor, const AxisValues& axes) {
  double count = 1;
  for (const std::string& extent : tensor.shape) {
    const std::string context = "shape of " + tensor.name;
    KP_ASSIGN_OR_RETURN(const double value, EvaluateExpression(extent, axes, context));
    if (value < 1 || std::floor(value) != value) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: \"{}\" must be a positive whole number, it is {}", context,
                              extent, value));
    }
    count *= value;
    if (count > kMaxElements) {
      return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: more than 2^40 elements", context));
    }
  }
  return static_cast<std::int64_t>(count);
}

Result<double> FlopCount(const Task& task, const AxisValues& axes) {
  return NonNegative(task.flops, axes, "flops");
}

Result<double> CompulsoryBytes(const Task& task, const AxisValues& axes) {
  if (!task.compulsory_bytes.empty()) {
    return NonNegative(task.compulsory_bytes, axes, "compulsory_bytes");
  }
  double bytes = 0;
  for (const TensorSpec& tensor : task.tensors) {
    KP_ASSIGN_OR_RETURN(const std::int64_t count, ElementCount(tensor, axes));
    bytes += static_cast<double>(count) * SizeOf(tensor.dtype);
  }
  return bytes;
}

}  // namespace kernelpro
