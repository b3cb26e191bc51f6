// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <vector>

#include "base/result.h"
#include "kernelpro/profile.h"
#include "kernelpro/tool.h"

namespace kernelpro::app {

/// The tools of one diagnosis: the built-in ones, the user's rules (which replace built-in ones of
/// the same id), and what the user's programs found.
struct ToolSet {
  std::vector<std::unique_ptr<Tool>> own;
  std::vector<const Tool*> all;
};

[[nodiscard]] Result<ToolSet> MakeToolSet(const std::filesystem::path& rules);

/// Runs each program on the profile and adds what it found.
[[nodiscard]] Status AddExternalTools(const std::vector<std::filesystem::path>& programs,
                                      const Profile& profile, std::chrono::milliseconds limit,
                                      const std::stop_token& stop, ToolSet& tools);

}  // namespace kernelpro::app
