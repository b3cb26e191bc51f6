// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "suite.h"

namespace kernelpro::golden {

/// docs/measurements/h200_model.md: what was measured, what the model says, how far apart.
[[nodiscard]] std::string MarkdownReport(std::span<const Row> rows, const model::GpuSpec& spec,
                                         std::string_view date);

}  // namespace kernelpro::golden
