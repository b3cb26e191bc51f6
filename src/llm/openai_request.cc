// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "llm/endpoint.h"
#include "llm/json_text.h"
#include "llm/wire.h"
#include "llm/wire_schema.h"

namespace kernelpro::llm {
namespace {

using Json = nlohmann::ordered_json;

Json CallJson(const ToolCall& call) {
  return {{"id", call.id},
          {"type", "function"},
          {"function", {{"name", call.name}, {"arguments", call.arguments}}}};
}

Json MessageJson(const Message& message) {
  switch (message.role) {
    case Message::Role::kTool:
      // This wire has no mark for a failed call: the text must say it.
      return {{"role", "tool"},
              {"tool_call_id", message.call_id},
              {"content", (message.failed ? "error: " : "") + message.text}};
    case Message::Role::kAssistant: {
      Json json = {{"role", "assistant"}, {"content", message.text}};
      if (!message.calls.empty()) {
        if (message.text.empty()) {
          json["content"] = nullptr;
        }
        for (const ToolCall& call : message.calls) {
          json["tool_calls"].push_back(CallJson(call));
        }
      }
      return json;
    }
    case Message::Role::kUser:
      break;
  }
  return {{"role", "user"}, {"content", message.text}};
}

Status AddTools(const ChatRequest& request, Json& body) {
  for (const ToolSpec& tool : request.tools) {
    KP_ASSIGN_OR_RETURN(Json schema, ParseSchema(tool.schema, "the schema of tool " + tool.name));
    body["tools"].push_back({{"type", "function"},
                             {"function",
                              {{"name", tool.name},
                               {"description", tool.description},
                               {"parameters", std::move(schema)}}}});
  }
  return Ok();
}

Status AddFormat(const ChatRequest& request, Json& body) {
  if (request.schema.empty()) {
    return Ok();
  }
  KP_ASSIGN_OR_RETURN(Json schema, ParseSchema(request.schema, "the schema of the answer"));
  const bool strict = FitsStrictMode(schema);
  body["response_format"] = {
      {"type", "json_schema"},
      {"json_schema",
       {{"name", request.schema_name.empty() ? "answer" : request.schema_name},
        {"strict", strict},
        {"schema", std::move(schema)}}}};
  return Ok();
}

}  // namespace

bool IsOpenAiReasoner(std::string_view model) {
  if (const std::size_t slash = model.rfind('/'); slash != std::string_view::npos) {
    model.remove_prefix(slash + 1);  // "openai/gpt-5" at gateways
  }
  const bool o_series = model.size() >= 2 && model[0] == 'o' && model[1] >= '1' &&
                        model[1] <= '9' && (model.size() == 2 || model[2] == '-');
  const bool gpt =
      model.size() >= 5 && model.starts_with("gpt-") && model[4] >= '5' && model[4] <= '9';
  return o_series || (gpt && model.find("-chat") == std::string_view::npos);
}

Result<std::string> OpenAiBody(const Endpoint& endpoint, const ChatRequest& request, bool stream) {
  KP_RETURN_IF_ERROR(CheckEffort(request.effort));
  const bool reasoner = IsOpenAiReasoner(endpoint.model);
  Json body = {{"model", endpoint.model}, {"messages", Json::array()}};
  if (!request.system.empty()) {
    body["messages"].push_back({{"role", "system"}, {"content", request.system}});
  }
  for (const Message& message : request.messages) {
    body["messages"].push_back(MessageJson(message));
  }
  KP_RETURN_IF_ERROR(AddTools(request, body));
  KP_RETURN_IF_ERROR(AddFormat(request, body));
  // api.openai.com calls max_tokens deprecated and its reasoning models refuse it; other servers
  // often know no other name, and the unknown one would leave the answer without a limit.
  const bool new_name = reasoner || HostOf(endpoint.base_url) == "api.openai.com";
  body[new_name ? "max_completion_tokens" : "max_tokens"] = request.max_tokens;
  if (request.temperature && !reasoner) {
    body["temperature"] = *request.temperature;
  }
  if (!request.effort.empty()) {
    body["reasoning_effort"] = request.effort;
  }
  if (stream) {
    body["stream"] = true;
    body["stream_options"] = {{"include_usage", true}};
  }
  return JsonText(body);
}

}  // namespace kernelpro::llm
