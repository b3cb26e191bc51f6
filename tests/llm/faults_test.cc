// SPDX-License-Identifier: Apache-2.0
// More than a thousand faults, of every kind, on both wires, streaming and not.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <charconv>
#include <map>
#include <memory>
#include <thread>

#include "base/rng.h"
#include "fake_server.h"
#include "fault_judge.h"
#include "llm/client.h"
#include "watchdog.h"

namespace kernelpro::fake {
namespace {

using std::chrono::milliseconds;

const std::string kSecret = "sk-canary-7f3a91c05be2d864aa17";
constexpr llm::Price kPrice{2.5, 0.25, 3.125, 10};
constexpr std::uint32_t kAttempts = 3;

llm::ClientOptions Options(Wire wire, bool stream, int port) {
  llm::ClientOptions options;
  options.endpoint.wire = wire == Wire::kOpenAi ? llm::Wire::kOpenAi : llm::Wire::kAnthropic;
  options.endpoint.base_url =
      fmt::format("http://127.0.0.1:{}{}", port, wire == Wire::kOpenAi ? "/v1" : "");
  options.endpoint.model = "test-model";
  options.key = llm::Key(kSecret);
  options.price = kPrice;
  options.stream = stream;
  options.connect_timeout = milliseconds(5000);
  options.idle_timeout = milliseconds(1000);
  options.total_timeout = milliseconds(30'000);
  options.max_attempts = kAttempts;
  options.backoff_base = milliseconds(5);
  options.backoff_max = milliseconds(20);
  return options;
}

struct Question : Posed {
  Wire wire = Wire::kOpenAi;
  std::atomic<int> asked = 0;
};

/// Every kind on each wire, streaming and not, once and always, `rounds` times.
std::vector<std::unique_ptr<Question>> MakeQuestions(int rounds, Rng& rng) {
  std::vector<std::unique_ptr<Question>> questions;
  for (int i = 0; i < rounds * 8; ++i) {
    for (const FaultFacts& facts : AllFaults()) {
      auto question = std::make_unique<Question>();
      question->kind = facts.kind;
      question->wire = i % 2 == 0 ? Wire::kOpenAi : Wire::kAnthropic;
      question->stream = i / 2 % 2 == 0;
      question->always = i / 4 % 2 == 0;
      question->text = fmt::format("question {}: Grüße, 你好 🙂", questions.size());
      for (std::uint64_t words = 3 + rng.Below(20); words > 0; --words) {
        question->text += fmt::format(" {:x}", rng.Below(1U << 24U));
      }
      questions.push_back(std::move(question));
    }
  }
  for (std::size_t i = questions.size(); i > 1; --i) {  // so that kinds meet each other
    std::swap(questions[i - 1], questions[rng.Below(i)]);
  }
  return questions;
}

using Index = std::map<std::string, Question*>;

Fault PlanOf(const Index& index, const Asked& asked) {
  const auto found = index.find(asked.last);
  if (found == index.end()) {
    return {};
  }
  Question& question = *found->second;
  const bool first = question.asked.fetch_add(1) == 0;
  Fault fault;
  fault.kind = first || question.always ? question.kind : FaultKind::kNone;
  fault.wait = milliseconds(3);
  fault.huge_bytes = std::size_t{1} << 20U;
  return fault;
}

Ended AskOne(llm::ChatClient& client, const std::string& text) {
  llm::ChatRequest request;
  request.system = "Repeat what you are told. " + std::string(200, '.');
  request.messages.push_back({.text = text});
  request.max_tokens = 400;
  auto answer = client.Ask(request, {});
  Ended ended;
  if (answer.ok()) {
    ended.response = std::move(answer).value();
  } else {
    ended.code = answer.error().code;
    ended.message = answer.error().message;
  }
  return ended;
}

/// One client for each wire, streaming and not, with one budget.
class Clients {
 public:
  Clients(int port, const Clock& clock, llm::Budget& budget) {
    for (const Wire wire : {Wire::kOpenAi, Wire::kAnthropic}) {
      for (const bool stream : {false, true}) {
        auto client = llm::OpenClient(Options(wire, stream, port), budget, clock);
        EXPECT_TRUE(client.ok());
        clients_.push_back(std::move(client).value());
      }
    }
  }

  llm::ChatClient& For(const Question& question) {
    return *clients_[(question.wire == Wire::kOpenAi ? 0U : 2U) + (question.stream ? 1U : 0U)];
  }

 private:
  std::vector<std::unique_ptr<llm::ChatClient>> clients_;
};

std::vector<Ended> AskAll(Clients& clients, const std::vector<std::unique_ptr<Question>>& all) {
  std::vector<Ended> ended(all.size());
  std::atomic<std::size_t> next = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 24; ++i) {
    threads.emplace_back([&] {
      for (std::size_t at = next++; at < all.size(); at = next++) {
        ended[at] = AskOne(clients.For(*all[at]), all[at]->text);
      }
    });
  }
  threads.clear();
  return ended;
}

/// What the budget says of all questions against what the server billed.
void CompareTotals(const FakeServer& server, const llm::Spent& spent,
                   const std::vector<Ended>& ended) {
  std::uint64_t prompt = 0;
  std::uint64_t completion = 0;
  for (const LedgerEntry& entry : server.Ledger()) {
    prompt += entry.tokens.prompt;
    completion += entry.tokens.completion;
  }
  const double billed = Bill(server.Ledger(), kPrice);
  EXPECT_GE(spent.dollars, billed);
  EXPECT_GE(spent.input_tokens, prompt);
  EXPECT_GE(spent.output_tokens, completion);
  double answered = 0;
  for (const Ended& one : ended) {
    answered += one.response ? one.response->cost : 0;
  }
  EXPECT_GE(spent.dollars, answered - 1e-9);
  std::uint64_t requests = 0;
  for (const auto& [kind, times] : server.Played()) {
    requests += times;
  }
  EXPECT_LE(spent.requests, requests) << "an attempt was charged twice";
  EXPECT_GT(billed, 0);
  fmt::print("{} requests, {} bills of {:.4f} dollars, {:.4f} accounted ({} of {} estimated)\n",
             requests, server.Ledger().size(), billed, spent.dollars, spent.estimated,
             spent.requests);
}

TEST(Faults, AThousandOfThemAllEndAsDocumented) {
  const Watchdog watchdog(std::chrono::seconds(110));
  Rng rng(20260101);
  const auto questions = MakeQuestions(5, rng);
  Index index;
  for (const auto& question : questions) {
    index[question->text] = question.get();
  }
  HandlerOptions options;
  options.key = kSecret;
  options.repeats_key = true;
  options.cache_minimum = 16;
  options.plan = [&index](const Asked& asked) { return PlanOf(index, asked); };
  auto server = FakeServer::Start(std::move(options));
  ASSERT_TRUE(server.ok()) << server.error().message;
  const SystemClock clock;
  llm::Budget budget({}, clock);
  std::vector<Ended> ended;
  {
    Clients clients((*server)->port(), clock, budget);
    ended = AskAll(clients, questions);
  }
  (*server)->Stop();

  std::map<std::string, std::vector<LedgerEntry>> bills;
  for (const LedgerEntry& entry : (*server)->Ledger()) {
    bills[entry.last].push_back(entry);
  }
  std::map<std::string, int> violations;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    for (const std::string& violation :
         Violations(*questions[i], ended[i], bills[questions[i]->text], kPrice, kSecret)) {
      ++violations[fmt::format(
          "{}: {}", questions[i]->wire == Wire::kOpenAi ? "openai" : "anthropic", violation)];
    }
    EXPECT_LE(questions[i]->asked, static_cast<int>(kAttempts));
  }
  for (const auto& [violation, times] : violations) {
    ADD_FAILURE() << violation << " (" << times << " times)";
  }
  std::uint64_t faults = 0;
  for (const auto& [kind, times] : (*server)->Played()) {
    faults += kind == FaultKind::kNone ? 0 : times;
  }
  EXPECT_GE(faults, 1000U);
  EXPECT_EQ((*server)->Played().size(), AllFaults().size()) << "a kind was never played";
  EXPECT_EQ((*server)->redirected(), 0U) << "the key was carried to where a redirect points";
  CompareTotals(**server, budget.spent(), ended);
}

// libcurl sends a POST again by itself when a kept connection was reset: two bills for one attempt.
TEST(Faults, AResetOfAKeptConnectionIsAnAttempt) {
  const Watchdog watchdog(std::chrono::seconds(60));
  for (const Wire wire : {Wire::kOpenAi, Wire::kAnthropic}) {
    HandlerOptions options;
    options.plan = [](const Asked& asked) {
      return Fault{.kind = asked.index == 2 ? FaultKind::kResetBeforeHeaders : FaultKind::kNone};
    };
    auto server = FakeServer::Start(std::move(options));
    ASSERT_TRUE(server.ok()) << server.error().message;
    const SystemClock clock;
    llm::Budget budget({}, clock);
    Clients clients((*server)->port(), clock, budget);
    Question question;
    question.wire = wire;
    ASSERT_TRUE(AskOne(clients.For(question), "one").response);
    ASSERT_TRUE(AskOne(clients.For(question), "two").response);
    ASSERT_EQ((*server)->connections(), 1U) << "connections are to be kept";
    const Ended third = AskOne(clients.For(question), "three");
    ASSERT_TRUE(third.response) << third.message;
    EXPECT_EQ(third.response->attempts, 2U);
    (*server)->Stop();
    EXPECT_EQ((*server)->Ledger().size(), 4U) << "two answers, a lost one and its repetition";
    EXPECT_GE(budget.spent().dollars, Bill((*server)->Ledger(), kPrice));
  }
}

TEST(Faults, NobodyListens) {
  const Watchdog watchdog(std::chrono::seconds(60));
  const SystemClock clock;
  llm::Budget budget({}, clock);
  Clients clients(DeadPort(), clock, budget);
  for (const Wire wire : {Wire::kOpenAi, Wire::kAnthropic}) {
    Question question;
    question.wire = wire;
    const Ended ended = AskOne(clients.For(question), "anybody?");
    EXPECT_FALSE(ended.response);
    EXPECT_EQ(ended.code, ErrorCode::kUnavailable) << ended.message;
    EXPECT_FALSE(Leaks(ended.message, kSecret)) << ended.message;
  }
  EXPECT_EQ(budget.spent().dollars, 0) << "nothing was sent";
  EXPECT_EQ(budget.spent().requests, 0U);
}

TEST(Faults, AWrongKeyThatTheServerRepeatsIsNotShown) {
  const Watchdog watchdog(std::chrono::seconds(60));
  HandlerOptions options;
  options.key = "sk-another";
  options.repeats_key = true;
  auto server = FakeServer::Start(std::move(options));
  ASSERT_TRUE(server.ok()) << server.error().message;
  const SystemClock clock;
  llm::Budget budget({}, clock);
  Clients clients((*server)->port(), clock, budget);
  for (const Wire wire : {Wire::kOpenAi, Wire::kAnthropic}) {
    Question question;
    question.wire = wire;
    const Ended ended = AskOne(clients.For(question), "hello");
    EXPECT_EQ(ended.code, ErrorCode::kInvalidArgument) << ended.message;
    EXPECT_FALSE(Leaks(ended.message, kSecret)) << ended.message;
    EXPECT_NE(ended.message.find("Your request was sent with the key"), std::string::npos)
        << "the server repeats it, so there was something to hide: " << ended.message;
  }
  EXPECT_EQ(budget.spent().dollars, 0);
}

}  // namespace
}  // namespace kernelpro::fake
