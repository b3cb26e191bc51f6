// SPDX-License-Identifier: Apache-2.0
#include "tool_set.h"

#include <algorithm>
#include <string>
#include <utility>

#include "diagnose/diagnose.h"
#include "plugins/external_tool.h"
#include "plugins/rules_folder.h"

namespace kernelpro::app {

Result<ToolSet> MakeToolSet(const std::filesystem::path& rules) {
  ToolSet set;
  if (!rules.empty()) {
    KP_ASSIGN_OR_RETURN(set.own, plugins::LoadRules(rules));
  }
  for (const std::unique_ptr<Tool>& tool : BuiltInTools()) {
    const bool replaced =
        std::ranges::any_of(set.own, [&](const auto& mine) { return mine->id() == tool->id(); });
    if (!replaced) {
      set.all.push_back(tool.get());
    }
  }
  for (const std::unique_ptr<Tool>& mine : set.own) {
    set.all.push_back(mine.get());
  }
  return set;
}

Status AddExternalTools(const std::vector<std::filesystem::path>& programs, const Profile& profile,
                        std::chrono::milliseconds limit, const std::stop_token& stop,
                        ToolSet& tools) {
  for (const std::filesystem::path& program : programs) {
    KP_ASSIGN_OR_RETURN(std::vector<Finding> findings,
                        plugins::RunExternalTool(program, profile, limit, stop));
    for (Finding& finding : findings) {
      tools.own.push_back(plugins::MakeFoundTool(std::move(finding), program.string()));
      tools.all.push_back(tools.own.back().get());
    }
  }
  return Ok();
}

}  // namespace kernelpro::app
