// SPDX-License-Identifier: Apache-2.0
#include "diagnose/tools/registry.h"

#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "diagnose/diagnose.h"
#include "diagnose/rules/embedded.h"
#include "diagnose/rules/rule.h"
#include "kernelpro/tool.h"

namespace kernelpro {

const std::vector<std::unique_ptr<Tool>>& BuiltInTools() {
  static const std::vector<std::unique_ptr<Tool>> kTools = [] {
    std::vector<std::unique_ptr<Tool>> tools;
#define KP_ADD_TOOL(make) tools.push_back(diagnose::make());
    KP_BUILT_IN_TOOLS(KP_ADD_TOOL)
#undef KP_ADD_TOOL
    for (const diagnose::EmbeddedRule& rule : diagnose::EmbeddedRules()) {
      auto tool = diagnose::ParseRule(rule.toml, rule.path);
      KP_CHECK(tool.ok()) << (tool.ok() ? "" : tool.error().message);
      tools.push_back(std::move(tool).value());
    }
    return tools;
  }();
  return kTools;
}

}  // namespace kernelpro
