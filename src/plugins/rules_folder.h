// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "base/result.h"
#include "kernelpro/tool.h"

namespace kernelpro::plugins {

/// Every *.toml of a folder as a rule (diagnose/rules/rule.h has the format), by file name. Errors
/// name file and line: kNotFound without the folder or without a rule in it, kParse and
/// kInvalidArgument for a wrong rule, and for an id that stands in two files.
[[nodiscard]] Result<std::vector<std::unique_ptr<Tool>>> LoadRules(
    const std::filesystem::path& folder);

}  // namespace kernelpro::plugins
