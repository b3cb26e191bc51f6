// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "wire.h"

namespace kernelpro::fake {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kCreated = 1767225600;

bool Refuse(Refusal& refusal, std::string message) {
  refusal = {400, "invalid_request_error", "", std::move(message)};
  return false;
}

/// Strict mode takes a subset of JSON Schema: objects name all of their properties as required and
/// allow no others.
bool StrictSchema(const Json& schema, const std::string& path, std::string& wrong) {
  if (!schema.is_object()) {
    return true;
  }
  if (schema.value("type", Json()) == "object" || schema.contains("properties")) {
    if (schema.value("additionalProperties", Json()) != false) {
      wrong = fmt::format(
          "In context=({}), 'additionalProperties' is required to be supplied and to be false.",
          path);
      return false;
    }
    std::set<std::string> required;
    for (const Json& name : schema.value("required", Json::array())) {
      required.insert(name.get<std::string>());
    }
    const Json properties = schema.value("properties", Json::object());
    for (const auto& [name, property] : properties.items()) {
      if (!required.contains(name)) {
        wrong = fmt::format(
            "In context=({}), 'required' is required to be supplied and to be an array including "
            "every key in properties. Missing '{}'.",
            path, name);
        return false;
      }
      if (!StrictSchema(property, fmt::format("{}, {}", path, name), wrong)) {
        return false;
      }
    }
  }
  return !schema.contains("items") || StrictSchema(schema["items"], path + ", items", wrong);
}

bool ReadFormat(const Json& format, Asked& asked, Refusal& refusal) {
  if (format.value("type", "") != "json_schema") {
    return true;
  }
  const Json spec = format.value("json_schema", Json::object());
  if (!spec.contains("name") || !spec.contains("schema")) {
    return Refuse(refusal, "Missing required parameter: 'response_format.json_schema.name'.");
  }
  std::string wrong;
  if (spec.value("strict", false) && !StrictSchema(spec["schema"], "", wrong)) {
    return Refuse(refusal, fmt::format("Invalid schema for response_format '{}': {}",
                                       spec["name"].get<std::string>(), wrong));
  }
  asked.schema = spec["schema"].dump();
  return true;
}

/// Each call of a tool is answered by exactly one message of role 'tool', right after it.
bool ReadMessages(const Json& messages, Asked& asked, Refusal& refusal) {
  std::set<std::string> open;
  for (const Json& message : messages) {
    const std::string role = message.value("role", "");
    if (role == "tool") {
      if (open.erase(message.value("tool_call_id", "")) == 0) {
        return Refuse(refusal,
                      "Invalid parameter: messages with role 'tool' must be a response to a "
                      "preceding message with 'tool_calls'.");
      }
    } else if (!open.empty()) {
      return Refuse(refusal,
                    "An assistant message with 'tool_calls' must be followed by tool messages "
                    "responding to each 'tool_call_id'.");
    } else if (role != "system" && role != "developer" && role != "user" && role != "assistant") {
      return Refuse(refusal,
                    fmt::format("Invalid value: '{}'. Supported values are: 'system', 'assistant', "
                                "'user', 'function', 'tool', and 'developer'.",
                                role));
    }
    for (const Json& call : message.value("tool_calls", Json::array())) {
      open.insert(call.at("id").get<std::string>());
      const Json& function = call.at("function");
      if (call.at("type") != "function" || !function.at("arguments").is_string() ||
          !function.at("name").is_string()) {
        return Refuse(refusal, "Invalid type for 'messages[].tool_calls[].function.arguments'.");
      }
    }
    const std::string text = ContentText(message.value("content", Json()));
    if (role == "system" || role == "developer") {
      asked.system += text;
    }
    asked.last = text;
    asked.prompt.push_back({message.dump(), true});
  }
  if (!open.empty()) {
    return Refuse(refusal,
                  "An assistant message with 'tool_calls' must be followed by tool messages "
                  "responding to each 'tool_call_id'.");
  }
  return true;
}

Json UsageJson(const Tokens& tokens) {
  return {{"prompt_tokens", tokens.prompt},
          {"completion_tokens", tokens.completion},
          {"total_tokens", tokens.prompt + tokens.completion},
          {"prompt_tokens_details", {{"cached_tokens", tokens.cached}, {"audio_tokens", 0}}},
          {"completion_tokens_details",
           {{"reasoning_tokens", tokens.reasoning},
            {"audio_tokens", 0},
            {"accepted_prediction_tokens", 0},
            {"rejected_prediction_tokens", 0}}}};
}

std::string Finish(const Answer& answer) {
  if (answer.truncated) {
    return "length";
  }
  return answer.calls.empty() ? "stop" : "tool_calls";
}

Json CallJson(const AnswerCall& call, const std::string& id, std::size_t index) {
  return {{"id", fmt::format("call_{}_{}", id, index)},
          {"type", "function"},
          {"function", {{"name", call.name}, {"arguments", call.arguments}}}};
}

Json Choice(const Json& delta, const Json& reason) {
  return {{"index", 0}, {"delta", delta}, {"logprobs", nullptr}, {"finish_reason", reason}};
}

/// Writes the chunks of one stream.
class Chunks {
 public:
  Chunks(const Asked& asked, const std::string& id, Reply& reply)
      : asked_(asked), id_(id), reply_(reply) {}

  void Delta(const Json& delta, std::uint64_t tokens) {
    Add(Json::array({Choice(delta, nullptr)}), nullptr, tokens);
  }

  void Finish(const std::string& reason) {
    Add(Json::array({Choice(Json::object(), reason)}), nullptr, 0);
  }

  void Usage(const Json& usage) { Add(Json::array(), usage, 0); }

  void Raw(const std::string& piece) {
    reply_.pieces.push_back(piece);
    reply_.tokens.push_back(0);
  }

 private:
  void Add(const Json& choices, const Json& usage, std::uint64_t tokens) {
    Json chunk = {{"id", "chatcmpl-" + id_},   {"object", "chat.completion.chunk"},
                  {"created", kCreated},       {"model", asked_.model},
                  {"service_tier", "default"}, {"system_fingerprint", "fp_test"},
                  {"choices", choices}};
    if (asked_.include_usage) {
      chunk["usage"] = usage;
    }
    reply_.pieces.push_back("data: " + chunk.dump() + "\n\n");
    reply_.tokens.push_back(tokens);
  }

  const Asked& asked_;
  const std::string& id_;
  Reply& reply_;
};

Reply Stream(const Asked& asked, const Answer& answer, const Tokens& tokens,
             const std::string& id) {
  Reply reply;
  reply.chunked = true;
  reply.content_type = "text/event-stream; charset=utf-8";
  Chunks chunks(asked, id, reply);
  chunks.Delta({{"role", "assistant"},
                {"content", answer.calls.empty() ? Json("") : Json(nullptr)},
                {"refusal", nullptr}},
               answer.reasoning);
  reply.head_pieces = 1;
  const char* field = answer.refused ? "refusal" : "content";
  for (const std::string& token : Tokenize(answer.text)) {
    chunks.Delta(Json::object({{field, token}}), 1);
  }
  for (std::size_t i = 0; i < answer.calls.size(); ++i) {
    Json first = CallJson(answer.calls[i], id, i);
    first["function"]["arguments"] = "";
    Json with_index = Json::object({{"index", i}});
    with_index.update(first);
    chunks.Delta(Json::object({{"tool_calls", Json::array({with_index})}}), 1);
    for (const std::string& token : Tokenize(answer.calls[i].arguments)) {
      const Json part = {{"index", i}, {"function", Json::object({{"arguments", token}})}};
      chunks.Delta(Json::object({{"tool_calls", Json::array({part})}}), 1);
    }
  }
  chunks.Finish(Finish(answer));
  reply.tail_pieces = 2;
  if (asked.include_usage && !answer.no_usage) {
    chunks.Usage(UsageJson(tokens));
    ++reply.tail_pieces;
  }
  chunks.Raw("data: [DONE]\n\n");
  return reply;
}

}  // namespace

bool ReadOpenAi(const HttpRequest& http, Asked& asked, Refusal& refusal) {
  const Json body = Json::parse(http.body, nullptr, false);
  if (!body.is_object()) {
    return Refuse(refusal, "We could not parse the JSON body of your request.");
  }
  asked.wire = Wire::kOpenAi;
  try {
    asked.model = body.at("model").get<std::string>();
    asked.stream = body.value("stream", false);
    asked.include_usage =
        asked.stream && body.value("stream_options", Json::object()).value("include_usage", false);
    asked.max_tokens =
        body.value("max_completion_tokens", body.value("max_tokens", std::uint64_t{1} << 20U));
    if (!body.contains("messages") || body["messages"].empty()) {
      return Refuse(refusal,
                    "Invalid 'messages': empty array. Expected an array with minimum length 1.");
    }
    for (const Json& tool : body.value("tools", Json::array())) {
      asked.tools.push_back(tool.at("function").at("name").get<std::string>());
      asked.prompt.push_back({tool.dump(), true});
    }
    if (body.contains("tool_choice") && body["tool_choice"].is_object()) {
      asked.forced_tool = body["tool_choice"].at("function").at("name").get<std::string>();
    }
    return ReadFormat(body.value("response_format", Json::object()), asked, refusal) &&
           ReadMessages(body["messages"], asked, refusal);
  } catch (const Json::exception& error) {
    return Refuse(refusal, fmt::format("Invalid type for a parameter: {}", error.what()));
  }
}

Reply WriteOpenAi(const Asked& asked, const Answer& answer, const Tokens& tokens,
                  const std::string& id) {
  if (asked.stream) {
    return Stream(asked, answer, tokens, id);
  }
  Json message = Json::object({{"role", "assistant"}});
  const bool says = !answer.refused && (answer.calls.empty() || !answer.text.empty());
  message["content"] = says ? Json(answer.text) : Json(nullptr);
  for (std::size_t i = 0; i < answer.calls.size(); ++i) {
    message["tool_calls"].push_back(CallJson(answer.calls[i], id, i));
  }
  message["refusal"] = answer.refused ? Json(answer.text) : Json(nullptr);
  message["annotations"] = Json::array();
  const Json choice = {
      {"index", 0}, {"message", message}, {"logprobs", nullptr}, {"finish_reason", Finish(answer)}};
  Json all = {{"id", "chatcmpl-" + id},
              {"object", "chat.completion"},
              {"created", kCreated},
              {"model", asked.model},
              {"choices", Json::array({choice})}};
  if (!answer.no_usage) {
    all["usage"] = UsageJson(tokens);
  }
  all["service_tier"] = "default";
  Reply reply;
  reply.pieces = {all.dump()};
  reply.tokens = {tokens.completion};
  return reply;
}

}  // namespace kernelpro::fake
