// SPDX-License-Identifier: Apache-2.0
#include "plugins/rules_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "diagnose/rules/rule.h"

namespace kernelpro::plugins {

Result<std::vector<std::unique_ptr<Tool>>> LoadRules(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (std::filesystem::directory_iterator i(folder, error), end; !error && i != end;
       i.increment(error)) {
    if (i->path().extension() == ".toml") {
      files.push_back(i->path());
    }
  }
  if (error) {
    return Fail(ErrorCode::kNotFound,
                fmt::format("cannot read the rules in {}: {}", folder.string(), error.message()));
  }
  if (files.empty()) {
    return Fail(ErrorCode::kNotFound,
                fmt::format("{} holds no rule: a rule is a file that ends in .toml (see "
                            "docs/plugins.md)",
                            folder.string()));
  }
  std::ranges::sort(files);
  std::vector<std::unique_ptr<Tool>> tools;
  std::map<std::string, std::string> seen;
  for (const std::filesystem::path& file : files) {
    KP_ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
    KP_ASSIGN_OR_RETURN(std::unique_ptr<Tool> tool, diagnose::ParseRule(text, file.string()));
    const auto [found, is_new] = seen.try_emplace(std::string(tool->id()), file.string());
    if (!is_new) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: the id {} stands in {} already", file.string(), tool->id(),
                              found->second));
    }
    tools.push_back(std::move(tool));
  }
  return tools;
}

}  // namespace kernelpro::plugins
