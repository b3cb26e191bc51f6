// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "wire.h"

namespace kernelpro::fake {
namespace {

using Json = nlohmann::ordered_json;

bool Refuse(Refusal& refusal, std::string message) {
  refusal = {400, "invalid_request_error", "", std::move(message)};
  return false;
}

bool Marked(const Json& part) {
  if (!part.is_object()) {
    return false;
  }
  if (part.contains("cache_control")) {
    return true;
  }
  if (!part.contains("content")) {
    return false;
  }
  for (const Json& inner : part["content"]) {
    if (inner.is_object() && inner.contains("cache_control")) {
      return true;
    }
  }
  return false;
}

/// The text of a part for the cache: a mark that moves does not change what is cached.
std::string Unmarked(Json part) {
  part.erase("cache_control");
  if (part.contains("content") && part["content"].is_array()) {
    for (Json& inner : part["content"]) {
      inner.erase("cache_control");
    }
  }
  return part.dump();
}

void AddParts(const Json& list, Asked& asked) {
  for (const Json& part : list) {
    asked.prompt.push_back({Unmarked(part), Marked(part)});
  }
}

/// Ids of the blocks of one type in a message.
std::set<std::string> Ids(const Json& message, const char* type, const char* key) {
  std::set<std::string> ids;
  const Json content = message.value("content", Json());
  if (content.is_array()) {
    for (const Json& block : content) {
      if (block.value("type", "") == type) {
        ids.insert(block.at(key).get<std::string>());
      }
    }
  }
  return ids;
}

bool ReadMessages(const Json& messages, Asked& asked, Refusal& refusal) {
  std::set<std::string> open;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Json& message = messages[i];
    const std::string role = message.value("role", "");
    if (role != "user" && role != "assistant") {
      return Refuse(refusal, fmt::format("messages.{}: role must be \"user\" or \"assistant\"", i));
    }
    const std::set<std::string> results = Ids(message, "tool_result", "tool_use_id");
    if (results != open) {
      return Refuse(
          refusal,
          fmt::format(
              "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately "
              "after, or `tool_result` blocks without a `tool_use` block in the previous message",
              i));
    }
    open = Ids(message, "tool_use", "id");
    const Json content = message.value("content", Json());
    for (const Json& block : content.is_array() ? content : Json::array()) {
      if (block.value("type", "") == "tool_use" && !block.at("input").is_object()) {
        return Refuse(
            refusal,
            fmt::format("messages.{}.content: tool_use.input: Input should be a valid dictionary",
                        i));
      }
      if (block.value("type", "") == "text" &&
          block.at("text").get_ref<const std::string&>().empty()) {
        return Refuse(refusal,
                      fmt::format("messages.{}: text content blocks must be non-empty", i));
      }
    }
    asked.last = ContentText(content);
    if (content.empty() || (content.is_string() && content.get_ref<const std::string&>().empty())) {
      return Refuse(refusal,
                    fmt::format("messages.{}: all messages must have non-empty content", i));
    }
  }
  if (!open.empty()) {
    return Refuse(
        refusal,
        "messages: `tool_use` ids were found without `tool_result` blocks immediately after");
  }
  AddParts(messages, asked);
  return true;
}

Json UsageJson(const Tokens& tokens, std::uint64_t output) {
  return {{"input_tokens", tokens.prompt - tokens.cached - tokens.cache_written},
          {"cache_creation_input_tokens", tokens.cache_written},
          {"cache_read_input_tokens", tokens.cached},
          {"cache_creation",
           {{"ephemeral_5m_input_tokens", tokens.cache_written}, {"ephemeral_1h_input_tokens", 0}}},
          {"output_tokens", output},
          {"service_tier", "standard"}};
}

std::string StopReason(const Answer& answer) {
  if (answer.refused) {
    return "refusal";
  }
  if (answer.truncated) {
    return "max_tokens";
  }
  return answer.calls.empty() ? "end_turn" : "tool_use";
}

Json MessageJson(const Asked& asked, const std::string& id) {
  return {{"id", "msg_" + id},       {"type", "message"},        {"role", "assistant"},
          {"model", asked.model},    {"content", Json::array()}, {"stop_reason", nullptr},
          {"stop_sequence", nullptr}};
}

class Events {
 public:
  explicit Events(Reply& reply) : reply_(reply) {}

  void Add(const std::string& type, const Json& rest, std::uint64_t tokens = 0) {
    Json event = Json::object({{"type", type}});
    event.update(rest);
    reply_.pieces.push_back("event: " + type + "\ndata: " + event.dump() + "\n\n");
    reply_.tokens.push_back(tokens);
  }

  void Block(const Json& start, const char* delta_type, const char* key, const std::string& text) {
    Add("content_block_start", {{"index", blocks_}, {"content_block", start}});
    for (const std::string& token : Tokenize(text)) {
      Add("content_block_delta",
          {{"index", blocks_}, {"delta", {{"type", delta_type}, {key, token}}}}, 1);
    }
    Add("content_block_stop", Json::object({{"index", blocks_}}));
    ++blocks_;
  }

 private:
  Reply& reply_;
  std::size_t blocks_ = 0;
};

Reply Stream(const Asked& asked, const Answer& answer, const Tokens& tokens,
             const std::string& id) {
  Reply reply;
  reply.chunked = true;
  reply.content_type = "text/event-stream; charset=utf-8";
  Events events(reply);
  Json message = MessageJson(asked, id);
  if (!answer.no_usage) {
    message["usage"] = UsageJson(tokens, 1);
  }
  events.Add("message_start", Json::object({{"message", message}}), answer.reasoning);
  events.Add("ping", Json::object());
  reply.head_pieces = 2;
  if (!answer.text.empty()) {
    events.Block({{"type", "text"}, {"text", ""}}, "text_delta", "text", answer.text);
  }
  for (std::size_t i = 0; i < answer.calls.size(); ++i) {
    events.Block({{"type", "tool_use"},
                  {"id", fmt::format("toolu_{}_{}", id, i)},
                  {"name", answer.calls[i].name},
                  {"input", Json::object()}},
                 "input_json_delta", "partial_json", answer.calls[i].arguments);
    ++reply.tokens[reply.tokens.size() - 2];  // the call's name
  }
  Json delta = Json::object();
  delta["delta"] = {{"stop_reason", StopReason(answer)}, {"stop_sequence", nullptr}};
  if (!answer.no_usage) {
    delta["usage"] = UsageJson(tokens, tokens.completion);
  }
  events.Add("message_delta", delta);
  events.Add("message_stop", Json::object());
  reply.tail_pieces = 2;
  return reply;
}

}  // namespace

bool ReadAnthropic(const HttpRequest& http, Asked& asked, Refusal& refusal) {
  if (http.Header("anthropic-version").empty()) {
    return Refuse(refusal, "anthropic-version: header is required");
  }
  const Json body = Json::parse(http.body, nullptr, false);
  if (!body.is_object()) {
    return Refuse(refusal, "The request body is not valid JSON.");
  }
  asked.wire = Wire::kAnthropic;
  try {
    asked.model = body.at("model").get<std::string>();
    if (!body.contains("max_tokens")) {
      return Refuse(refusal, "max_tokens: Field required");
    }
    asked.max_tokens = body["max_tokens"].get<std::uint64_t>();
    asked.stream = body.value("stream", false);
    for (const Json& tool : body.value("tools", Json::array())) {
      asked.tools.push_back(tool.at("name").get<std::string>());
      (void)tool.at("input_schema").at("type");
    }
    AddParts(body.value("tools", Json::array()), asked);
    const Json choice = body.value("tool_choice", Json::object());
    if (choice.value("type", "") == "tool") {
      asked.forced_tool = choice.at("name").get<std::string>();
    }
    const Json system = body.value("system", Json(""));
    asked.system = ContentText(system);
    if (system.is_array()) {
      AddParts(system, asked);
    } else if (!asked.system.empty()) {
      asked.prompt.push_back({asked.system, false});
    }
    const Json format = body.value("output_config", Json::object()).value("format", Json::object());
    if (format.value("type", "") == "json_schema") {
      asked.schema = format.at("schema").dump();
    }
    if (!body.contains("messages") || body["messages"].empty()) {
      return Refuse(refusal, "messages: at least one message is required");
    }
    if (!ReadMessages(body["messages"], asked, refusal)) {
      return false;
    }
    asked.prompt.back().marked |= body.contains("cache_control");
    return true;
  } catch (const Json::exception& error) {
    return Refuse(refusal, fmt::format("Field required or of a wrong type: {}", error.what()));
  }
}

Reply WriteAnthropic(const Asked& asked, const Answer& answer, const Tokens& tokens,
                     const std::string& id) {
  if (asked.stream) {
    return Stream(asked, answer, tokens, id);
  }
  Json all = MessageJson(asked, id);
  if (!answer.text.empty()) {
    all["content"].push_back({{"type", "text"}, {"text", answer.text}});
  }
  for (std::size_t i = 0; i < answer.calls.size(); ++i) {
    const Json input = Json::parse(answer.calls[i].arguments, nullptr, false);
    all["content"].push_back({{"type", "tool_use"},
                              {"id", fmt::format("toolu_{}_{}", id, i)},
                              {"name", answer.calls[i].name},
                              {"input", input.is_discarded() ? Json::object() : input}});
  }
  all["stop_reason"] = StopReason(answer);
  if (!answer.no_usage) {
    all["usage"] = UsageJson(tokens, tokens.completion);
  }
  Reply reply;
  reply.pieces = {all.dump()};
  reply.tokens = {tokens.completion};
  return reply;
}

}  // namespace kernelpro::fake
