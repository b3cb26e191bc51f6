// SPDX-License-Identifier: Apache-2.0
#include "diagnose/tools/registry.h"

#include <memory>
#include <vector>

#include "diagnose/diagnose.h"
#include "kernelpro/tool.h"

namespace kernelpro {

const std::vector<std::unique_ptr<Tool>>& BuiltInTools() {
  static const std::vector<std::unique_ptr<Tool>> kTools = [] {
    std::vector<std::unique_ptr<Tool>> tools;
#define KP_ADD_TOOL(make) tools.push_back(diagnose::make());
    KP_BUILT_IN_TOOLS(KP_ADD_TOOL)
#undef KP_ADD_TOOL
    return tools;
  }();
  return kTools;
}

}  // namespace kernelpro
