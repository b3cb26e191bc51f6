// SPDX-License-Identifier: Apache-2.0
#include "llm/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "llm/scripted_transport.h"

namespace kernelpro::llm {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Le;
using testing::Not;
using namespace std::chrono_literals;

const std::string kHello =
    R"({"id":"x","model":"some-model-v2","choices":[{"index":0,"message":{"content":"hello"},)"
    R"("finish_reason":"stop"}],"usage":{"prompt_tokens":1000,"completion_tokens":100}})";

constexpr double kHelloCost = 1000 * 1e-6 + 100 * 10e-6;

// One message of 5 bytes, two beside it for the template, 16 tokens around each; and max_tokens.
constexpr double kBound = (5 + 3 * 16) * 1e-6 + 1000 * 10e-6;

Reply Hello() {
  return {200, kHello};
}

Reply Failure(int status, std::string body = R"({"error":{"message":"oh no"}})",
              Headers headers = {}) {
  headers.emplace_back("Content-Type", "application/json");
  return {status, std::move(body), std::move(headers)};
}

Reply NoConnection() {
  return {0, "", {}, HttpEnd::kNoConnection, false, "Connection refused"};
}

const std::string kHalf = R"(data: {"choices":[{"index":0,"delta":{"content":"Hel"}}]})"
                          "\n\n";

TEST(Client, AnswerWithItsCost) {
  Bench bench({Hello()});
  const auto response = bench.Ask(Question());
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->text, "hello");
  EXPECT_EQ(response->model, "some-model-v2");  // in the server's words, whatever was asked for
  EXPECT_EQ(response->problem, Problem::kNone);
  EXPECT_DOUBLE_EQ(response->cost, kHelloCost);
  EXPECT_EQ(response->attempts, 1u);
  EXPECT_DOUBLE_EQ(bench.budget.spent().dollars, kHelloCost);
  EXPECT_EQ(bench.budget.spent().estimated, 0u);
  EXPECT_EQ(bench.client->name(), "openai:some-model at https://api.example.com/v1");
}

TEST(Client, WithoutUsageTheBoundIsCharged) {
  Bench bench({{200, R"({"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]})"}});
  const auto response = bench.Ask(Question());
  ASSERT_TRUE(response.ok());
  EXPECT_TRUE(response->usage.estimated);
  EXPECT_DOUBLE_EQ(response->cost, kBound);
  EXPECT_EQ(bench.budget.spent().estimated, 1u);
}

TEST(Client, ManyThreadsAtOnce) {
  std::vector<Reply> replies;
  for (int i = 0; i < 64; ++i) {
    replies.push_back(i % 4 == 0 ? Failure(503) : Hello());
  }
  Bench bench(std::move(replies));
  bench.options.max_attempts = 100;
  ASSERT_TRUE(bench.Ask(Question()).ok());  // opens the client
  std::atomic<int> answered = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 47; ++i) {
      threads.emplace_back([&] { answered += bench.Ask(Question()).ok() ? 1 : 0; });
    }
  }
  EXPECT_EQ(answered, 47);
  EXPECT_EQ(bench.budget.spent().requests, 48u);
  EXPECT_NEAR(bench.budget.spent().dollars, 48 * kHelloCost, 1e-9);
}

TEST(Retries, PassingFailuresUntilAnAnswer) {
  Bench bench({NoConnection(), Failure(500), Failure(429), Failure(529), Hello()});
  const auto response = bench.Ask(Question());
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->attempts, 5u);
  EXPECT_EQ(bench.log.waits.size(), 4u);
  EXPECT_DOUBLE_EQ(response->cost, kHelloCost);  // failures of this kind are not paid for
  EXPECT_EQ(bench.budget.spent().requests, 1u);
}

TEST(Retries, OtherFailuresAreFinal) {
  for (const int status : {400, 401, 403, 404, 413, 422}) {
    Bench bench({Failure(status)});
    const auto response = bench.Ask(Question());
    ASSERT_FALSE(response.ok());
    EXPECT_EQ(response.error().code, ErrorCode::kInvalidArgument) << status;
    EXPECT_THAT(bench.log.waits, IsEmpty());
    EXPECT_EQ(bench.budget.spent().dollars, 0);
  }
}

TEST(Retries, EndAfterMaxAttempts) {
  Bench bench({Failure(503), Failure(503), Failure(503)});
  bench.options.max_attempts = 3;
  const auto response = bench.Ask(Question());
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(response.error().message, HasSubstr("oh no"));
  EXPECT_THAT(response.error().message, HasSubstr("after 3 attempts"));
}

TEST(Retries, ServersWaitIsALowerBound) {
  Bench bench({Failure(429, "{}", {{"Retry-After", "100"}}),
               Failure(503, "{}", {{"retry-after-ms", "90000"}}), Hello()});
  bench.options.backoff_base = 2s;
  ASSERT_TRUE(bench.Ask(Question()).ok());
  // Above all that backing off can give (60 s), and spread a little.
  EXPECT_THAT(bench.log.waits, ElementsAre(AllOf(Ge(100s), Le(102s)), AllOf(Ge(90s), Le(92s))));
  EXPECT_NE(bench.log.waits[0] - 100s, bench.log.waits[1] - 90s);
}

TEST(Retries, AWaitBeyondTheTimeLeftIsAnErrorThatSaysSo) {
  Bench bench({Failure(429, "{}", {{"Retry-After", "7200"}})});
  const auto total = bench.Ask(Question());
  ASSERT_FALSE(total.ok());
  EXPECT_EQ(total.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(total.error().message, HasSubstr("the server asks to wait 7200.0 s"));
  EXPECT_THAT(total.error().message, HasSubstr("1800.0 s are left"));
  Bench capped({Failure(429, "{}", {{"Retry-After", "60"}})}, Wire::kOpenAi, {.time = 30s});
  EXPECT_THAT(capped.Ask(Question()).error().message, HasSubstr("30.0 s are left"));
  EXPECT_THAT(capped.log.waits, IsEmpty());
}

TEST(Retries, NoMoneyIsNotWaitedFor) {
  for (const char* body : {R"({"error":{"message":"m","code":"insufficient_quota"}})",
                           R"({"error":{"message":"You exceeded your current quota"}})",
                           R"({"error":{"type":"billing_error","message":"m"}})"}) {
    Bench bench({Failure(429, body)});
    const auto response = bench.Ask(Question());
    ASSERT_FALSE(response.ok());
    EXPECT_EQ(response.error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(response.error().message, HasSubstr("no quota or credit left"));
  }
}

TEST(Retries, StopWhileWaiting) {
  Bench bench({Failure(503)});
  bench.stop_at_wait = &bench.stop;
  const auto response = bench.Ask(Question());
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(bench.log.requests.size(), 1u);
}

TEST(Retries, StoppedBeforeAnythingIsSent) {
  Bench bench({});
  bench.stop.request_stop();
  EXPECT_EQ(bench.Ask(Question()).error().code, ErrorCode::kCancelled);
  EXPECT_THAT(bench.log.requests, IsEmpty());
}

TEST(Retries, SameSeedSameWaits) {
  const auto waits = [](std::uint64_t seed) {
    Bench bench({Failure(503), Failure(503), Failure(503), Hello()});
    bench.options.seed = seed;
    EXPECT_TRUE(bench.Ask(Question()).ok());
    return bench.log.waits;
  };
  EXPECT_EQ(waits(1), waits(1));
  EXPECT_NE(waits(1), waits(2));
}

TEST(Charges, ACutStreamCostsItsBoundAndIsAskedAgain) {
  Bench bench({Events(kHalf, HttpEnd::kCut), Events(kHalf + "data: [DONE]\n\n"), Hello()});
  const auto response = bench.Ask(Question());
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->text, "hello");  // nothing of the halves
  EXPECT_EQ(response->attempts, 3u);
  EXPECT_DOUBLE_EQ(response->cost, 2 * kBound + kHelloCost);
  EXPECT_DOUBLE_EQ(bench.budget.spent().dollars, response->cost);
  EXPECT_EQ(bench.budget.spent().estimated, 2u);
}

TEST(Charges, AnAnswerWithoutABodyIsCutToo) {
  // libcurl takes a connection that ends among the headers for a whole answer without a body.
  Bench bench({Reply{200, ""}, Reply{200, "", {}}, Hello()});
  EXPECT_DOUBLE_EQ(bench.Ask(Question())->cost, 2 * kBound + kHelloCost);
}

TEST(Charges, WhatTheServerToldBeforeTheCutCounts) {
  const std::string start = R"(data: {"type":"message_start","message":{"usage":{"input_tokens":7,)"
                            R"("cache_read_input_tokens":1000000,"output_tokens":1}}})"
                            "\n\n";
  Bench bench({Events(start, HttpEnd::kCut)}, Wire::kAnthropic);
  bench.options.max_attempts = 1;
  EXPECT_FALSE(bench.Ask(Question()).ok());
  EXPECT_DOUBLE_EQ(bench.budget.spent().dollars, 7e-6 + 0.1 + 1000 * 10e-6);
}

TEST(Charges, AGatewaysTimeoutMayBePaidFor) {
  Bench bench({Failure(504), Failure(502), Hello()});
  EXPECT_DOUBLE_EQ(bench.Ask(Question())->cost, kBound + kHelloCost);
}

TEST(Charges, NoAnswerAtAll) {
  Bench silent({{0, "", {}, HttpEnd::kIdle, true, ""}});
  silent.options.max_attempts = 1;
  EXPECT_EQ(silent.Ask(Question()).error().code, ErrorCode::kTimeout);
  EXPECT_DOUBLE_EQ(silent.budget.spent().dollars, kBound);
  Bench unsent({{0, "", {}, HttpEnd::kStopped, false, ""}});
  EXPECT_EQ(unsent.Ask(Question()).error().code, ErrorCode::kCancelled);
  EXPECT_EQ(unsent.budget.spent().dollars, 0);
  Bench stopped({{0, "", {}, HttpEnd::kStopped, true, ""}});
  EXPECT_EQ(stopped.Ask(Question()).error().code, ErrorCode::kCancelled);
  EXPECT_DOUBLE_EQ(stopped.budget.spent().dollars, kBound);
}

TEST(Charges, TheCapEndsRetries) {
  Bench bench({Events(kHalf, HttpEnd::kCut), Hello()}, Wire::kOpenAi, {.dollars = kBound / 2});
  const auto response = bench.Ask(Question());
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, ErrorCode::kBudget);
  EXPECT_EQ(bench.log.requests.size(), 1u);
}

TEST(Timeouts, AnAttemptGetsWhatIsLeft) {
  Bench bench({Failure(503, "{}", {{"Retry-After", "20"}}), Hello()}, Wire::kOpenAi,
              {.time = 100s});
  bench.options.backoff_base = 0ms;
  ASSERT_TRUE(bench.Ask(Question()).ok());
  EXPECT_EQ(bench.log.requests.at(0).total_timeout, 100s);
  EXPECT_EQ(bench.log.requests.at(1).total_timeout, 80s);
}

TEST(Answers, AreCheckedAgainstTheSchema) {
  ChatRequest request = Question();
  request.schema_name = "plan";
  request.schema = R"({"type":"object","properties":{"n":{"type":"integer","minimum":3}},
                       "required":["n"],"additionalProperties":false})";
  const auto ask = [&](const std::string& text, const std::string& finish = "stop") {
    Bench bench({{200, R"({"choices":[{"message":{"content":)" + text + R"(},"finish_reason":")" +
                           finish + R"("}]})"}});
    return *bench.Ask(request);
  };
  EXPECT_EQ(ask(R"("{\"n\":3}")").problem, Problem::kNone);
  const ChatResponse wrong = ask(R"("{\"n\":2}")");
  EXPECT_EQ(wrong.problem, Problem::kSchema);
  EXPECT_THAT(wrong.problem_text, HasSubstr("/n"));
  EXPECT_EQ(ask(R"("I think that")").problem, Problem::kSchema);
  EXPECT_EQ(ask(R"("{\"n\":")", "length").problem,
            Problem::kTruncated);  // the cause, not its effect
}

TEST(Answers, WithoutStreamOrWithOneTheServerDidNotWant) {
  Bench streamed(
      {Events("data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},"
              "\"finish_reason\":\"stop\"}]}\r\n\r\ndata: [DONE]\r\n\r\n")});
  EXPECT_EQ(streamed.Ask(Question())->text, "hi");
  EXPECT_THAT(streamed.log.requests[0].body, HasSubstr("\"stream\":true"));
  Bench whole({Hello()});
  whole.options.stream = false;
  EXPECT_EQ(whole.Ask(Question())->text, "hello");
  EXPECT_THAT(whole.log.requests[0].body, Not(HasSubstr("stream")));
}

TEST(Answers, ConnectionLostAfterTheEndIsAnAnswer) {
  Bench bench(
      {Events("data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},"
              "\"finish_reason\":\"stop\"}]}\n\n",
              HttpEnd::kCut)});
  const auto response = bench.Ask(Question());
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response->text, "hi");
  EXPECT_TRUE(response->usage.estimated);
}

TEST(OpenClient, RefusesWhatCannotBeSent) {
  Bench bench({});
  bench.options.endpoint.base_url = "ftp://x";
  EXPECT_EQ(bench.Ask(Question()).error().code, ErrorCode::kInvalidArgument);
  Bench injected({});
  injected.options.key = Key("sk-1\r\nX-Evil: 1");
  const auto response = injected.Ask(Question());
  ASSERT_FALSE(response.ok());
  EXPECT_THAT(response.error().message, Not(HasSubstr("sk-1")));
  ChatRequest nothing = Question();
  nothing.max_tokens = 0;
  EXPECT_EQ(Bench({}).Ask(nothing).error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace kernelpro::llm
