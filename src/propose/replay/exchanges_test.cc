// SPDX-License-Identifier: Apache-2.0
#include "propose/replay/exchanges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/file.h"
#include "llm/scripted_transport.h"
#include "propose/llm/testing/scripted_client.h"

namespace kernelpro {
namespace {

using agents::testing::ScriptedClient;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Dollars per million tokens: 1 for a token of the prompt, 10 for one of the answer.
constexpr llm::Price kPrice{1, 0.1, 1, 10};

llm::ChatRequest Ask(const std::string& text, const std::string& purpose = "coder") {
  llm::ChatRequest request = llm::Question(text);
  request.purpose = purpose;
  return request;
}

class ExchangesTest : public ::testing::Test {
 protected:
  ExchangesTest() : temporary_(TemporaryFolder::Create("kp-exchanges").value()) {
    store = store::RunStore::Create(folder(), {}).value();
    store::NodeRecord root;
    root.content = "root";
    EXPECT_TRUE(store->AddNode(root, std::nullopt).ok());
  }

  [[nodiscard]] std::filesystem::path folder() const { return temporary_.path() / "run"; }

  [[nodiscard]] std::unique_ptr<RecordingClient> Record(llm::ChatClient& inner,
                                                        llm::Budget* budget = nullptr) {
    auto client = RecordingClient::Open(inner, *store, kPrice, budget).value();
    client->About(store::kRoot);
    return client;
  }

  /// The process dies and another one continues.
  void Restart() {
    store.reset();
    store = store::RunStore::Open(folder()).value();
  }

  [[nodiscard]] Status Expand(bool barren = false) const {
    store::Expansion expansion;
    expansion.node = store::kRoot;
    expansion.barren = barren;
    return store->AddExpansion(expansion);
  }

  std::unique_ptr<store::RunStore> store;
  ScriptedClient script;

 private:
  TemporaryFolder temporary_;
};

/// Looks at the run while the question is on its way.
class Spy final : public llm::ChatClient {
 public:
  Spy(llm::ChatClient& inner, std::function<void()> look) : inner_(inner), look_(std::move(look)) {}

  [[nodiscard]] std::string_view name() const override { return "spy"; }

  [[nodiscard]] Result<llm::ChatResponse> Ask(const llm::ChatRequest& request,
                                              const std::stop_token& stop) override {
    look_();
    return inner_.Ask(request, stop);
  }

 private:
  llm::ChatClient& inner_;
  std::function<void()> look_;
};

TEST_F(ExchangesTest, AQuestionIsOnDiskBeforeItLeaves) {
  llm::FakeClock clock;
  llm::Budget budget({}, clock);
  script.Say("kernel");
  int looked = 0;
  Spy spy(script, [&] {
    ++looked;
    // From the disk, as a process that comes later would see it.
    const auto exchanges = (*store::RunStore::OpenCopy(folder()))->Exchanges().value();
    ASSERT_EQ(exchanges.size(), 1U);
    EXPECT_EQ(exchanges[0].state, "sent");
    EXPECT_EQ(exchanges[0].node, store::kRoot);
    EXPECT_EQ(exchanges[0].purpose, "coder");
    EXPECT_EQ(exchanges[0].hash, llm::RequestHash(Ask("hello")));
    EXPECT_EQ(exchanges[0].request, llm::RequestJson(Ask("hello")));
    const auto prompt = llm::PromptTokensAtMost(Ask("hello"));
    EXPECT_EQ(exchanges[0].input_tokens, static_cast<std::int64_t>(prompt));
    EXPECT_EQ(exchanges[0].output_tokens, 1000);
    EXPECT_NEAR(exchanges[0].cost, static_cast<double>(prompt) * 1e-6 + 1000 * 10e-6, 1e-12);
  });
  const auto response = Record(spy, &budget)->Ask(Ask("hello"), {});
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(looked, 1);
  EXPECT_EQ(response->text, "kernel");
  EXPECT_FALSE(response->replayed);
  EXPECT_EQ((*store->Exchanges())[0].state, "answered");
}

const std::string kAnswer =
    R"({"id":"x","model":"some-model-v2","choices":[{"index":0,"message":{"content":"a kernel"},)"
    R"("finish_reason":"stop"}],"usage":{"prompt_tokens":1000,"completion_tokens":100}})";
constexpr double kAnswerCost = 1000 * 1e-6 + 100 * 10e-6;

/// A real client over a scripted server.
std::unique_ptr<llm::ChatClient> ClientOver(llm::Bench& bench) {
  return llm::OpenClientOver(bench.options, bench.budget, bench.clock,
                             std::make_unique<llm::ScriptedTransport>(bench.script, bench.log),
                             std::make_unique<llm::FakeSleeper>(bench.clock, bench.log, nullptr))
      .value();
}

TEST_F(ExchangesTest, KeepsWhatWasPaidAndNeverTheKey) {
  // A server that repeats the key in its error, then one that answers.
  llm::Bench bench(
      {{401, R"({"error":{"message":"wrong key )" + std::string("sk-CANARY-0a1b/2c3d") + R"("}})"},
       {200, kAnswer}});
  bench.options.key = llm::Key("sk-CANARY-0a1b/2c3d");
  const auto inner = ClientOver(bench);
  const auto client = Record(*inner, &bench.budget);
  EXPECT_FALSE(client->Ask(Ask("first"), {}).ok());
  ASSERT_TRUE(client->Ask(Ask("second"), {}).ok());
  bool sent = false;
  for (const auto& [name, value] : bench.log.requests.at(0).headers) {
    sent |= value.find("sk-CANARY") != std::string::npos;
  }
  EXPECT_TRUE(sent) << "the key was there to be leaked";

  const auto exchanges = store->Exchanges().value();
  ASSERT_EQ(exchanges.size(), 2U);
  EXPECT_EQ(exchanges[0].state, "failed");
  EXPECT_THAT(exchanges[0].response, HasSubstr("wrong key"));
  EXPECT_EQ(exchanges[0].cost, 0);
  EXPECT_EQ(exchanges[0].input_tokens + exchanges[0].output_tokens, 0);
  EXPECT_EQ(exchanges[1].state, "answered");
  EXPECT_EQ(exchanges[1].model, "some-model-v2");
  EXPECT_EQ(exchanges[1].input_tokens, 1000);
  EXPECT_EQ(exchanges[1].output_tokens, 100);
  EXPECT_NEAR(exchanges[1].cost, kAnswerCost, 1e-12);
  EXPECT_NEAR(bench.budget.spent().dollars, kAnswerCost, 1e-12);

  std::string bytes;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    bytes += ReadFile(entry.path()).value();
  }
  EXPECT_NE(bytes.find("second"), std::string::npos) << "the bytes are those of the run";
  EXPECT_EQ(bytes.find("CANARY"), std::string::npos);
}

TEST_F(ExchangesTest, AnAnswerThatLedToNothingYetIsNotPaidForTwice) {
  script.Say("plan").Say("code");
  {
    const auto client = Record(script);
    ASSERT_TRUE(client->Ask(Ask("1", "planner"), {}).ok());
    ASSERT_TRUE(client->Ask(Ask("2", "coder"), {}).ok());
  }
  Restart();
  llm::FakeClock clock;
  llm::Budget budget({}, clock);
  ScriptedClient again;
  again.Say("paid for");
  const auto client = Record(again, &budget);
  const auto plan = client->Ask(Ask("1", "planner"), {});
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(plan->text, "plan");
  EXPECT_EQ(plan->model, "test-model-1");
  EXPECT_TRUE(plan->replayed);
  EXPECT_EQ(client->Ask(Ask("2", "coder"), {})->text, "code");
  EXPECT_TRUE(again.requests.empty());
  EXPECT_EQ(store->Exchanges()->size(), 2U) << "no exchange took place";
  // Once only: the same question asked on purpose is a new one.
  const auto more = client->Ask(Ask("2", "coder"), {});
  EXPECT_EQ(more->text, "paid for");
  EXPECT_FALSE(more->replayed);
  EXPECT_EQ(store->Exchanges()->size(), 3U);
}

TEST_F(ExchangesTest, EqualQuestionsGetTheirAnswersInOrder) {
  script.Say("first").Say("second");
  {
    const auto client = Record(script);
    ASSERT_TRUE(client->Ask(Ask("same"), {}).ok());
    ASSERT_TRUE(client->Ask(Ask("same"), {}).ok());
  }
  Restart();
  ScriptedClient again;
  const auto client = Record(again);
  EXPECT_EQ(client->Ask(Ask("same"), {})->text, "first");
  EXPECT_EQ(client->Ask(Ask("same"), {})->text, "second");
}

TEST_F(ExchangesTest, WhatIsUsedIsAskedAgain) {
  script.Say("no kernel").Say("still none").Say("a kernel");
  {
    const auto client = Record(script);
    ASSERT_TRUE(client->Ask(Ask("same"), {}).ok());
    ASSERT_TRUE(Expand(true).ok());
    EXPECT_EQ(client->Ask(Ask("same"), {})->text, "still none") << "in the same process";
    ASSERT_TRUE(Expand(true).ok());
  }
  Restart();
  const auto response = Record(script)->Ask(Ask("same"), {});
  EXPECT_EQ(response->text, "a kernel") << "and in the next";
  EXPECT_FALSE(response->replayed);
  EXPECT_EQ(script.requests.size(), 3U);
}

TEST_F(ExchangesTest, FailuresAndLostAnswersAreAskedAgain) {
  script.FailWith(Fail(ErrorCode::kUnavailable, "no network")).Say("now");
  {
    const auto client = Record(script);
    EXPECT_EQ(client->Ask(Ask("q"), {}).error().code, ErrorCode::kUnavailable);
  }
  store::ExchangeRecord lost;
  lost.hash = llm::RequestHash(Ask("q"));
  ASSERT_TRUE(store->AddExchange(lost).ok());
  store::ExchangeRecord damaged = lost;
  damaged.id = store->AddExchange(damaged).value();
  damaged.state = "answered";
  damaged.response = "{\"text\":";
  ASSERT_TRUE(store->FinishExchange(damaged).ok());
  Restart();
  const auto response = Record(script)->Ask(Ask("q"), {});
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->text, "now");
  const auto exchanges = store->Exchanges().value();
  ASSERT_EQ(exchanges.size(), 4U);
  EXPECT_EQ(exchanges[0].state, "failed");
  EXPECT_EQ(exchanges[0].response, "no network");
  EXPECT_EQ(exchanges[1].state, "sent");
  EXPECT_EQ(exchanges[3].state, "answered");
}

TEST(SpentOn, WhatNobodySawTheEndOfCountsInFull) {
  store::ExchangeRecord answered;
  answered.state = "answered";
  answered.cost = 0.25;
  answered.input_tokens = 10;
  answered.output_tokens = 20;
  store::ExchangeRecord failed = answered;
  failed.state = "failed";
  failed.cost = 0.5;
  store::ExchangeRecord sent = answered;
  sent.state = "sent";
  sent.cost = 2;
  sent.output_tokens = 1000;
  const llm::Spent spent = SpentOn({answered, failed, sent});
  EXPECT_EQ(spent.dollars, 2.75);
  EXPECT_EQ(spent.input_tokens, 30U);
  EXPECT_EQ(spent.output_tokens, 1040U);
  EXPECT_EQ(spent.requests, 3U);
  EXPECT_EQ(spent.estimated, 1U);
  EXPECT_EQ(SpentOn({answered, failed}).estimated, 0U);
  EXPECT_EQ(SpentOn({}).dollars, 0);
}

TEST_F(ExchangesTest, QuestionsAreFiledUnderTheParentTheyAreAbout) {
  class Asking final : public Proposer {
   public:
    explicit Asking(llm::ChatClient& client) : client_(client) {}

    [[nodiscard]] std::string_view name() const override { return "asking"; }

    [[nodiscard]] bool on_demand() const override { return true; }

    [[nodiscard]] Result<Proposals> Propose(const ProposalRequest&,
                                            const std::stop_token& stop) override {
      KP_ASSIGN_OR_RETURN(const llm::ChatResponse response, client_.Ask(Ask("q"), stop));
      Proposals proposals;
      proposals.declined.push_back({"a", response.text});
      return proposals;
    }

   private:
    llm::ChatClient& client_;
  };

  script.Say("one").Say("two");
  const auto client = Record(script);
  const auto proposer = MakeRecordedProposer(std::make_unique<Asking>(*client), *client);
  EXPECT_EQ(proposer->name(), "asking");
  EXPECT_TRUE(proposer->on_demand());
  const Task task;
  const Candidate parent;
  const Diagnosis diagnosis;
  const Profile profile;
  for (const std::int64_t node : {5, 3}) {
    ASSERT_TRUE(proposer
                    ->Propose({.task = task,
                               .parent = parent,
                               .diagnosis = diagnosis,
                               .profile = profile,
                               .node = {.node = node}},
                              {})
                    .ok());
  }
  const auto exchanges = store->Exchanges().value();
  EXPECT_EQ(exchanges[0].node, 5);
  EXPECT_EQ(exchanges[1].node, 3);
}

class ReplayClientTest : public ExchangesTest {
 protected:
  /// Two answers that led to something, a failure and a loss between them, one answer left over.
  std::vector<store::ExchangeRecord> Recorded() {
    script.Say("one").FailWith(Fail(ErrorCode::kUnavailable, "no network")).Say("two").Say("three");
    const auto client = Record(script);
    EXPECT_TRUE(client->Ask(Ask("q1\nsecond line\nthird", "planner"), {}).ok());
    EXPECT_FALSE(client->Ask(Ask("q2"), {}).ok());
    EXPECT_TRUE(store->AddExchange({}).ok());
    EXPECT_TRUE(client->Ask(Ask("q2"), {}).ok());
    EXPECT_TRUE(Expand().ok());
    EXPECT_TRUE(client->Ask(Ask("q3"), {}).ok());
    return store->Exchanges().value();
  }
};

TEST_F(ReplayClientTest, AnswersInTheRecordedOrderUntilTheRecordEnds) {
  ReplayClient replay(Recorded());
  EXPECT_EQ(replay.left(), 2U);
  const auto one = replay.Ask(Ask("q1\nsecond line\nthird", "planner"), {});
  ASSERT_TRUE(one.ok()) << one.error().message;
  EXPECT_EQ(one->text, "one");
  EXPECT_TRUE(one->replayed);
  EXPECT_EQ(replay.Ask(Ask("q2"), {})->text, "two");
  EXPECT_EQ(replay.left(), 0U);
  const auto end = replay.Ask(Ask("q3"), {});
  ASSERT_FALSE(end.ok());
  EXPECT_EQ(end.error().code, ErrorCode::kBudget);
  EXPECT_THAT(end.error().message, HasSubstr("2 answers"));
}

TEST_F(ReplayClientTest, SaysWhereItDiverges) {
  ReplayClient replay(Recorded());
  const auto other = replay.Ask(Ask("q1\nsecond \x1b[31mline!\nthird", "planner"), {});
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(other.error().message,
              AllOf(HasSubstr("exchange 1"), HasSubstr("planner"), HasSubstr("node 1"),
                    HasSubstr("was \"second line\""), HasSubstr("line!"), Not(HasSubstr("third")),
                    Not(HasSubstr("\x1b"))));
  EXPECT_EQ(replay.left(), 2U) << "the answer is still there";
  llm::ChatRequest longer = Ask("q1\nsecond line\nthird", "planner");
  longer.max_tokens = 77;
  EXPECT_THAT(replay.Ask(longer, {}).error().message,
              AllOf(HasSubstr("\"max_tokens\": 1000"), HasSubstr("\"max_tokens\": 77")));
  EXPECT_THAT(replay.Ask(Ask("q2"), {}).error().message, HasSubstr("exchange 1"))
      << "out of order is another question";
  EXPECT_EQ(replay.Ask(Ask("q1\nsecond line\nthird", "renamed"), {})->text, "one")
      << "the purpose is for people, not part of the question";
}

}  // namespace
}  // namespace kernelpro
