// SPDX-License-Identifier: Apache-2.0
// Every failure that users meet: what is said of it, and that no message holds the key.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "llm/scripted_transport.h"

namespace kernelpro::llm {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Error ErrorOf(Reply reply, Wire wire = Wire::kOpenAi, bool with_key = true) {
  Bench bench({std::move(reply)}, wire);
  bench.options.max_attempts = 1;
  if (!with_key) {
    bench.options.key = Key();
  }
  auto response = bench.Ask(Question());
  EXPECT_FALSE(response.ok());
  return response.ok() ? Fail(ErrorCode::kInternal, "no error") : response.error();
}

Reply Page(int status, std::string html) {
  return {status, std::move(html), {{"Content-Type", "text/html; charset=utf-8"}}};
}

Reply Json(int status, std::string body) {
  return {status, std::move(body)};
}

TEST(Faults, WrongKey) {
  const Error openai = ErrorOf(Json(401, R"({"error":{"message":"Incorrect API key provided"}})"));
  EXPECT_EQ(openai.code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(openai.message,
              AllOf(HasSubstr("some-model at https://api.example.com/v1"),
                    HasSubstr("the key was not accepted"), HasSubstr("check OPENAI_API_KEY")));
  EXPECT_THAT(ErrorOf(Json(403, R"({"type":"error","error":{"type":"permission_error",
                                    "message":"no access"}})"),
                      Wire::kAnthropic)
                  .message,
              AllOf(HasSubstr("no access"), HasSubstr("check ANTHROPIC_API_KEY")));
}

TEST(Faults, NoKeyWhereOneIsWanted) {
  EXPECT_THAT(ErrorOf(Json(401, "{}"), Wire::kOpenAi, false).message,
              AllOf(HasSubstr("wants a key and none was given"), HasSubstr("set OPENAI_API_KEY")));
}

TEST(Faults, UnknownModel) {
  for (
      const Reply& reply :
      {Json(
           404,
           R"({"error":{"message":"The model `some-model` does not exist","code":"model_not_found"}})"),
       Json(400, R"({"error":{"message":"nope","code":"model_not_found"}})"),
       Json(404, R"({"error":"model \"some-model\" not found, try pulling it first"})"),
       Json(
           404,
           R"({"object":"error","message":"The model `x` does not exist.","type":"NotFoundError"})"),
       Json(404, R"({"type":"error","error":{"type":"not_found_error","message":"model: x"}})")}) {
    const Error error = ErrorOf(reply);
    EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.message, AllOf(HasSubstr("does not know the model 'some-model'"),
                                     HasSubstr("no other model is tried")));
  }
}

TEST(Faults, WrongPath) {
  const Error error = ErrorOf(Json(404, R"({"detail":"Not Found"})"));
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message,
              AllOf(HasSubstr("nothing at https://api.example.com/v1/chat/completions"),
                    HasSubstr("usually ends in /v1")));
}

TEST(Faults, WrongRequest) {
  const Error error = ErrorOf(Json(400, R"({"error":{"message":"context length exceeded"}})"));
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message,
              AllOf(HasSubstr("calls the request wrong"), HasSubstr("context length exceeded")));
}

TEST(Faults, HtmlInsteadOfJson) {
  const Error error =
      ErrorOf(Page(200, "<!DOCTYPE html>\n<html><head><TITLE>Welcome to\nnginx</TITLE></head>"));
  EXPECT_EQ(error.code, ErrorCode::kParse);
  EXPECT_THAT(error.message, HasSubstr("an HTML page came back (\"Welcome to nginx\"): is the base "
                                       "URL right?"));
  EXPECT_THAT(ErrorOf(Page(200, "<html>no title")).message, HasSubstr("an HTML page came back:"));
  // A gateway's page with an error status is told with its status, and is tried again.
  const Error gateway = ErrorOf(Page(502, "<html><title>502 Bad Gateway</title>"));
  EXPECT_EQ(gateway.code, ErrorCode::kUnavailable);
  EXPECT_THAT(gateway.message, AllOf(HasSubstr("status 502"), HasSubstr("\"502 Bad Gateway\"")));
}

TEST(Faults, WrongContentType) {
  const Error error = ErrorOf({200, "hello there", {{"Content-Type", "text/plain"}}});
  EXPECT_EQ(error.code, ErrorCode::kParse);
  EXPECT_THAT(error.message,
              AllOf(HasSubstr("wrong content type \"text/plain\""), HasSubstr("`hello there`")));
}

TEST(Faults, MalformedJson) {
  const Error error = ErrorOf(Json(200, R"({"choices": [oops]})"));
  EXPECT_EQ(error.code, ErrorCode::kParse);
  EXPECT_THAT(error.message, AllOf(HasSubstr("no JSON from byte 14 of 19"), HasSubstr("oops")));
  EXPECT_THAT(ErrorOf(Events("data: {\"choices\": ]}\n\n")).message,
              HasSubstr("no JSON from byte"));
  EXPECT_THAT(ErrorOf(Json(200, R"({"hello":1})")).message, HasSubstr("no chat completion"));
  EXPECT_THAT(ErrorOf(Json(200, std::string(100'000, '['))).message, HasSubstr("nests deeper"));
}

TEST(Faults, EventWithoutEnd) {
  EXPECT_THAT(ErrorOf(Events("data: " + std::string(9U << 20U, 'x'))).message,
              HasSubstr("longer than 8388608 bytes"));
}

TEST(Faults, ErrorInsideAStream) {
  const Error trouble = ErrorOf(Events("data: {\"error\":{\"message\":\"engine died\"}}\n\n"));
  EXPECT_EQ(trouble.code, ErrorCode::kUnavailable);
  EXPECT_THAT(trouble.message, HasSubstr("engine died"));
  const Error wrong = ErrorOf(
      Events(
          "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\","
          "\"message\":\"bad\"}}\n\n"),
      Wire::kAnthropic);
  EXPECT_EQ(wrong.code, ErrorCode::kInvalidArgument);
}

TEST(Faults, Redirects) {
  const Error error = ErrorOf(
      {308, "", {{"Location", "https://evil.example/v1?token=1"}, {"Content-Length", "0"}}});
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message, AllOf(HasSubstr("redirects (status 308 to evil.example)"),
                                   HasSubstr("final base URL"), Not(HasSubstr("token"))));
}

TEST(Faults, OfTheConnection) {
  const auto of = [](HttpEnd end) {
    return ErrorOf({0, "", {}, end, end == HttpEnd::kIdle, "Could not resolve host"});
  };
  EXPECT_THAT(of(HttpEnd::kNoConnection).message,
              HasSubstr("no connection (Could not resolve host)"));
  EXPECT_THAT(of(HttpEnd::kNoTrust).message, HasSubstr("certificate was not accepted"));
  EXPECT_THAT(of(HttpEnd::kIdle).message, HasSubstr("nothing was received for 300.0 s"));
  EXPECT_EQ(of(HttpEnd::kTotalTimeout).code, ErrorCode::kTimeout);
  EXPECT_THAT(of(HttpEnd::kCut).message, HasSubstr("ended before the answer did"));
  EXPECT_THAT(of(HttpEnd::kTooLarge).message, HasSubstr("more than 64 MiB"));
}

TEST(Faults, ServersTextIsMadePrintableAndShort) {
  const Error error = ErrorOf(Json(500, "\x1b[31mred\n" + std::string(5000, 'x')));
  EXPECT_THAT(error.message, AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\n"))));
  EXPECT_LT(error.message.size(), 1000u);
}

/// The key in every form that a server may repeat it in.
std::vector<std::string> Echoes() {
  const std::string key = kCanary;
  return {key, key.substr(0, 9) + "...", key.substr(5, 14),
          nlohmann::json(key).dump().substr(1, key.size() + 1),
          "sk-CANARY-0a1b%2F2c3d%2B4e5f_6789%22xyz"};
}

void ExpectClean(const std::string& text) {
  const std::string key = kCanary;
  for (std::size_t at = 0; at + 12 <= key.size(); ++at) {
    EXPECT_THAT(text, Not(HasSubstr(key.substr(at, 12))));
  }
  EXPECT_THAT(text, Not(HasSubstr("sk-CANARY")));
}

TEST(Canary, KeyIsInNoErrorWhateverTheServerRepeats) {
  for (const std::string& echo : Echoes()) {
    const std::string quoted = nlohmann::json(echo).dump();
    const std::vector<Reply> replies = {
        Json(401, R"({"error":{"message":"bad key: )" + quoted.substr(1) + "}}"),
        Json(400, R"({"error":)" + quoted + "}"),
        Json(404, "nothing for " + echo),
        Json(429,
             R"({"error":{"message":"x","code":"insufficient_quota","param":)" + quoted + "}}"),
        Json(200, "oops " + echo),
        Page(200, "<title>" + echo + "</title>"),
        Page(503, "<title>" + echo + "</title>"),
        Events("data: " + echo + "\n\n"),
        Events(R"(data: {"error":{"message":)" + quoted + "}}\n\n"),
        {200, echo, {{"Content-Type", "text/" + echo}}},
        {302, "", {{"Location", "https://" + echo + "/"}}},
        {0, "", {}, HttpEnd::kNoConnection, false, "header Bearer " + echo},
        {200, "", {{"Content-Type", "application/json"}}, HttpEnd::kCut, true, echo}};
    for (const Wire wire : {Wire::kOpenAi, Wire::kAnthropic}) {
      for (const Reply& reply : replies) {
        ExpectClean(ErrorOf(reply, wire).message);
      }
    }
  }
}

TEST(Canary, KeyIsInNoAnswerRecordOrName) {
  for (const std::string& echo : Echoes()) {
    const std::string quoted = nlohmann::json(echo).dump();
    Bench bench({Json(200, R"({"id":)" + quoted + R"(,"model":)" + quoted +
                               R"(,"choices":[{"message":{"content":)" + quoted +
                               R"(,"tool_calls":[{"id":"a","function":{"name":"f","arguments":)" +
                               quoted + R"(}}]},"finish_reason":"stop"}]})")});
    bench.options.endpoint.model = "m-" + std::string(kCanary);
    const ChatRequest request = Question();
    const auto response = bench.Ask(request);
    ASSERT_TRUE(response.ok()) << response.error().message;
    ExpectClean(ResponseJson(*response));
    ExpectClean(RequestJson(request));
    ExpectClean(std::string(bench.client->name()));
    // The honest twin: it is sent, once, in its header.
    EXPECT_EQ(FindHeader(bench.log.requests[0].headers, "authorization"),
              "Bearer " + std::string(kCanary));
  }
}

}  // namespace
}  // namespace kernelpro::llm
