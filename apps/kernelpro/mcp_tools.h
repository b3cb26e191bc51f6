// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <stop_token>
#include <string>
#include <vector>

#include "agent_desk.h"
#include "base/result.h"
#include "mcp/server.h"

namespace kernelpro::app {

/// start_run, next_parent, submit_kernel, evaluate, diagnose, search_memory, note, status, report:
/// names, descriptions and schemas, without what they do.
[[nodiscard]] std::vector<mcp::Tool> AgentTools();

/// Does what a tool says. `ok` is false for a submitted kernel that is not right.
[[nodiscard]] Result<report::AgentAnswer> CallAgentTool(AgentDesk& desk, const std::string& name,
                                                        const mcp::Json& arguments,
                                                        mcp::ProgressSink& progress, bool* ok,
                                                        const std::stop_token& stop);

/// "kernelpro://source?run=my%20run&node=4".
struct ResourceAddress {
  std::string kind;  ///< source | next | diagnosis | status
  std::string run;
  std::int64_t node = 1;
};

/// kNotFound for anything else.
[[nodiscard]] Result<ResourceAddress> ParseResourceUri(const std::string& uri);
[[nodiscard]] Result<report::AgentAnswer> ReadResource(AgentDesk& desk,
                                                       const ResourceAddress& address);
/// Percent-encoded, but for letters, digits and "-._~/".
[[nodiscard]] std::string EncodeUri(const std::string& text);

}  // namespace kernelpro::app
