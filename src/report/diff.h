// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace kernelpro::report {

/// Unified diff (three lines of context) from `before` to `after`; empty when they are equal.
[[nodiscard]] std::string UnifiedDiff(std::string_view before, std::string_view after,
                                      std::string_view before_label, std::string_view after_label);

}  // namespace kernelpro::report
