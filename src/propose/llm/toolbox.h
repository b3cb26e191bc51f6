// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "llm/chat.h"
#include "propose/llm/agent.h"

namespace kernelpro::agents {

/// A tool that a model may call. Its text is data for the model, and so is its error, unless the
/// error is kCancelled, which ends the search.
struct AgentTool {
  llm::ToolSpec spec;
  std::function<Result<std::string>(const nlohmann::json& arguments)> run;
};

/// Tools and the number of calls that one kernel may cost.
struct Toolbox {
  std::vector<AgentTool> tools;
  std::uint32_t most_calls = 0;
};

/// A question, and the answers to the tool calls that come of it, until the model answers without
/// one. A call of a tool that is not there, with arguments that are no JSON object, or beyond
/// `most_calls` is answered with an error. Asks at most most_calls + 2 times; what is left in the
/// response's `calls` then means that the model never came to an end.
[[nodiscard]] Result<llm::ChatResponse> AskWithTools(const Setting& setting, const Turn& turn,
                                                     llm::ChatRequest request,
                                                     const Toolbox& toolbox);

}  // namespace kernelpro::agents
