// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "llm/scripted_transport.h"
#include "llm/wire.h"

namespace kernelpro::llm {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

Endpoint Claude(std::string model) {
  return {Wire::kAnthropic, "https://api.anthropic.com", std::move(model)};
}

Json Body(const ChatRequest& request, const std::string& model = "claude-sonnet-4-6") {
  const auto body = RequestBody(Claude(model), request, true);
  EXPECT_TRUE(body.ok()) << body.error().message;
  return body.ok() ? Json::parse(*body) : Json();
}

Reading Streamed(const std::vector<std::string>& events, const std::string& answer_tool = "") {
  const auto reader = AnthropicReader(answer_tool);
  for (const std::string& event : events) {
    EXPECT_TRUE(reader->Event({Json::parse(event)["type"], event}).ok()) << event;
  }
  return reader->Finish();
}

ChatRequest Conversation() {
  ChatRequest request = Question("what is in a.cu and b.cu?");
  request.system = "be brief";
  request.tools = {{"read", "reads a file", R"({"type":"object"})"}};
  request.messages.push_back({Message::Role::kAssistant,
                              "I look.",
                              {{"c1", "read", R"({"path":"a.cu"})"}, {"c2", "read", "{broken"}},
                              "",
                              false,
                              R"([{"type":"thinking","thinking":"hm","signature":"s="}])"});
  request.messages.push_back({Message::Role::kTool, "text of a", {}, "c1", false});
  request.messages.push_back({Message::Role::kTool, "not found", {}, "c2", true});
  return request;
}

TEST(AnthropicRequest, ConversationWithTools) {
  const Json body = Body(Conversation());
  EXPECT_EQ(body["system"], Json::parse(R"([{"type":"text","text":"be brief",
      "cache_control":{"type":"ephemeral"}}])"));
  EXPECT_EQ(
      body["tools"],
      Json::parse(
          R"([{"name":"read","description":"reads a file","input_schema":{"type":"object"}}])"));
  // Results of one turn stand in one message; all but the last message is marked for the cache.
  EXPECT_EQ(body["messages"], Json::parse(R"([
    {"role":"user","content":[{"type":"text","text":"what is in a.cu and b.cu?"}]},
    {"role":"assistant","content":[
      {"type":"text","text":"I look."},
      {"type":"tool_use","id":"c1","name":"read","input":{"path":"a.cu"}},
      {"type":"tool_use","id":"c2","name":"read","input":{"malformed":"{broken"}}]},
    {"role":"user","content":[
      {"type":"tool_result","tool_use_id":"c1","content":"text of a","cache_control":{"type":"ephemeral"}},
      {"type":"tool_result","tool_use_id":"c2","content":"not found","is_error":true}]}])"));
  EXPECT_EQ(body["max_tokens"], 1000);
  EXPECT_EQ(body["stream"], true);
  EXPECT_FALSE(body.contains("tool_choice"));
}

TEST(AnthropicRequest, StablePrefixIsMarkedAndALoneQuestionIsNot) {
  ChatRequest request = Question("the kernel");
  EXPECT_FALSE(Body(request)["messages"][0]["content"][0].contains("cache_control"));
  Message second;
  second.text = "the question";
  request.messages.push_back(second);
  const Json content = Body(request)["messages"][0]["content"];
  ASSERT_EQ(content.size(), 2u);
  EXPECT_TRUE(content[0].contains("cache_control"));
  EXPECT_FALSE(content[1].contains("cache_control"));
  // Without a system text the tools end the part that all questions share.
  request.tools = {{"read", "", "{}"}};
  EXPECT_TRUE(Body(request)["tools"][0].contains("cache_control"));
}

TEST(AnthropicRequest, EmptyTextIsNoBlock) {
  ChatRequest request = Question("");
  request.messages.push_back(Question("x").messages[0]);
  EXPECT_EQ(Body(request)["messages"][0]["content"].size(), 1u);
}

TEST(AnthropicRequest, EffortOfAdaptiveModels) {
  ChatRequest request = Question();
  request.effort = "minimal";
  request.temperature = 0.2;
  for (const char* model : {"claude-sonnet-4-6", "claude-opus-4-7", "claude-sonnet-5-5"}) {
    const Json body = Body(request, model);
    EXPECT_EQ(body["thinking"]["type"], "adaptive") << model;
    EXPECT_FALSE(body["thinking"].contains("budget_tokens")) << model;
    EXPECT_EQ(body["output_config"]["effort"], "low") << model;
    EXPECT_FALSE(body.contains("temperature")) << model;
  }
  request.effort = "";
  EXPECT_FALSE(Body(request).contains("thinking"));
  EXPECT_TRUE(Body(request).contains("temperature"));
  EXPECT_FALSE(Body(request, "claude-opus-4-7").contains("temperature"));  // answers 400 to one
}

TEST(AnthropicRequest, BudgetOfOlderModelsStaysBelowMaxTokens) {
  for (const char* effort : {"minimal", "low", "medium", "high"}) {
    for (const std::uint32_t max_tokens : {1000U, 1368U, 2000U, 16'384U, 64'000U}) {
      ChatRequest request = Question();
      request.effort = effort;
      request.max_tokens = max_tokens;
      request.temperature = 0.2;
      const Json body = Body(request, "claude-haiku-4-5-20251001");
      EXPECT_EQ(body.contains("thinking"), max_tokens >= 1368) << max_tokens;
      EXPECT_EQ(body.contains("temperature"), !body.contains("thinking"));
      if (body.contains("thinking")) {
        EXPECT_GE(body["thinking"]["budget_tokens"], 1024);
        EXPECT_LT(body["thinking"]["budget_tokens"], max_tokens);
      }
    }
  }
}

TEST(AnthropicRequest, ReasoningGoesBackWithItsCalls) {
  ChatRequest request = Conversation();
  request.effort = "high";
  request.max_tokens = 16'000;
  const Json turn = Body(request, "claude-opus-4-5")["messages"][1]["content"];
  EXPECT_EQ(turn[0], Json::parse(R"({"type":"thinking","thinking":"hm","signature":"s="})"));
  // A turn that was made without reasoning cannot be continued with a budget.
  request.messages[1].reasoning.clear();
  EXPECT_FALSE(Body(request, "claude-opus-4-5").contains("thinking"));
  EXPECT_TRUE(Body(request, "claude-opus-4-6").contains("thinking"));
}

TEST(AnthropicRequest, StructuredAnswers) {
  ChatRequest request = Question();
  request.effort = "high";
  request.max_tokens = 16'000;
  request.schema = R"({"type":"object","properties":{"n":{"type":"integer","minimum":1},
                       "minimum":{"type":"string","minLength":2}},"required":["n"]})";
  const Json own = Body(request);
  EXPECT_EQ(own["output_config"]["format"]["type"], "json_schema");
  // Bounds are taken out, a property that is called like one stays.
  EXPECT_EQ(own["output_config"]["format"]["schema"], Json::parse(R"({"type":"object","properties":{
      "n":{"type":"integer"},"minimum":{"type":"string"}},"required":["n"],
      "additionalProperties":false})"));
  EXPECT_FALSE(own.contains("tool_choice"));
  const Json forced = Body(request, "claude-sonnet-4-20250514");
  EXPECT_EQ(forced["tool_choice"], Json::parse(R"({"type":"tool","name":"answer"})"));
  EXPECT_EQ(forced["tools"][0]["input_schema"], Json::parse(request.schema));
  EXPECT_FALSE(forced.contains("thinking"));  // the wire allows no forced tool beside it
  request.tools = {{"read", "", "{}"}};
  EXPECT_EQ(Body(request, "local-model")["tool_choice"]["type"], "any");
}

TEST(AnthropicRequest, TraitsByVersion) {
  EXPECT_FALSE(TraitsOf("claude-3-7-sonnet-20250219").json_output);
  EXPECT_FALSE(TraitsOf("claude-sonnet-4-20250514").json_output);
  EXPECT_FALSE(TraitsOf("claude-opus-4-1").json_output);
  EXPECT_TRUE(TraitsOf("claude-haiku-4-5-20251001").json_output);
  EXPECT_FALSE(TraitsOf("claude-haiku-4-5-20251001").adaptive_thinking);
  EXPECT_TRUE(TraitsOf("anthropic/claude-opus-4.6").adaptive_thinking);
  EXPECT_TRUE(TraitsOf("claude-opus-4-6").sampling);
  EXPECT_FALSE(TraitsOf("claude-opus-5").sampling);
  EXPECT_FALSE(TraitsOf("qwen-9-9").json_output);
}

TEST(AnthropicRequest, Headers) {
  const Headers headers = RequestHeaders(Claude("m"), Key("sk-1"), true);
  EXPECT_EQ(FindHeader(headers, "x-api-key"), "sk-1");
  EXPECT_EQ(FindHeader(headers, "anthropic-version"), "2023-06-01");
  EXPECT_FALSE(FindHeader(headers, "authorization"));
  EXPECT_EQ(RequestUrl(Claude("m")), "https://api.anthropic.com/v1/messages");
}

const std::vector<std::string> kAnswer = {
    R"({"type":"message_start","message":{"id":"msg_1","model":"claude-sonnet-4-6","usage":
        {"input_tokens":10,"cache_creation_input_tokens":100,"cache_read_input_tokens":1000,"output_tokens":1}}})",
    R"({"type":"ping"})",
    R"({"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}})",
    R"({"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"let me"}})",
    R"({"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"sig"}})",
    R"({"type":"content_block_stop","index":0})",
    R"({"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}})",
    R"({"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Hel"}})",
    R"({"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"lo"}})",
    R"({"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t1","name":"read","input":{}}})",
    R"({"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"p\""}})",
    R"({"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":":1}"}})",
};

TEST(AnthropicStream, TextCallReasoningAndUsage) {
  std::vector<std::string> events = kAnswer;
  events.emplace_back(
      R"({"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":77}})");
  events.emplace_back(R"({"type":"message_stop"})");
  const Reading reading = Streamed(events);
  EXPECT_TRUE(reading.complete);
  EXPECT_TRUE(reading.usage_complete);
  EXPECT_EQ(reading.response.text, "Hello");
  ASSERT_EQ(reading.response.calls.size(), 1u);
  EXPECT_EQ(reading.response.calls[0].arguments, R"({"p":1})");
  EXPECT_EQ(reading.response.reasoning,
            R"([{"type":"thinking","thinking":"let me","signature":"sig"}])");
  const Usage& usage = reading.response.usage;
  EXPECT_EQ(usage.input, 1110u);  // the wire's input_tokens leave the cached ones out
  EXPECT_EQ(usage.cache_write, 100u);
  EXPECT_EQ(usage.cache_read, 1000u);
  EXPECT_EQ(usage.output, 77u);
}

TEST(AnthropicStream, CutKeepsWhatIsKnownOfTheCost) {
  const Reading reading = Streamed(kAnswer);
  EXPECT_FALSE(reading.complete);
  EXPECT_FALSE(reading.usage_complete);
  EXPECT_EQ(reading.response.usage.input, 1110u);
}

TEST(AnthropicStream, ErrorEvent) {
  const Reading reading =
      Streamed({kAnswer[0],
                R"({"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}})"});
  ASSERT_TRUE(reading.error);
  EXPECT_EQ(reading.error->type, "overloaded_error");
}

ChatResponse Whole(const std::string& content, const std::string& stop,
                   const std::string& answer_tool = "") {
  const auto reader = AnthropicReader(answer_tool);
  EXPECT_TRUE(reader
                  ->Whole(R"({"id":"m","model":"c","content":)" + content + R"(,"stop_reason":")" +
                          stop + R"(","usage":{"input_tokens":5,"output_tokens":7}})")
                  .ok());
  return reader->Finish().response;
}

TEST(AnthropicWhole, EndsThatAreProblems) {
  const std::string text = R"([{"type":"text","text":"x"}])";
  EXPECT_EQ(Whole(text, "end_turn").problem, Problem::kNone);
  EXPECT_EQ(Whole(text, "max_tokens").problem, Problem::kTruncated);
  EXPECT_EQ(Whole(text, "model_context_window_exceeded").problem, Problem::kTruncated);
  EXPECT_EQ(Whole("[]", "refusal").problem, Problem::kRefused);
  EXPECT_EQ(Whole("[]", "end_turn").problem, Problem::kEmpty);
  EXPECT_FALSE(AnthropicReader("")->Whole(R"({"choices":[]})").ok());
}

TEST(AnthropicWhole, ForcedAnswerIsText) {
  const std::string content = R"([{"type":"text","text":"Here:"},
      {"type":"tool_use","id":"t","name":"answer","input":{"n":1}}])";
  const ChatResponse forced = Whole(content, "tool_use", "answer");
  EXPECT_EQ(forced.text, R"({"n":1})");
  EXPECT_TRUE(forced.calls.empty());
  const ChatResponse honest = Whole(content, "tool_use");  // a tool of the caller's of that name
  EXPECT_EQ(honest.text, "Here:");
  EXPECT_EQ(honest.calls.size(), 1u);
}

}  // namespace
}  // namespace kernelpro::llm
