// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "llm/json_text.h"
#include "llm/wire.h"
#include "llm/wire_schema.h"

namespace kernelpro::llm {
namespace {

using Json = nlohmann::ordered_json;

// Anthropic's documentation: a thinking budget below this is refused.
constexpr std::uint32_t kSmallestBudget = 1024;

const Json kCached = {{"type", "ephemeral"}};

Json TextBlock(std::string_view text) {
  return {{"type", "text"}, {"text", text}};
}

/// Arguments are an object on this wire; what a model wrote that is none goes back as text.
Json ArgumentsJson(const std::string& text) {
  auto json = ParseJson(text);
  return json.ok() && json->is_object() ? std::move(*json) : Json{{"malformed", text}};
}

void AddAssistant(const Message& message, bool with_reasoning, Json& content) {
  if (with_reasoning && !message.reasoning.empty()) {
    if (auto blocks = ParseJson(message.reasoning); blocks.ok() && blocks->is_array()) {
      for (Json& block : *blocks) {
        content.push_back(std::move(block));
      }
    }
  }
  if (!message.text.empty()) {
    content.push_back(TextBlock(message.text));
  }
  for (const ToolCall& call : message.calls) {
    content.push_back({{"type", "tool_use"},
                       {"id", call.id},
                       {"name", call.name},
                       {"input", ArgumentsJson(call.arguments)}});
  }
}

void AddUser(const Message& message, Json& content) {
  if (message.role == Message::Role::kTool) {
    Json block = {{"type", "tool_result"}, {"tool_use_id", message.call_id}};
    if (!message.text.empty()) {
      block["content"] = message.text;
    }
    if (message.failed) {
      block["is_error"] = true;
    }
    content.push_back(std::move(block));
  } else if (!message.text.empty()) {
    content.push_back(TextBlock(message.text));
  }
}

/// Neighbours of one side become one message: results of parallel calls must stand together.
/// All but the last message is what the next question will begin with again, so the cache mark
/// stands at its end.
Json MessagesJson(const ChatRequest& request, bool with_reasoning) {
  Json messages = Json::array();
  for (std::size_t i = 0; i < request.messages.size(); ++i) {
    const Message& message = request.messages[i];
    const bool assistant = message.role == Message::Role::kAssistant;
    const char* role = assistant ? "assistant" : "user";
    if (messages.empty() || messages.back()["role"] != role) {
      messages.push_back({{"role", role}, {"content", Json::array()}});
    }
    Json& content = messages.back()["content"];
    const std::size_t before = content.size();
    if (assistant) {
      AddAssistant(message, with_reasoning, content);
    } else {
      AddUser(message, content);
    }
    if (i + 2 == request.messages.size() && content.size() > before &&
        !TextOf(content.back(), "type").ends_with("thinking")) {
      content.back()["cache_control"] = kCached;
    }
  }
  std::erase_if(messages.get_ref<Json::array_t&>(),
                [](const Json& message) { return message["content"].empty(); });
  return messages;
}

std::uint32_t BudgetOf(std::string_view effort, std::uint32_t max_tokens) {
  const std::uint32_t wanted = effort == "high"     ? 24'576
                               : effort == "medium" ? 8192
                               : effort == "low"    ? 2048
                                                    : kSmallestBudget;
  // The budget is part of max_tokens: something must be left for the answer.
  return std::min(wanted, max_tokens / 4 * 3);
}

/// With budgets, an assistant's turn that goes on after tool results must begin with its reasoning;
/// one that was made without cannot be continued with.
bool CanThinkOn(const ChatRequest& request) {
  if (request.messages.empty() || request.messages.back().role != Message::Role::kTool) {
    return true;
  }
  const auto turn = std::ranges::find(request.messages.rbegin(), request.messages.rend(),
                                      Message::Role::kAssistant, &Message::role);
  return turn != request.messages.rend() && !turn->reasoning.empty();
}

/// Whether the model reasons openly and wants no temperature then.
bool AddThinking(const ChatRequest& request, const ClaudeTraits& traits, bool forced, Json& body) {
  if (request.effort.empty()) {
    return false;
  }
  if (traits.adaptive_thinking) {
    body["thinking"] = {{"type", "adaptive"}};
    body["output_config"]["effort"] = request.effort == "minimal" ? "low" : request.effort;
    return true;
  }
  const std::uint32_t budget = BudgetOf(request.effort, request.max_tokens);
  // A forced tool excludes thinking on this wire.
  if (forced || budget < kSmallestBudget || !CanThinkOn(request)) {
    return false;
  }
  body["thinking"] = {{"type", "enabled"}, {"budget_tokens", budget}};
  return true;
}

Status AddTools(const ChatRequest& request, const std::string& answer_tool, Json& body) {
  for (const ToolSpec& tool : request.tools) {
    KP_ASSIGN_OR_RETURN(Json schema, ParseSchema(tool.schema, "the schema of tool " + tool.name));
    body["tools"].push_back({{"name", tool.name},
                             {"description", tool.description},
                             {"input_schema", std::move(schema)}});
  }
  if (answer_tool.empty()) {
    return Ok();
  }
  KP_ASSIGN_OR_RETURN(Json schema, ParseSchema(request.schema, "the schema of the answer"));
  body["tools"].push_back({{"name", answer_tool},
                           {"description", "Gives the answer. Call it once, at the end."},
                           {"input_schema", std::move(schema)}});
  body["tool_choice"] =
      request.tools.empty() ? Json{{"type", "tool"}, {"name", answer_tool}} : Json{{"type", "any"}};
  return Ok();
}

}  // namespace

ClaudeTraits TraitsOf(std::string_view model) {
  const std::size_t at =
      model.find("claude-");  // "anthropic/claude-...", "us.anthropic.claude-..."
  if (at == std::string_view::npos) {
    return {};
  }
  // The first two small numbers are the version: claude-3-7-sonnet-20250219, claude-opus-5.
  std::vector<long long> version;
  for (const std::string_view part : Split(model.substr(at), '-')) {
    // "4.6" at gateways
    for (const std::string_view number : Split(part, '.')) {
      long long value = 0;
      if (number.size() <= 2 && ParseInteger(number, &value)) {
        version.push_back(value);
      }
    }
  }
  if (version.empty()) {
    return {};
  }
  const long long release = version[0] * 100 + (version.size() > 1 ? version[1] : 0);
  return {.json_output = release >= 405,
          .adaptive_thinking = release >= 406,
          .sampling = release < 407};
}

std::string AnswerTool(const Endpoint& endpoint, const ChatRequest& request) {
  if (endpoint.wire != Wire::kAnthropic || request.schema.empty() ||
      TraitsOf(endpoint.model).json_output) {
    return {};
  }
  return "answer";
}

Result<std::string> AnthropicBody(const Endpoint& endpoint, const ChatRequest& request,
                                  bool stream) {
  KP_RETURN_IF_ERROR(CheckEffort(request.effort));
  const ClaudeTraits traits = TraitsOf(endpoint.model);
  const std::string answer_tool = AnswerTool(endpoint, request);
  Json body = {{"model", endpoint.model}, {"max_tokens", request.max_tokens}};
  KP_RETURN_IF_ERROR(AddTools(request, answer_tool, body));
  // The order of the prompt is tools, system, messages: one mark covers all before it.
  if (!request.system.empty()) {
    Json block = TextBlock(request.system);
    block["cache_control"] = kCached;
    body["system"].push_back(std::move(block));
  } else if (body.contains("tools")) {
    body["tools"].back()["cache_control"] = kCached;
  }
  const bool thinks = AddThinking(request, traits, !answer_tool.empty(), body);
  // Models that take no temperature reason unasked, and want their reasoning back then too.
  body["messages"] = MessagesJson(request, thinks || !traits.sampling);
  if (!request.schema.empty() && answer_tool.empty()) {
    KP_ASSIGN_OR_RETURN(Json schema, ParseSchema(request.schema, "the schema of the answer"));
    body["output_config"]["format"] = {{"type", "json_schema"},
                                       {"schema", WithoutBounds(std::move(schema))}};
  }
  if (request.temperature && !thinks && traits.sampling) {
    body["temperature"] = *request.temperature;
  }
  if (stream) {
    body["stream"] = true;
  }
  return JsonText(body);
}

}  // namespace kernelpro::llm
