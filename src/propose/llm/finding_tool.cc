// SPDX-License-Identifier: Apache-2.0
#include "propose/llm/finding_tool.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "propose/llm/performance_text.h"

namespace kernelpro::agents {
namespace {

constexpr std::size_t kMostIds = 8;

}  // namespace

AgentTool MakeFindingTool(const Diagnosis& diagnosis, std::set<std::string>& shown) {
  AgentTool tool;
  tool.spec = {.name = "get_findings",
               .description =
                   "What expert tools found out about this kernel's performance, by tool id (at "
                   "most 8 ids a call): the flaw, its figures, what to do, what to avoid.",
               .schema = R"({"type":"object","properties":{"ids":{"type":"array","items":)"
                         R"({"type":"string"}}},"required":["ids"],"additionalProperties":false})"};
  tool.run = [&diagnosis, &shown](const nlohmann::json& arguments) -> Result<std::string> {
    const auto ids = arguments.find("ids");
    if (ids == arguments.end() || !ids->is_array() || ids->empty() || ids->size() > kMostIds) {
      return Fail(ErrorCode::kInvalidArgument, "ids must be a list of one to eight tool ids");
    }
    std::string text;
    for (const nlohmann::json& id : *ids) {
      if (!id.is_string()) {
        return Fail(ErrorCode::kInvalidArgument, "ids must be strings");
      }
      const auto& name = id.get_ref<const std::string&>();
      const Result<std::string> finding = FindingText(diagnosis, name);
      text += text.empty() ? "" : "\n\n";
      text += finding ? *finding : finding.error().message;
      if (std::ranges::find(diagnosis.findings, name, &Finding::id) != diagnosis.findings.end()) {
        shown.insert(name);
      }
    }
    return text;
  };
  return tool;
}

}  // namespace kernelpro::agents
