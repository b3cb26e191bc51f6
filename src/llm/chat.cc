// SPDX-License-Identifier: Apache-2.0
#include "llm/chat.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "llm/json_text.h"

namespace kernelpro::llm {
namespace {

using Json = nlohmann::ordered_json;

// What chat templates put around a message (roles, marks), generously.
constexpr std::uint64_t kPerMessage = 16;
// And around a tool; with any tool, servers add instructions of their own (Anthropic documents up
// to 804 tokens, platform.claude.com/docs "Tool use", pricing).
constexpr std::uint64_t kPerTool = 32;
constexpr std::uint64_t kToolInstructions = 1024;

constexpr Problem kProblems[] = {Problem::kNone, Problem::kTruncated, Problem::kRefused,
                                 Problem::kEmpty, Problem::kSchema};

std::string_view RoleName(Message::Role role) {
  return role == Message::Role::kUser        ? "user"
         : role == Message::Role::kAssistant ? "assistant"
                                             : "tool";
}

Json CallsJson(const std::vector<ToolCall>& calls) {
  Json json = Json::array();
  for (const ToolCall& call : calls) {
    json.push_back({{"id", call.id}, {"name", call.name}, {"arguments", call.arguments}});
  }
  return json;
}

std::uint64_t PromptBytes(const ChatRequest& request) {
  std::uint64_t bytes = request.system.size() + request.schema.size() + request.schema_name.size();
  for (const Message& message : request.messages) {
    bytes += message.text.size() + message.reasoning.size() + message.call_id.size();
    for (const ToolCall& call : message.calls) {
      bytes += call.id.size() + call.name.size() + call.arguments.size();
    }
  }
  for (const ToolSpec& tool : request.tools) {
    bytes += tool.name.size() + tool.description.size() + tool.schema.size();
  }
  return bytes;
}

Json UsageJson(const Usage& usage) {
  return {{"input", usage.input},
          {"cache_read", usage.cache_read},
          {"cache_write", usage.cache_write},
          {"output", usage.output},
          {"reasoning", usage.reasoning},
          {"estimated", usage.estimated}};
}

Error NoResponse(std::string_view why) {
  return Fail(ErrorCode::kParse, fmt::format("a recorded response {}", why));
}

}  // namespace

std::string_view Name(Problem problem) {
  switch (problem) {
    case Problem::kNone:
      return "";
    case Problem::kTruncated:
      return "truncated";
    case Problem::kRefused:
      return "refused";
    case Problem::kEmpty:
      return "empty";
    case Problem::kSchema:
      return "schema";
  }
  return "";
}

std::uint64_t PromptTokensAtMost(const ChatRequest& request) {
  std::uint64_t extra = kPerMessage * (request.messages.size() + 2);
  for (const Message& message : request.messages) {
    extra += kPerMessage * message.calls.size();
  }
  if (!request.tools.empty() || !request.schema.empty()) {
    extra += kPerTool * request.tools.size() + kToolInstructions;
  }
  return PromptBytes(request) + extra;
}

std::uint64_t PromptTokensAbout(const ChatRequest& request) {
  constexpr double kBytesPerToken = 3.5;
  return static_cast<std::uint64_t>(
      std::ceil(static_cast<double>(PromptBytes(request)) / kBytesPerToken));
}

std::string RequestJson(const ChatRequest& request) {
  Json json = {{"system", request.system}, {"messages", Json::array()}};
  for (const Message& message : request.messages) {
    Json one = {{"role", RoleName(message.role)}, {"text", message.text}};
    if (!message.calls.empty()) {
      one["calls"] = CallsJson(message.calls);
    }
    if (message.role == Message::Role::kTool) {
      one["call_id"] = message.call_id;
      one["failed"] = message.failed;
    }
    if (!message.reasoning.empty()) {
      one["reasoning"] = message.reasoning;
    }
    json["messages"].push_back(std::move(one));
  }
  json["tools"] = Json::array();
  for (const ToolSpec& tool : request.tools) {
    json["tools"].push_back(
        {{"name", tool.name}, {"description", tool.description}, {"schema", tool.schema}});
  }
  json["schema_name"] = request.schema_name;
  json["schema"] = request.schema;
  json["temperature"] = request.temperature ? Json(*request.temperature) : Json();
  json["max_tokens"] = request.max_tokens;
  json["effort"] = request.effort;
  return JsonText(json);
}

std::string ResponseJson(const ChatResponse& response) {
  return JsonText({{"text", response.text},
                   {"calls", CallsJson(response.calls)},
                   {"reasoning", response.reasoning},
                   {"problem", Name(response.problem)},
                   {"problem_text", response.problem_text},
                   {"model", response.model},
                   {"id", response.id},
                   {"usage", UsageJson(response.usage)},
                   {"cost", response.cost},
                   {"attempts", response.attempts}});
}

Result<ChatResponse> ParseResponseJson(std::string_view text) {
  auto json = ParseJson(text);
  if (!json.ok()) {
    return NoResponse("is " + json.error().message);
  }
  const Json* told = Member(*json, "text");
  const Json* usage = Member(*json, "usage");
  const Json* calls = Member(*json, "calls");
  if (told == nullptr || !told->is_string() || usage == nullptr || calls == nullptr ||
      !calls->is_array()) {
    return NoResponse("has no \"text\", \"calls\" or \"usage\"");
  }
  ChatResponse response;
  response.text = told->get<std::string>();
  for (const Json& call : *calls) {
    response.calls.push_back({TextOf(call, "id"), TextOf(call, "name"), TextOf(call, "arguments")});
  }
  response.reasoning = TextOf(*json, "reasoning");
  const std::string problem = TextOf(*json, "problem");
  bool known = false;
  for (const Problem candidate : kProblems) {
    if (Name(candidate) == problem) {
      response.problem = candidate;
      known = true;
    }
  }
  if (!known) {
    return NoResponse("has a \"problem\" of an unknown kind");
  }
  response.problem_text = TextOf(*json, "problem_text");
  response.model = TextOf(*json, "model");
  response.id = TextOf(*json, "id");
  response.usage = {CountOf(*usage, "input"), CountOf(*usage, "cache_read"),
                    CountOf(*usage, "cache_write"), CountOf(*usage, "output"),
                    CountOf(*usage, "reasoning")};
  const Json* estimated = Member(*usage, "estimated");
  response.usage.estimated = estimated != nullptr && *estimated == true;
  if (const Json* cost = Member(*json, "cost"); cost != nullptr && cost->is_number()) {
    response.cost = cost->get<double>();
  }
  response.attempts = static_cast<std::uint32_t>(std::min<std::uint64_t>(
      CountOf(*json, "attempts"), std::numeric_limits<std::uint32_t>::max()));
  return response;
}

std::string RequestHash(const ChatRequest& request) {
  const std::string text = RequestJson(request);
  const std::string_view parts[] = {text};
  return ContentHash(parts);
}

}  // namespace kernelpro::llm
