// SPDX-License-Identifier: Apache-2.0
#include "propose/llm/toolbox.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "propose/llm/neutralise.h"

namespace kernelpro::agents {
namespace {

constexpr std::size_t kOutputLimit = 8000;
/// Answered with an error too, but without one message for each: a model that asks for a hundred
/// tools at once must not be paid a hundred answers.
constexpr std::size_t kMostParallel = 16;

Result<std::string> RunTool(const Toolbox& toolbox, const llm::ToolCall& call) {
  const auto tool =
      std::ranges::find(toolbox.tools, call.name, [](const AgentTool& t) { return t.spec.name; });
  if (tool == toolbox.tools.end()) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("there is no tool {}", NeutraliseLine(call.name, 60)));
  }
  const nlohmann::json arguments = call.arguments.empty()
                                       ? nlohmann::json::object()
                                       : nlohmann::json::parse(call.arguments, nullptr, false);
  if (!arguments.is_object()) {
    return Fail(ErrorCode::kInvalidArgument,
                "the arguments are not a JSON object that meets the tool's schema");
  }
  return tool->run(arguments);
}

/// An Error only for kCancelled.
Result<llm::Message> Answer(const Toolbox& toolbox, const llm::ToolCall& call, bool allowed) {
  llm::Message message;
  message.role = llm::Message::Role::kTool;
  message.call_id = call.id;
  Result<std::string> output =
      allowed
          ? RunTool(toolbox, call)
          : Fail(ErrorCode::kUnavailable, "no tool calls are left; answer now with what is known");
  if (!output && output.error().code == ErrorCode::kCancelled) {
    return std::move(output).error();
  }
  message.failed = !output;
  message.text = DataBlock(output ? "tool output" : "tool error",
                           output ? *output : output.error().message, kOutputLimit);
  return message;
}

}  // namespace

Result<llm::ChatResponse> AskWithTools(const Setting& setting, const Turn& turn,
                                       llm::ChatRequest request, const Toolbox& toolbox) {
  for (const AgentTool& tool : toolbox.tools) {
    request.tools.push_back(tool.spec);
  }
  std::uint32_t used = 0;
  for (std::uint32_t round = 0;; ++round) {
    KP_ASSIGN_OR_RETURN(llm::ChatResponse response, Ask(setting, turn, request));
    const bool last = round > toolbox.most_calls;
    if (response.problem != llm::Problem::kNone || response.calls.empty() || last) {
      return response;
    }
    if (response.calls.size() > kMostParallel) {
      response.calls.resize(kMostParallel);
    }
    llm::Message asked;
    asked.role = llm::Message::Role::kAssistant;
    asked.text = response.text;
    asked.calls = response.calls;
    asked.reasoning = response.reasoning;  // Models that think want it back, signed as it was.
    request.messages.push_back(std::move(asked));
    for (const llm::ToolCall& call : response.calls) {
      KP_ASSIGN_OR_RETURN(llm::Message answer, Answer(toolbox, call, used < toolbox.most_calls));
      ++used;
      request.messages.push_back(std::move(answer));
    }
  }
}

}  // namespace kernelpro::agents
