// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "diagnose/bounds.h"
#include "diagnose/facts.h"
#include "kernelpro/finding.h"
#include "kernelpro/tool.h"
#include "profile/metric_names.h"

/// What a built-in tool is made of. A tool is one file in tools/ that defines one function
/// `std::unique_ptr<Tool> Make...()`, and one line in tools/registry.cc.
namespace kernelpro::diagnose {

struct ToolSpec {
  std::string_view id;
  std::string_view title;
  std::vector<std::string_view> classes;  ///< that call for it; empty: always
  std::vector<std::string_view> metrics;  ///< required; "a|b" is met by either
  /// Leaves id, title, kernel and time share to the framework.
  std::optional<Finding> (*examine)(const ToolInput&) = nullptr;
};

[[nodiscard]] std::unique_ptr<Tool> MakeTool(ToolSpec spec);

}  // namespace kernelpro::diagnose
