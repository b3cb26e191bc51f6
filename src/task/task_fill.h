// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "task/task.h"
#include "task/toml.h"

namespace kernelpro {

/// `fill = {kind = "normal", mean = 0, deviation = 1}` of a tensor whose dtype is known.
[[nodiscard]] Result<Fill> ReadFill(const TomlNode& node, const TensorSpec& tensor,
                                    const TomlSource& source);

/// The [inputs] table: which kinds of inputs the task's promises hold for. The fill is always
/// first.
[[nodiscard]] Result<std::vector<Distribution>> ReadDistributions(const TomlNode& node,
                                                                  const TomlSource& source);

/// Whether it is a whole number that the type, and a double, holds exactly.
[[nodiscard]] bool IsWholeOf(DType dtype, double value);

/// "allowed for i8: whole numbers from -128 to 127".
[[nodiscard]] std::string AllowedWholeNumbers(DType dtype);

}  // namespace kernelpro
