// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "llm/scripted_transport.h"
#include "llm/wire.h"

namespace kernelpro::llm {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

const Endpoint kVllm{Wire::kOpenAi, "http://127.0.0.1:8000/v1", "qwen"};
const Endpoint kOpenAi{Wire::kOpenAi, "https://api.openai.com/v1", "gpt-4.1"};

Json Body(const ChatRequest& request, const Endpoint& endpoint = kVllm, bool stream = true) {
  const auto body = RequestBody(endpoint, request, stream);
  EXPECT_TRUE(body.ok()) << body.error().message;
  return body.ok() ? Json::parse(*body) : Json();
}

Reading Streamed(const std::vector<std::string>& events) {
  const auto reader = OpenAiReader();
  for (const std::string& event : events) {
    EXPECT_TRUE(reader->Event({"message", event}).ok()) << event;
  }
  return reader->Finish();
}

Reading Whole(std::string_view body) {
  const auto reader = OpenAiReader();
  EXPECT_TRUE(reader->Whole(body).ok());
  return reader->Finish();
}

TEST(OpenAiRequest, ConversationWithTools) {
  ChatRequest request = Question("what is in a.cu?");
  request.system = "be brief";
  request.tools = {{"read", "reads a file", R"({"type":"object","properties":{}})"}};
  Message call{Message::Role::kAssistant, "", {{"c1", "read", R"({"path":"a.cu"})"}}};
  Message result{Message::Role::kTool, "no such file", {}, "c1", true};
  request.messages.push_back(call);
  request.messages.push_back(result);
  request.temperature = 0.5;
  const Json body = Body(request);
  EXPECT_EQ(body["messages"], Json::parse(R"([
    {"role":"system","content":"be brief"},
    {"role":"user","content":"what is in a.cu?"},
    {"role":"assistant","content":null,"tool_calls":[
      {"id":"c1","type":"function","function":{"name":"read","arguments":"{\"path\":\"a.cu\"}"}}]},
    {"role":"tool","tool_call_id":"c1","content":"error: no such file"}])"));
  EXPECT_EQ(body["tools"], Json::parse(R"([{"type":"function","function":{"name":"read",
    "description":"reads a file","parameters":{"type":"object","properties":{}}}}])"));
  EXPECT_EQ(body["temperature"], 0.5);
  EXPECT_EQ(body["stream_options"]["include_usage"], true);
  EXPECT_FALSE(Body(request, kVllm, false).contains("stream"));
}

TEST(OpenAiRequest, NameOfTheLimitByServerAndModel) {
  const ChatRequest request = Question();
  EXPECT_EQ(Body(request, kVllm)["max_tokens"], 1000);
  EXPECT_FALSE(Body(request, kVllm).contains("max_completion_tokens"));
  EXPECT_EQ(Body(request, kOpenAi)["max_completion_tokens"], 1000);
  EXPECT_FALSE(Body(request, kOpenAi).contains("max_tokens"));
  // A host that only looks like OpenAI's.
  EXPECT_TRUE(Body(request, {Wire::kOpenAi, "https://api.openai.com.evil.example/v1", "m"})
                  .contains("max_tokens"));
  EXPECT_TRUE(Body(request, {Wire::kOpenAi, "https://gateway.example/v1", "openai/gpt-5.1"})
                  .contains("max_completion_tokens"));
}

TEST(OpenAiRequest, ReasonersTakeEffortAndNoTemperature) {
  ChatRequest request = Question();
  request.temperature = 0;
  request.effort = "low";
  const Json reasoner = Body(request, {Wire::kOpenAi, "https://api.openai.com/v1", "o4-mini"});
  EXPECT_EQ(reasoner["reasoning_effort"], "low");
  EXPECT_FALSE(reasoner.contains("temperature"));
  EXPECT_TRUE(Body(request, kOpenAi).contains("temperature"));
  for (const char* name : {"o1", "o3", "o4-mini", "gpt-5", "gpt-5.1", "openai/gpt-5-mini"}) {
    EXPECT_TRUE(IsOpenAiReasoner(name)) << name;
  }
  for (const char* name : {"gpt-4o", "gpt-4.1", "olmo", "o", "qwen3", "gpt-5-chat-latest"}) {
    EXPECT_FALSE(IsOpenAiReasoner(name)) << name;
  }
}

TEST(OpenAiRequest, StrictOnlyWhereTheSchemaAllowsIt) {
  ChatRequest request = Question();
  request.schema_name = "plan";
  request.schema = R"({"type":"object","properties":{"a":{"type":"string"}},"required":["a"],
                       "additionalProperties":false})";
  const Json strict = Body(request)["response_format"];
  EXPECT_EQ(strict["type"], "json_schema");
  EXPECT_EQ(strict["json_schema"]["name"], "plan");
  EXPECT_EQ(strict["json_schema"]["strict"], true);
  EXPECT_EQ(strict["json_schema"]["schema"], Json::parse(request.schema));
  request.schema = R"({"type":"object","properties":{"a":{"type":"string"}}})";
  EXPECT_EQ(Body(request)["response_format"]["json_schema"]["strict"], false);
  request.schema = R"({"type":"object","properties":{"a":{"type":"object"}},"required":["a"],
                       "additionalProperties":false})";  // an open object inside
  EXPECT_EQ(Body(request)["response_format"]["json_schema"]["strict"], false);
}

TEST(OpenAiRequest, WrongRequestsAreOurError) {
  ChatRequest request = Question();
  request.schema = "{nonsense";
  EXPECT_THAT(RequestBody(kVllm, request, true).error().message,
              HasSubstr("the schema of the answer is no JSON from byte"));
  request = Question();
  request.tools = {{"read", "", "[]"}};
  EXPECT_THAT(RequestBody(kVllm, request, true).error().message,
              HasSubstr("the schema of tool read is no JSON object"));
  request = Question();
  request.effort = "extreme";
  EXPECT_EQ(RequestBody(kVllm, request, true).error().code, ErrorCode::kInvalidArgument);
}

TEST(OpenAiRequest, TextThatIsNoUtf8IsSentAnyway) {
  EXPECT_EQ(Body(Question("a\xff"))["messages"][0]["content"], "a\xef\xbf\xbd");
}

TEST(OpenAiRequest, KeyIsInItsHeaderOnly) {
  const Headers headers = RequestHeaders(kOpenAi, Key("sk-1"), true);
  EXPECT_EQ(FindHeader(headers, "authorization"), "Bearer sk-1");
  EXPECT_FALSE(FindHeader(RequestHeaders(kVllm, Key(), true), "authorization"));
  EXPECT_EQ(RequestUrl(kOpenAi), "https://api.openai.com/v1/chat/completions");
}

TEST(OpenAiStream, TextUsageAndEnd) {
  const Reading reading = Streamed(
      {R"({"id":"x1","model":"qwen-7b","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]})",
       R"({"id":"x1","choices":[{"index":0,"delta":{"content":"Hel"}}],"usage":null})",
       R"({"choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":null}]})",
       R"({"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]})",
       R"({"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":50,
           "prompt_tokens_details":{"cached_tokens":64},
           "completion_tokens_details":{"reasoning_tokens":48}}})",
       "[DONE]"});
  EXPECT_EQ(reading.response.text, "Hello");
  EXPECT_EQ(reading.response.model, "qwen-7b");
  EXPECT_EQ(reading.response.id, "x1");
  EXPECT_TRUE(reading.complete);
  EXPECT_TRUE(reading.usage_complete);
  EXPECT_EQ(reading.response.problem, Problem::kNone);
  const Usage& usage = reading.response.usage;
  EXPECT_EQ(usage.input, 100u);
  EXPECT_EQ(usage.cache_read, 64u);
  EXPECT_EQ(usage.output, 50u);
  EXPECT_EQ(usage.reasoning, 48u);
}

TEST(OpenAiStream, CallsAreJoinedByIndex) {
  const Reading reading = Streamed(
      {R"({"choices":[{"index":0,"delta":{"tool_calls":[
           {"index":0,"id":"a","type":"function","function":{"name":"read","arguments":""}}]}}]})",
       R"({"choices":[{"index":0,"delta":{"tool_calls":[
           {"index":1,"id":"b","function":{"name":"list","arguments":""}},
           {"index":0,"function":{"arguments":"{\"p\":"}}]}}]})",
       R"({"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}}]})",
       R"({"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]})"});
  ASSERT_EQ(reading.response.calls.size(), 2u);
  EXPECT_EQ(reading.response.calls[0].id, "a");
  EXPECT_EQ(reading.response.calls[0].name, "read");
  EXPECT_EQ(reading.response.calls[0].arguments, R"({"p":1})");
  EXPECT_EQ(reading.response.calls[1].name, "list");
  EXPECT_EQ(reading.response.calls[1].arguments, "{}");
  EXPECT_EQ(reading.response.problem, Problem::kNone);
}

TEST(OpenAiStream, NoFinishReasonIsNotComplete) {
  EXPECT_FALSE(
      Streamed({R"({"choices":[{"index":0,"delta":{"content":"Hel"}}]})", "[DONE]"}).complete);
}

TEST(OpenAiStream, ErrorInside) {
  const Reading reading =
      Streamed({R"({"error":{"message":"engine died","type":"server_error","code":null}})"});
  ASSERT_TRUE(reading.error);
  EXPECT_EQ(reading.error->message, "engine died");
  EXPECT_TRUE(
      Streamed({R"({"object":"error","message":"too long","type":"BadRequestError"})"}).error);
}

TEST(OpenAiWhole, EndsThatAreProblems) {
  const auto problem = [](const std::string& message, const std::string& finish) {
    return Whole(R"({"choices":[{"index":0,"message":)" + message + R"(,"finish_reason":")" +
                 finish + R"("}]})")
        .response;
  };
  EXPECT_EQ(problem(R"({"content":"ok"})", "stop").problem, Problem::kNone);
  EXPECT_EQ(problem(R"({"content":"ha"})", "length").problem, Problem::kTruncated);
  EXPECT_EQ(problem(R"({"content":"ha"})", "content_filter").problem, Problem::kRefused);
  const ChatResponse refused = problem(R"({"content":null,"refusal":"I will not"})", "stop");
  EXPECT_EQ(refused.problem, Problem::kRefused);
  EXPECT_THAT(refused.problem_text, HasSubstr("I will not"));
  EXPECT_EQ(problem(R"({"content":" \n"})", "stop").problem, Problem::kEmpty);
  EXPECT_EQ(problem(R"({"content":null,"tool_calls":[
      {"id":"a","function":{"name":"f","arguments":"{}"}}]})",
                    "stop")
                .problem,
            Problem::kNone);
}

TEST(OpenAiWhole, ForeignShapesAreNoAnswer) {
  for (const char* body : {"{}", "[]", "7", R"({"content":"x"})", "{", ""}) {
    EXPECT_FALSE(OpenAiReader()->Whole(body).ok()) << body;
  }
  // Wrong kinds of values in the right places: nothing is read of them, nothing breaks.
  EXPECT_EQ(Whole(R"({"choices":[{"message":{"content":7,"tool_calls":{}},"finish_reason":[]}],
                      "usage":{"prompt_tokens":-3,"completion_tokens":1.5}})")
                .response.usage.output,
            0u);
}

TEST(ServerErrors, InTheUsualPlaces) {
  EXPECT_EQ(FindServerError(R"({"error":{"message":"m","code":"c"}})")->code, "c");
  EXPECT_EQ(FindServerError(R"({"error":"model not found"})")->message, "model not found");
  EXPECT_EQ(FindServerError(R"({"object":"error","message":"m"})")->message, "m");
  EXPECT_EQ(FindServerError(R"({"detail":"Not Found"})")->message, "Not Found");
  EXPECT_EQ(FindServerError(R"({"type":"error","error":{"type":"overloaded_error","message":"m"}})")
                ->type,
            "overloaded_error");
  EXPECT_FALSE(FindServerError("<html>"));
  EXPECT_FALSE(FindServerError(R"({"ok":1})"));
}

}  // namespace
}  // namespace kernelpro::llm
