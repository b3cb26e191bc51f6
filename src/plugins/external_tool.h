// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernelpro/finding.h"
#include "kernelpro/profile.h"
#include "kernelpro/tool.h"

namespace kernelpro::plugins {

/// Runs a tool of the user's: it gets the Profile as JSON (docs/profile_format.md) on standard
/// input and prints {"findings": [...]} (docs/plugins.md). kNotFound when it cannot be run,
/// kTimeout past the limit, kToolFailed when it ended with an error (with what it said), kParse
/// when its answer is not understood; kCancelled. Nothing that it started is left.
[[nodiscard]] Result<std::vector<Finding>> RunExternalTool(const std::filesystem::path& program,
                                                           const Profile& profile,
                                                           std::chrono::milliseconds limit,
                                                           const std::stop_token& stop);

/// The answer of such a tool. Any bytes are safe; strings are made printable and cut. kParse says
/// which finding and which member.
[[nodiscard]] Result<std::vector<Finding>> ParseExternalFindings(std::string_view json,
                                                                 std::string_view label);

/// A tool that says what was found before; ranked and suppressed with the others. `origin` is the
/// program that found it.
[[nodiscard]] std::unique_ptr<Tool> MakeFoundTool(Finding finding, std::string_view origin);

}  // namespace kernelpro::plugins
