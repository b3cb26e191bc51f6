// SPDX-License-Identifier: Apache-2.0
// The clients against a server that refuses what a provider would refuse.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stop_token>
#include <thread>

#include "fake_server.h"
#include "llm/client.h"
#include "watchdog.h"

namespace kernelpro::fake {
namespace {

using llm::Message;
using llm::Problem;
using ::testing::AnyOf;
using ::testing::HasSubstr;

struct Way {
  Wire wire;
  bool stream;
  const char* model = "test-model";
};

class ClientsTest : public ::testing::TestWithParam<Way> {
 protected:
  void Serve(Responder responder, FaultPlan plan = {}) {
    HandlerOptions options;
    options.key = "sk-right-0123456789";
    options.models = {GetParam().model};
    options.responder = std::move(responder);
    options.plan = std::move(plan);
    server_ = FakeServer::Start(std::move(options)).value();
    Open(GetParam().model);
  }

  void Open(const std::string& model) {
    llm::ClientOptions options;
    const bool openai = GetParam().wire == Wire::kOpenAi;
    options.endpoint.wire = openai ? llm::Wire::kOpenAi : llm::Wire::kAnthropic;
    options.endpoint.base_url = server_->url() + (openai ? "/v1" : "");
    options.endpoint.model = model;
    options.key = llm::Key("sk-right-0123456789");
    options.stream = GetParam().stream;
    options.price = {1, 0.1, 1.25, 4};
    options.backoff_base = std::chrono::milliseconds(5);
    client_ = llm::OpenClient(std::move(options), budget_, clock_).value();
  }

  static llm::ChatRequest Ask(const std::string& text) {
    llm::ChatRequest request;
    request.system = "You are a test.";
    request.messages.push_back({.text = text});
    request.max_tokens = 500;
    return request;
  }

  const Watchdog watchdog_{std::chrono::seconds(60)};
  const SystemClock clock_;
  llm::Budget budget_{{}, clock_};
  std::unique_ptr<FakeServer> server_;
  std::unique_ptr<llm::ChatClient> client_;
};

TEST_P(ClientsTest, ToolsAreCalledAndTheirResultsSentBack) {
  Serve([](const Asked& asked) {
    if (asked.last.find("tiles") != std::string::npos) {
      return Answer{.text = "Let me see.",
                    .calls = {{"read_file", R"({"path":"a b.cu"})"}, {"list_files", "{}"}}};
    }
    return Echo(asked);
  });
  llm::ChatRequest request = Ask("how many tiles?");
  request.tools = {
      {"read_file", "Reads a file",
       R"({"type":"object","properties":{"path":{"type":"string"}},"required":["path"],"additionalProperties":false})"},
      {"list_files", "Lists files", R"({"type":"object","properties":{}})"}};
  const auto first = client_->Ask(request, {});
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_EQ(first->text, "Let me see.");
  ASSERT_EQ(first->calls.size(), 2U);
  EXPECT_EQ(first->calls[0].name, "read_file");
  EXPECT_EQ(first->calls[0].arguments, R"({"path":"a b.cu"})");
  EXPECT_EQ(first->calls[1].name, "list_files");
  EXPECT_EQ(first->problem, Problem::kNone);

  const Message said{.role = Message::Role::kAssistant, .text = first->text, .calls = first->calls};
  request.messages.push_back(said);
  for (const llm::ToolCall& call : first->calls) {
    request.messages.push_back({.role = Message::Role::kTool,
                                .text = "result of " + call.name,
                                .call_id = call.id,
                                .failed = call.name == "list_files"});
  }
  const auto second = client_->Ask(request, {});
  ASSERT_TRUE(second.ok()) << second.error().message;
  EXPECT_THAT(second->text, HasSubstr("result of list_files"));
}

TEST_P(ClientsTest, ASchemaReachesTheServerAndIsHeldAgainstTheAnswer) {
  std::string text = R"({"steps":["tile","unroll"],"why":null})";
  std::string seen;
  Serve([&](const Asked& asked) {
    // Models that take no schema are made to call a tool that has it.
    seen = asked.schema + asked.forced_tool;
    return Answer{.text = text};
  });
  llm::ChatRequest request = Ask("a plan");
  request.schema_name = "plan";
  request.schema =
      R"({"type":"object","properties":{"steps":{"type":"array","items":{"type":"string"}},"why":{"type":["string","null"]}},"required":["steps","why"],"additionalProperties":false})";
  const auto good = client_->Ask(request, {});
  ASSERT_TRUE(good.ok()) << good.error().message;
  EXPECT_EQ(good->text, text);
  EXPECT_EQ(good->problem, Problem::kNone) << good->problem_text;
  EXPECT_THAT(seen, AnyOf(HasSubstr("steps"), HasSubstr("answer")));
  text = R"({"steps":"tile"})";
  const auto bad = client_->Ask(request, {});
  ASSERT_TRUE(bad.ok()) << bad.error().message;
  EXPECT_EQ(bad->problem, Problem::kSchema);
}

TEST_P(ClientsTest, ALongCommonBeginningIsCached) {
  Serve(Echo);
  llm::ChatRequest request = Ask("first");
  request.system = std::string(8000, 's');
  const auto first = client_->Ask(request, {});
  request.messages[0].text = "second";
  const auto second = client_->Ask(request, {});
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->usage.cache_read, 0U);
  EXPECT_GE(second->usage.cache_read, 2000U) << "8000 bytes are 2000 tokens of this server";
  EXPECT_LT(second->cost, first->cost / 2);
  server_->Stop();
  const auto bill = server_->Ledger();
  EXPECT_EQ(second->usage.input, bill[1].tokens.prompt) << "cached parts are part of the prompt";
}

TEST_P(ClientsTest, HiddenReasoningIsPaidFor) {
  Serve([](const Asked&) { return Answer{.text = "done", .reasoning = 300}; });
  const auto answer = client_->Ask(Ask("think"), {});
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(answer->usage.output, 301U);
}

TEST_P(ClientsTest, AnUnknownModelIsTheUsersMistake) {
  Serve(Echo);
  Open("no-such-model");
  const auto answer = client_->Ask(Ask("hello"), {});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(answer.error().message, HasSubstr("no-such-model"));
  EXPECT_EQ(budget_.spent().dollars, 0);
}

TEST_P(ClientsTest, AStopEndsAQuestionThatNobodyAnswers) {
  std::atomic<bool> asked = false;
  Serve(Echo, [&asked](const Asked&) {
    asked = true;
    return Fault{.kind = FaultKind::kStalledMidway};
  });
  std::stop_source stop;
  const std::jthread stopper([&] {
    while (!asked) {
      std::this_thread::yield();
    }
    stop.request_stop();
  });
  const auto answer = client_->Ask(Ask("hello"), stop.get_token());
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, ErrorCode::kCancelled);
  server_->Stop();
  EXPECT_EQ(server_->Ledger().size(), 1U);
  EXPECT_GT(budget_.spent().dollars, 0) << "it was on its way and may be billed";
}

TEST_P(ClientsTest, ConnectionsAreKept) {
  Serve(Echo);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(client_->Ask(Ask(fmt::format("question {}", i)), {}).ok());
  }
  EXPECT_EQ(server_->connections(), 1U);
}

INSTANTIATE_TEST_SUITE_P(Ways, ClientsTest,
                         ::testing::Values(Way{Wire::kOpenAi, true}, Way{Wire::kOpenAi, false},
                                           Way{Wire::kAnthropic, true},
                                           Way{Wire::kAnthropic, false},
                                           Way{Wire::kAnthropic, true, "claude-opus-4-6"},
                                           Way{Wire::kAnthropic, false, "claude-opus-4-6"}),
                         [](const auto& way) {
                           std::string name =
                               way.param.wire == Wire::kOpenAi ? "openai" : "anthropic";
                           name += way.param.stream ? "_stream_" : "_whole_";
                           for (const char c : std::string_view(way.param.model)) {
                             name += c == '-' ? '_' : c;
                           }
                           return name;
                         });

}  // namespace
}  // namespace kernelpro::fake
