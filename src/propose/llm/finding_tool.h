// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>

#include "propose/llm/toolbox.h"

namespace kernelpro::agents {

/// "get_findings": what expert tools say of the parent. Ids of findings that were really shown go
/// into `shown`, which must outlive the tool.
[[nodiscard]] AgentTool MakeFindingTool(const Diagnosis& diagnosis, std::set<std::string>& shown);

}  // namespace kernelpro::agents
