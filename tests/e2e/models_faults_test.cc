// SPDX-License-Identifier: Apache-2.0
// What goes wrong between a search and its model: the search ends honestly, and the key stays in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "players.h"

namespace kernelpro::e2e {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class ModelFaults : public ::testing::Test {
 protected:
  ModelFaults() {
    cli_.environment = {std::string("OPENAI_API_KEY=") + kCanaryKey};
    task_ = SmallTask(cli_);
  }

  /// A search that begins with a planner's question.
  [[nodiscard]] std::vector<std::string> Start(const std::string& url,
                                               std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--seed-rounds", "0", "--no-research"});
    return Arguments({.task = task_, .run = run(), .url = url, .evaluations = 3, .more = more});
  }

  [[nodiscard]] Cli::Answer Find(const std::string& url, std::vector<std::string> more = {}) {
    fs::remove_all(run());
    Cli::Answer answer = cli_.Run(Start(url, std::move(more)));
    if (fs::exists(run())) {
      EXPECT_THAT(FilesWith(run(), kCanaryKey), IsEmpty());
    }
    EXPECT_THAT(answer.out + answer.err, Not(HasSubstr(kCanaryKey)));
    return answer;
  }

  [[nodiscard]] fs::path run() const { return cli_.folder() / "run"; }

  Cli cli_;
  fs::path task_;
};

fake::HandlerOptions With(fake::FaultKind kind) {
  return {.responder = Play,
          .plan = [kind](const fake::Asked&) { return fake::Fault{.kind = kind}; }};
}

TEST_F(ModelFaults, WrongKeyAndUnknownModelAreTheUsersMistakes) {
  fake::HandlerOptions options{.responder = Play};
  options.repeats_key = true;
  const auto server = Serve(options);
  cli_.environment = {std::string("OPENAI_API_KEY=") + kCanaryKey + "-of-somebody-else"};
  const Cli::Answer key = Find(server->url());
  EXPECT_EQ(key.exit_code, 2);
  EXPECT_THAT(key.err, HasSubstr("API key")) << "says what is wrong";

  cli_.environment = {std::string("OPENAI_API_KEY=") + kCanaryKey};
  const Cli::Answer model = Find(server->url(), {"--model", "openai:no-such-model"});
  EXPECT_EQ(model.exit_code, 2);
  EXPECT_THAT(model.err, HasSubstr("no-such-model"));
  EXPECT_THAT(server->Ledger(), IsEmpty());
}

TEST_F(ModelFaults, AKeyThatOthersMayReadIsRefused) {
  const auto server = Serve();
  const fs::path file = cli_.folder() / "key";
  ASSERT_TRUE(WriteFileAtomically(file, std::string(kCanaryKey) + "\n").ok());
  ASSERT_EQ(::chmod(file.c_str(), 0644), 0);
  cli_.environment = {"OPENAI_API_KEY="};
  const Cli::Answer open = Find(server->url(), {"--key-file", file});
  EXPECT_EQ(open.exit_code, 2);
  EXPECT_THAT(open.err, HasSubstr("chmod 600"));
  EXPECT_EQ(server->connections(), 0);

  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  const Cli::Answer closed = Find(server->url(), {"--key-file", file, "--evaluations", "2"});
  EXPECT_EQ(closed.exit_code, 0) << closed.err;
}

TEST_F(ModelFaults, APlaceholderForAKeyStaysOutOfTheCode) {
  const auto server = fake::FakeServer::Start({.responder = Play}).value();
  cli_.environment = {"OPENAI_API_KEY=x"};
  const Cli::Answer answer = Find(server->url(), {"--evaluations", "2"});
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  const auto nodes = NodesOf(run());
  ASSERT_EQ(nodes.size(), 2);
  EXPECT_THAT(nodes[1].source, HasSubstr("threadIdx.x"));
  EXPECT_EQ(nodes[1].verdict, "ok") << nodes[1].verdict_reason;
}

TEST_F(ModelFaults, FoldersThatAreNotThereLeaveNoRun) {
  for (const char* option : {"--prompts", "--code"}) {
    const Cli::Answer answer = Find("http://127.0.0.1:1", {option, "/nowhere"});
    EXPECT_EQ(answer.exit_code, 2) << option;
    EXPECT_THAT(answer.err, HasSubstr("/nowhere"));
    EXPECT_FALSE(fs::exists(run())) << option;
  }
}

TEST_F(ModelFaults, AServerThatIsNotThereIsTheMachines) {
  const Cli::Answer gone =
      Find("http://127.0.0.1:" + std::to_string(fake::DeadPort()), {"--minutes", "0.1"});
  EXPECT_EQ(gone.exit_code, 3);
  EXPECT_THAT(gone.err, HasSubstr("127.0.0.1"));
  const Cli::Answer paid = cli_.Run({"optimize", "--resume", run(), "--max-cost", "0", "--json"});
  EXPECT_EQ(paid.exit_code, 0) << paid.err;
  EXPECT_EQ(paid.Json()["spent"]["requests"], 0) << "nobody was reached";
}

TEST_F(ModelFaults, AWebPageIsNoAnswer) {
  const auto server = Serve(With(fake::FaultKind::kHtml200));
  const Cli::Answer page = Find(server->url());
  EXPECT_NE(page.exit_code, 0);
  EXPECT_THAT(page.err, AllOf(HasSubstr("page"), Not(HasSubstr("<html"))));
}

TEST_F(ModelFaults, GarbageEndsTheSearchWithTheSeed) {
  fake::HandlerOptions options;
  options.responder = [](const fake::Asked& asked) {
    return AgentOf(asked) == "planner" ? Play(asked) : fake::Answer{.text = "No kernel today."};
  };
  const auto server = Serve(options);
  const Cli::Answer answer = Find(server->url());
  EXPECT_EQ(answer.exit_code, 1);
  EXPECT_THAT(answer.err, HasSubstr("held no new kernel"));
  const auto store = store::RunStore::OpenCopy(run()).value();
  EXPECT_EQ(store->Nodes().value().size(), 1);
  EXPECT_EQ(store->Declined(store::kRoot).value().size(), 8);
}

TEST_F(ModelFaults, TheCapOfMoneyEndsTheSearchAndHolds) {
  const auto server = Serve();
  constexpr double kCap = 0.08;
  const Cli::Answer answer =
      Find(server->url(), {"--evaluations", "40", "--max-cost", std::to_string(kCap)});
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  const auto json = answer.Json();
  EXPECT_EQ(json["stopped_by"], "the budget");
  server->Stop();
  EXPECT_NEAR(json["spent"]["dollars"].get<double>(), Dollars(server->Ledger()), 1e-9);
  std::vector<fake::LedgerEntry> ledger = server->Ledger();
  EXPECT_GE(Dollars(ledger), kCap);
  ledger.pop_back();
  EXPECT_LT(Dollars(ledger), kCap) << "more than one request passed it";

  // The cap is the run's: nothing is sent (the server is gone) until it is raised.
  const Cli::Answer resumed = cli_.Run({"optimize", "--resume", run(), "--json"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(resumed.Json()["stopped_by"], "the budget");
  EXPECT_EQ(
      cli_.Run({"optimize", "--resume", run(), "--max-cost", "1", "--minutes", "0.1"}).exit_code,
      3);
}

TEST_F(ModelFaults, AnInterruptEndsTheWaitForAnAnswer) {
  std::atomic<bool> asked = false;
  std::atomic<bool> stalls = true;
  const auto server = Serve({.responder = Play, .plan = [&](const fake::Asked&) {
                               asked = true;
                               return fake::Fault{.kind = stalls ? fake::FaultKind::kStalled
                                                                 : fake::FaultKind::kNone};
                             }});
  {
    Child child = cli_.Start(Start(server->url()));
    for (int i = 0; i < 1200 && !asked; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(25));
    }
    ASSERT_TRUE(asked);
    ::kill(child.pid(), SIGINT);
    ASSERT_FALSE(child.RunsAfter(std::chrono::seconds(10))) << "the server stalls for minutes";
    const auto ended = child.Wait();
    ASSERT_TRUE(ended.ok());
    EXPECT_EQ(ended->end, ProcessResult::End::kExited);
    EXPECT_EQ(ended->exit_code, 1);
    EXPECT_THAT(LeftoverProcesses(), IsEmpty());
  }
  stalls = false;
  const Cli::Answer resumed =
      cli_.Run({"optimize", "--resume", run(), "--evaluations", "2", "--price", "2,10", "--json"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(resumed.Json()["evaluations"], 2);
}

}  // namespace
}  // namespace kernelpro::e2e
