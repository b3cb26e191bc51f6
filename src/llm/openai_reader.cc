// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
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

/// chat.completion and chat.completion.chunk objects: they differ in "message" against "delta".
class Reader : public AnswerReader {
 public:
  Status Event(const SseEvent& event) override {
    if (event.data == "[DONE]") {
      ended_ = true;
      return Ok();
    }
    KP_ASSIGN_OR_RETURN(const Json json, ParseJson(event.data));
    return Object(json, "delta");
  }

  [[nodiscard]] bool Ended() const override { return ended_; }

  Status Whole(std::string_view body) override {
    KP_ASSIGN_OR_RETURN(const Json json, ParseJson(body));
    KP_RETURN_IF_ERROR(Object(json, "message"));
    if (!reading_.error && Member(json, "choices") == nullptr) {
      return Fail(ErrorCode::kParse, "no \"choices\": this is no chat completion");
    }
    return Ok();
  }

  Reading Finish() override {
    for (auto& [index, call] : calls_) {
      if (call.arguments.empty()) {
        call.arguments = "{}";  // servers leave them out for tools without parameters
      }
      reading_.response.calls.push_back(std::move(call));
    }
    const bool filtered = finish_ == "content_filter";
    JudgeEnd(reading_.response, finish_ == "length", filtered || !refusal_.empty(),
             refusal_.empty() ? finish_ : refusal_);
    return std::move(reading_);
  }

 private:
  Status Object(const Json& json, const char* part) {
    if (!json.is_object()) {
      return Fail(ErrorCode::kParse, "an event that is no JSON object");
    }
    if (Member(json, "error") != nullptr || TextOf(json, "object") == "error") {
      reading_.error = FindServerError(JsonText(json));
      return Ok();
    }
    ChatResponse& response = reading_.response;
    if (response.id.empty()) {
      response.id = TextOf(json, "id");
    }
    if (response.model.empty()) {
      response.model = TextOf(json, "model");
    }
    if (const Json* usage = Member(json, "usage"); usage != nullptr && usage->is_object()) {
      ReadUsage(*usage);
    }
    const Json* choices = Member(json, "choices");
    if (choices == nullptr || !choices->is_array()) {
      return Ok();
    }
    for (const Json& choice : *choices) {
      if (CountOf(choice, "index") == 0) {  // one was asked for
        ReadChoice(choice, part);
      }
    }
    return Ok();
  }

  void ReadChoice(const Json& choice, const char* part) {
    if (std::string why = TextOf(choice, "finish_reason"); !why.empty()) {
      finish_ = std::move(why);
      reading_.complete = true;
    }
    const Json* message = Member(choice, part);
    if (message == nullptr) {
      return;
    }
    ReadContent(*message);
    refusal_ += TextOf(*message, "refusal");
    const Json* calls = Member(*message, "tool_calls");
    if (calls == nullptr || !calls->is_array()) {
      return;
    }
    for (std::size_t i = 0; i < calls->size(); ++i) {
      ReadCall((*calls)[i], i);
    }
  }

  void ReadContent(const Json& message) {
    const Json* content = Member(message, "content");
    if (content != nullptr && content->is_array()) {  // parts, at some gateways
      for (const Json& item : *content) {
        reading_.response.text += TextOf(item, "text");
      }
    } else {
      reading_.response.text += TextOf(message, "content");
    }
  }

  void ReadCall(const Json& json, std::size_t position) {
    // Whole answers number no calls; deltas do.
    const std::uint64_t index =
        Member(json, "index") != nullptr ? CountOf(json, "index") : position;
    ToolCall& call = calls_[index];
    if (std::string id = TextOf(json, "id"); !id.empty()) {
      call.id = std::move(id);
    }
    if (const Json* function = Member(json, "function"); function != nullptr) {
      if (std::string name = TextOf(*function, "name"); !name.empty()) {
        call.name = std::move(name);
      }
      if (const Json* arguments = Member(*function, "arguments");
          arguments != nullptr && arguments->is_object()) {  // older Ollama
        call.arguments = JsonText(*arguments);
      } else {
        call.arguments += TextOf(*function, "arguments");
      }
    }
  }

  void ReadUsage(const Json& json) {
    Usage usage;
    usage.input = CountOf(json, "prompt_tokens");
    usage.output = CountOf(json, "completion_tokens");
    if (const Json* details = Member(json, "prompt_tokens_details"); details != nullptr) {
      usage.cache_read = std::min(CountOf(*details, "cached_tokens"), usage.input);
    }
    if (const Json* details = Member(json, "completion_tokens_details"); details != nullptr) {
      usage.reasoning = std::min(CountOf(*details, "reasoning_tokens"), usage.output);
    }
    // Some servers send running totals with every chunk: the last one counts.
    reading_.response.usage = usage;
    reading_.usage_complete = usage.input > 0;
  }

  Reading reading_;
  bool ended_ = false;
  std::map<std::uint64_t, ToolCall> calls_;
  std::string finish_, refusal_;
};

}  // namespace

std::unique_ptr<AnswerReader> OpenAiReader() {
  return std::make_unique<Reader>();
}

}  // namespace kernelpro::llm
