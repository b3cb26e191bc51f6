// SPDX-License-Identifier: Apache-2.0
#include "llm/budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "llm/prices.h"
#include "llm/schema_check.h"
#include "llm/scripted_transport.h"

namespace kernelpro::llm {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

constexpr Price kPrice{1, 0.1, 1.25, 10};
constexpr Usage kMillion{.input = 1'000'000, .output = 100'000};  // 2 dollars

TEST(Costs, PartsOfTheInputHaveTheirOwnPrice) {
  EXPECT_DOUBLE_EQ(Cost(kPrice, kMillion), 2.0);
  // 200,000 at 1 + 300,000 at 0.1 + 500,000 at 1.25 dollars a million.
  EXPECT_DOUBLE_EQ(
      Cost(kPrice, {.input = 1'000'000, .cache_read = 300'000, .cache_write = 500'000}),
      0.2 + 0.03 + 0.625);
  // Parts above the whole never make the rest negative.
  EXPECT_DOUBLE_EQ(Cost(kPrice, {.input = 1, .cache_read = 1'000'000}), 0.1);
}

TEST(Budgets, SpendsUpToTheCapAndNamesIt) {
  FakeClock clock;
  Budget budget({.dollars = 3}, clock);
  auto first = budget.Reserve(kPrice, kMillion);
  ASSERT_TRUE(first.ok());
  EXPECT_DOUBLE_EQ(first->Settle(kMillion), 2.0);
  auto second = budget.Reserve(kPrice, kMillion);  // the one that passes the cap
  ASSERT_TRUE(second.ok());
  const auto third = budget.Reserve(kPrice, kMillion);
  ASSERT_FALSE(third.ok());
  EXPECT_EQ(third.error().code, ErrorCode::kBudget);
  EXPECT_THAT(third.error().message,
              HasSubstr("the cap of 3.00 dollars is reached (2.0000 spent, 2.0000 in flight)"));
  second->Release();
  EXPECT_TRUE(budget.Reserve(kPrice, kMillion).ok());
}

TEST(Budgets, ReleasedCostsNothingAndLostCostsItsBound) {
  FakeClock clock;
  Budget budget({}, clock);
  budget.Reserve(kPrice, kMillion)->Release();
  EXPECT_EQ(budget.spent().requests, 0u);
  EXPECT_EQ(budget.spent().dollars, 0);
  {
    auto lost = budget.Reserve(kPrice, kMillion);
  }
  EXPECT_DOUBLE_EQ(budget.spent().dollars, 2.0);
  EXPECT_EQ(budget.spent().estimated, 1u);
  EXPECT_DOUBLE_EQ(budget.Reserve(kPrice, kMillion)->SettleUnknown(), 2.0);
  EXPECT_EQ(budget.spent().requests, 2u);
  EXPECT_EQ(budget.spent().input_tokens, 2'000'000u);
  auto once = budget.Reserve(kPrice, kMillion);
  (void)once->Settle(kMillion);
  once->Release();
  EXPECT_EQ(once->Settle(kMillion), 0);
  EXPECT_EQ(budget.spent().requests, 3u);
}

TEST(Budgets, TokensAndTime) {
  FakeClock clock;
  Budget budget({.tokens = 1'100'000, .time = 10s}, clock);
  ASSERT_TRUE(budget.Reserve(kPrice, kMillion).ok());  // lost: charged at its bound
  EXPECT_THAT(budget.Reserve(kPrice, kMillion).error().message,
              HasSubstr("the cap of 1100000 tokens is reached (1100000 spent"));
  EXPECT_EQ(budget.TimeLeft(), 10s);
  clock.Advance(10s);
  EXPECT_EQ(budget.TimeLeft(), 0s);
  EXPECT_THAT(budget.Reserve(kPrice, kMillion).error().message, HasSubstr("the cap of 10 s"));
  Budget resumed({.dollars = 1}, clock, {.dollars = 1});
  EXPECT_FALSE(resumed.Reserve(kPrice, kMillion).ok());
}

TEST(Budgets, ManyThreadsPassACapByOneRequestAtMost) {
  FakeClock clock;
  Budget budget({.dollars = 100}, clock);
  std::atomic<int> admitted = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        for (int k = 0; k < 50; ++k) {
          if (auto reservation = budget.Reserve(kPrice, kMillion); reservation.ok()) {
            ++admitted;
            (void)reservation->Settle(kMillion);
          }
        }
      });
    }
  }
  EXPECT_EQ(admitted, 50);
  EXPECT_LE(budget.spent().dollars, 102);
}

TEST(PriceTables, BuiltInNamesModelsExactly) {
  const auto table = PriceTable::BuiltIn();
  ASSERT_TRUE(table.ok()) << table.error().message;
  EXPECT_EQ(table->as_of().size(), std::string("2026-11-30").size());
  EXPECT_EQ(table->Find("openai", "gpt-4.1")->output, 8);
  EXPECT_EQ(table->Find("openai", "gpt-4.1-2025-04-14")->output, 8);
  EXPECT_EQ(table->Find("openai", "gpt-4.1-mini")->input, 0.4);
  EXPECT_EQ(table->Find("anthropic", "claude-sonnet-4-6")->cache_write, 3.75);
  EXPECT_EQ(table->Find("anthropic", "claude-opus-4-20250514")->input, 15);
  EXPECT_EQ(table->Find("anthropic", "claude-opus-4-5-20251101")->input, 5);
  // A model to come must not get an older one's price.
  EXPECT_FALSE(table->Find("openai", "gpt-5.9"));
  EXPECT_FALSE(table->Find("anthropic", "claude-opus-4-9"));
  EXPECT_FALSE(table->Find("openai", "claude-sonnet-4-6"));
}

TEST(PriceTables, UsersFileGoesFirstAndLongestMatchWins) {
  auto table = PriceTable::Parse(R"(as_of = "2026-01-01"
[[model]]
provider = "openai"
name = "*"
input = 1
output = 2
[[model]]
provider = "openai"
name = "qwen*"
input = 3
output = 4
)",
                                 "mine.toml");
  ASSERT_TRUE(table.ok()) << table.error().message;
  EXPECT_EQ(table->Find("openai", "qwen3")->input, 3);
  EXPECT_EQ(table->Find("openai", "llama")->input, 1);
  EXPECT_EQ(table->Find("openai", "llama")->cache_read, 1);  // as the input when it is not said
  auto built_in = PriceTable::BuiltIn();
  built_in->Prefer(*table);
  EXPECT_EQ(built_in->Find("openai", "gpt-4.1")->output, 8);  // whole names beat prefixes
  EXPECT_EQ(built_in->as_of(), "2026-01-01");
  auto own = PriceTable::Parse(
      "[[model]]\nprovider = \"openai\"\nname = \"gpt-4.1\"\ninput = 9\noutput = 9\n", "x.toml");
  built_in->Prefer(*own);
  EXPECT_EQ(built_in->Find("openai", "gpt-4.1")->output, 9);
}

TEST(PriceTables, ErrorsNameFileAndLine) {
  const auto message = [](const char* text) {
    const auto table = PriceTable::Parse(text, "mine.toml");
    return table.ok() ? std::string("ok") : table.error().message;
  };
  EXPECT_THAT(message("[[model]]\nprovider = \"openai\"\nname = \"x\"\noutput = 1\n"),
              HasSubstr("\"input\" is missing"));
  EXPECT_THAT(message("[[model]]\nprovider = \"openai\"\nname = \"x\"\ninput = -1\noutput = 1\n"),
              HasSubstr("mine.toml:1"));
  EXPECT_THAT(message("[[model]]\nprovider = \"google\"\nname = \"x\"\ninput = 1\noutput = 1\n"),
              HasSubstr("mine.toml:2"));
  EXPECT_THAT(message("model = 3\n"), HasSubstr("mine.toml:1"));
  EXPECT_THAT(message("prices"), HasSubstr("mine.toml:1"));
}

TEST(Schemas, FirstViolationInWords) {
  const std::string schema = R"({"type":"object","properties":{
      "steps":{"type":"array","items":{"type":"object","properties":{"why":{"type":"string"}},
      "required":["why"]}}},"required":["steps"]})";
  EXPECT_EQ(SchemaViolation(schema, R"({"steps":[{"why":"x"}]})"), "");
  EXPECT_THAT(SchemaViolation(schema, R"({"steps":[{"why":"x"},{}]})"),
              testing::AllOf(HasSubstr("/steps/1"), HasSubstr("why")));
  EXPECT_THAT(SchemaViolation(schema, R"({"steps":[{"why":3}]})"), HasSubstr("/steps/0/why"));
  EXPECT_THAT(SchemaViolation(schema, "{\"steps\": oops}"), HasSubstr("no JSON from byte 11"));
  EXPECT_THAT(SchemaViolation("{\"type\":7}", "{}"), testing::Not(testing::IsEmpty()));
  EXPECT_THAT(SchemaViolation(schema, std::string(100'000, '[')), HasSubstr("nests deeper"));
}

TEST(ChatText, RequestIsStableAndHashesWhatIsAsked) {
  ChatRequest request = Question("hi\xff");
  request.tools = {{"t", "d", "{}"}};
  const std::string json = RequestJson(request);
  EXPECT_EQ(json, R"({"system":"","messages":[{"role":"user","text":"hi)"
                  "\xef\xbf\xbd"
                  R"("}],"tools":[{"name":"t","description":"d","schema":"{}"}],"schema_name":"",)"
                  R"("schema":"","temperature":null,"max_tokens":1000,"effort":""})");
  ChatRequest other = request;
  other.purpose = "planner";
  EXPECT_EQ(RequestHash(other), RequestHash(request));
  other.temperature = 0;
  EXPECT_NE(RequestHash(other), RequestHash(request));
}

TEST(ChatText, ResponseComesBackAsItWas) {
  ChatResponse response;
  response.text = "a\n\"b\"";
  response.calls = {{"1", "read", "{broken"}};
  response.reasoning = "[]";
  response.problem = Problem::kTruncated;
  response.problem_text = "why";
  response.model = "m";
  response.id = "i";
  response.usage = {5, 4, 3, 2, 1, true};
  response.cost = 0.125;
  response.attempts = 3;
  const auto back = ParseResponseJson(ResponseJson(response));
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(ResponseJson(*back), ResponseJson(response));
  EXPECT_EQ(back->calls.at(0).arguments, "{broken");
  EXPECT_EQ(back->problem, Problem::kTruncated);
  EXPECT_EQ(back->usage.cache_write, 3u);
  EXPECT_TRUE(back->usage.estimated);
  for (const char* text : {"", "{}", "[]", R"({"text":"x","calls":[],"usage":{},"problem":"odd"})",
                           R"({"text":1,"calls":[],"usage":{}})"}) {
    EXPECT_EQ(ParseResponseJson(text).error().code, ErrorCode::kParse) << text;
  }
}

TEST(ChatText, UpperBoundIsAboveBytesAndEstimateBelow) {
  const ChatRequest request = Question(std::string(7000, 'x'));
  EXPECT_GE(PromptTokensAtMost(request), 7000u);
  EXPECT_EQ(PromptTokensAbout(request), 2000u);
}

}  // namespace
}  // namespace kernelpro::llm
