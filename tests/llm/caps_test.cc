// SPDX-License-Identifier: Apache-2.0
// Caps of what may be spent, with 64 threads asking at once.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "fake_server.h"
#include "fault_judge.h"
#include "llm/client.h"
#include "watchdog.h"

namespace kernelpro::fake {
namespace {

using std::chrono::milliseconds;

constexpr llm::Price kPrice{1000, 100, 1250, 5000};
constexpr int kThreads = 64;

llm::ChatRequest Request() {
  llm::ChatRequest request;
  request.system = "Repeat what you are told.";
  request.messages.push_back({.text = "How many tiles does a warp have?"});
  request.max_tokens = 60;
  return request;
}

class CapsTest : public ::testing::TestWithParam<Wire> {
 protected:
  CapsTest() {
    HandlerOptions options;
    options.plan = [](const Asked& asked) {
      Fault fault;
      // Some are lost: whether they were paid for is then not known.
      fault.kind = asked.index % 7 == 3 ? FaultKind::kCutInEvent : FaultKind::kNone;
      return fault;
    };
    server_ = FakeServer::Start(std::move(options)).value();
  }

  std::unique_ptr<llm::ChatClient> Client(llm::Budget& budget) {
    llm::ClientOptions options;
    const bool openai = GetParam() == Wire::kOpenAi;
    options.endpoint.wire = openai ? llm::Wire::kOpenAi : llm::Wire::kAnthropic;
    options.endpoint.base_url = server_->url() + (openai ? "/v1" : "");
    options.endpoint.model = "test-model";
    options.key = llm::Key("sk-test-0123456789");
    options.price = kPrice;
    options.idle_timeout = milliseconds(10'000);
    options.backoff_base = milliseconds(5);
    options.backoff_max = milliseconds(20);
    return llm::OpenClient(std::move(options), budget, clock_).value();
  }

  /// Asks from 64 threads, then from one, each until a cap is told.
  void SpendAll(llm::Budget& budget) {
    const auto client = Client(budget);
    const auto ask_until_capped = [&client] {
      while (true) {
        const auto answer = client->Ask(Request(), {});
        if (!answer.ok() && answer.error().code == ErrorCode::kBudget) {
          return;
        }
        ASSERT_TRUE(answer.ok() || answer.error().code == ErrorCode::kUnavailable)
            << answer.error().message;
      }
    };
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < kThreads; ++i) {
        threads.emplace_back(ask_until_capped);
      }
    }
    ask_until_capped();
    server_->Stop();
  }

  /// The most that one attempt can be charged.
  static llm::Usage OneAtMost() {
    llm::Usage usage;
    usage.input = llm::PromptTokensAtMost(Request());
    usage.cache_write = usage.input;
    usage.output = Request().max_tokens;
    return usage;
  }

  [[nodiscard]] std::uint64_t BilledTokens() const {
    std::uint64_t tokens = 0;
    for (const LedgerEntry& entry : server_->Ledger()) {
      tokens += entry.tokens.prompt + entry.tokens.completion;
    }
    return tokens;
  }

  const Watchdog watchdog_{std::chrono::seconds(100)};
  const SystemClock clock_;
  std::unique_ptr<FakeServer> server_;
};

TEST_P(CapsTest, DollarsArePassedByOneRequestAtMost) {
  const double one = llm::Cost(kPrice, OneAtMost());
  const double cap = 40 * one;
  llm::Budget budget({.dollars = cap}, clock_);
  SpendAll(budget);
  EXPECT_LE(budget.spent().dollars, cap + one);
  EXPECT_GE(budget.spent().dollars, cap) << "the cap was told before it was reached";
  EXPECT_LE(Bill(server_->Ledger(), kPrice), budget.spent().dollars);
  EXPECT_GT(server_->Ledger().size(), static_cast<std::size_t>(kThreads));
}

TEST_P(CapsTest, TokensArePassedByOneRequestAtMost) {
  const std::uint64_t one = OneAtMost().input + OneAtMost().output;
  const std::uint64_t cap = 40 * one;
  llm::Budget budget({.tokens = cap}, clock_);
  SpendAll(budget);
  const std::uint64_t spent = budget.spent().input_tokens + budget.spent().output_tokens;
  EXPECT_LE(spent, cap + one);
  EXPECT_GE(spent, cap) << "the cap was told before it was reached";
  EXPECT_LE(BilledTokens(), spent);
}

TEST_P(CapsTest, NothingIsAskedAfterTheTime) {
  llm::Budget budget({.time = milliseconds(300)}, clock_);
  {
    const auto client = Client(budget);
    std::vector<std::jthread> threads;
    std::atomic<int> capped = 0;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        while (true) {
          const auto answer = client->Ask(Request(), {});
          if (answer.ok()) {
            continue;
          }
          const ErrorCode code = answer.error().code;
          // One that was in the middle when the time ended was cut off.
          EXPECT_TRUE(code == ErrorCode::kBudget || code == ErrorCode::kTimeout ||
                      code == ErrorCode::kUnavailable)
              << answer.error().message;
          if (code == ErrorCode::kBudget) {
            ++capped;
            return;
          }
        }
      });
    }
    threads.clear();
    EXPECT_EQ(capped, kThreads);
    const std::uint64_t before = budget.spent().requests;
    EXPECT_GT(before, 0U);
    const auto late = client->Ask(Request(), {});
    ASSERT_FALSE(late.ok());
    EXPECT_EQ(late.error().code, ErrorCode::kBudget);
    EXPECT_EQ(budget.spent().requests, before);
  }
  server_->Stop();
  EXPECT_LE(Bill(server_->Ledger(), kPrice), budget.spent().dollars);
}

INSTANTIATE_TEST_SUITE_P(Wires, CapsTest, ::testing::Values(Wire::kOpenAi, Wire::kAnthropic),
                         [](const auto& wire) {
                           return wire.param == Wire::kOpenAi ? "openai" : "anthropic";
                         });

}  // namespace
}  // namespace kernelpro::fake
