// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "llm/json_text.h"
#include "llm/wire.h"

namespace kernelpro::llm {
namespace {

using Json = nlohmann::ordered_json;

struct Block {
  std::string type, text, signature, data;
  ToolCall call;
};

class Reader : public AnswerReader {
 public:
  explicit Reader(std::string answer_tool) : answer_tool_(std::move(answer_tool)) {}

  Status Event(const SseEvent& event) override {
    KP_ASSIGN_OR_RETURN(const Json json, ParseJson(event.data));
    if (!json.is_object()) {
      return Fail(ErrorCode::kParse, "an event that is no JSON object");
    }
    const std::string type = TextOf(json, "type");
    if (type == "error" || Member(json, "error") != nullptr) {
      reading_.error = FindServerError(event.data);
    } else if (type == "message_start") {
      if (const Json* message = Member(json, "message"); message != nullptr) {
        Head(*message);
      }
    } else if (type == "content_block_start") {
      if (const Json* block = Member(json, "content_block"); block != nullptr) {
        Start(*block, blocks_[CountOf(json, "index")]);
      }
    } else if (type == "content_block_delta") {
      if (const Json* delta = Member(json, "delta"); delta != nullptr) {
        Delta(*delta, blocks_[CountOf(json, "index")]);
      }
    } else if (type == "message_delta") {
      if (const Json* delta = Member(json, "delta"); delta != nullptr) {
        Stop(*delta);
      }
      ReadUsage(json, true);
    } else if (type == "message_stop") {
      ended_ = true;
    }
    // ping, content_block_stop and kinds to come say nothing that is needed.
    return Ok();
  }

  [[nodiscard]] bool Ended() const override { return ended_; }

  Status Whole(std::string_view body) override {
    KP_ASSIGN_OR_RETURN(const Json json, ParseJson(body));
    if (Member(json, "error") != nullptr) {
      reading_.error = FindServerError(body);
      return Ok();
    }
    const Json* content = Member(json, "content");
    if (content == nullptr || !content->is_array()) {
      return Fail(ErrorCode::kParse, "no \"content\": this is no message of this wire");
    }
    for (std::size_t i = 0; i < content->size(); ++i) {
      Start((*content)[i], blocks_[i]);
    }
    Head(json);
    Stop(json);
    ReadUsage(json, true);
    return Ok();
  }

  Reading Finish() override {
    ChatResponse& response = reading_.response;
    Json reasoning = Json::array();
    for (auto& [index, block] : blocks_) {
      if (block.type == "text") {
        response.text += block.text;
      } else if (block.type == "tool_use") {
        FinishCall(std::move(block.call));
      } else if (block.type == "thinking") {
        reasoning.push_back(
            {{"type", block.type}, {"thinking", block.text}, {"signature", block.signature}});
      } else if (block.type == "redacted_thinking") {
        reasoning.push_back({{"type", block.type}, {"data", block.data}});
      }
    }
    if (!reasoning.empty()) {
      response.reasoning = JsonText(reasoning);
    }
    JudgeEnd(response, stop_ == "max_tokens" || stop_ == "model_context_window_exceeded",
             stop_ == "refusal", stop_);
    return std::move(reading_);
  }

 private:
  void Head(const Json& message) {
    reading_.response.id = TextOf(message, "id");
    reading_.response.model = TextOf(message, "model");
    ReadUsage(message, false);
  }

  static void Start(const Json& json, Block& block) {
    block.type = TextOf(json, "type");
    block.text = TextOf(json, block.type == "thinking" ? "thinking" : "text");
    block.signature = TextOf(json, "signature");
    block.data = TextOf(json, "data");
    block.call.id = TextOf(json, "id");
    block.call.name = TextOf(json, "name");
    // A stream starts with an empty object here and sends the text of the arguments afterwards.
    if (const Json* input = Member(json, "input"); input != nullptr && !input->empty()) {
      block.call.arguments = JsonText(*input);
    }
  }

  static void Delta(const Json& delta, Block& block) {
    const std::string type = TextOf(delta, "type");
    if (type == "text_delta") {
      if (block.type.empty()) {
        block.type = "text";
      }
      block.text += TextOf(delta, "text");
    } else if (type == "thinking_delta") {
      block.text += TextOf(delta, "thinking");
    } else if (type == "signature_delta") {
      block.signature += TextOf(delta, "signature");
    } else if (type == "input_json_delta") {
      block.call.arguments += TextOf(delta, "partial_json");
    }
  }

  void Stop(const Json& json) {
    if (std::string why = TextOf(json, "stop_reason"); !why.empty()) {
      stop_ = std::move(why);
      reading_.complete = true;
    }
  }

  /// `input_tokens` leaves out what the cache had or took; figures of later events are totals.
  void ReadUsage(const Json& holder, bool last) {
    const Json* json = Member(holder, "usage");
    if (json == nullptr || !json->is_object()) {
      return;
    }
    const auto take = [&](const char* key, std::uint64_t& figure) {
      if (Member(*json, key) != nullptr) {
        figure = CountOf(*json, key);
      }
    };
    take("input_tokens", plain_input_);
    Usage& usage = reading_.response.usage;
    take("cache_read_input_tokens", usage.cache_read);
    take("cache_creation_input_tokens", usage.cache_write);
    take("output_tokens", usage.output);
    usage.input = plain_input_ + usage.cache_read + usage.cache_write;
    reading_.usage_complete = last && Member(*json, "output_tokens") != nullptr && usage.input > 0;
  }

  void FinishCall(ToolCall call) {
    if (call.arguments.empty()) {
      call.arguments = "{}";
    }
    if (!answer_tool_.empty() && call.name == answer_tool_) {
      // Words before the call are no part of a structured answer.
      reading_.response.text = std::move(call.arguments);
      return;
    }
    reading_.response.calls.push_back(std::move(call));
  }

  std::string answer_tool_;
  Reading reading_;
  bool ended_ = false;
  std::map<std::uint64_t, Block> blocks_;
  std::string stop_;
  std::uint64_t plain_input_ = 0;
};

}  // namespace

std::unique_ptr<AnswerReader> AnthropicReader(std::string answer_tool) {
  return std::make_unique<Reader>(std::move(answer_tool));
}

}  // namespace kernelpro::llm
