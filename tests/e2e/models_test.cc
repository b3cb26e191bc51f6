// SPDX-License-Identifier: Apache-2.0
// Searches with a language model behind a server: what is kept, paid, resumed and played again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <map>
#include <set>
#include <thread>

#include "players.h"

namespace kernelpro::e2e {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class Models : public ::testing::Test {
 protected:
  Models() {
    cli_.environment = {std::string("OPENAI_API_KEY=") + kCanaryKey,
                        std::string("ANTHROPIC_API_KEY=") + kCanaryKey};
    task_ = SmallTask(cli_);
  }

  [[nodiscard]] Cli::Answer Find(Search search) const {
    search.task = task_;
    return cli_.Run(Arguments(search));
  }

  [[nodiscard]] fs::path Folder(const char* name) const { return cli_.folder() / name; }

  /// The key is nowhere: not in the run, not in what was said.
  static void ExpectNoKey(const fs::path& run, const Cli::Answer& answer) {
    EXPECT_THAT(FilesWith(run, kCanaryKey), IsEmpty());
    EXPECT_THAT(answer.out + answer.err, Not(HasSubstr(kCanaryKey)));
  }

  static void ExpectPaid(const Cli::Answer& answer, const std::vector<fake::LedgerEntry>& ledger) {
    const auto spent = answer.Json()["spent"];
    EXPECT_NEAR(spent["dollars"].get<double>(), Dollars(ledger), 1e-9);
    EXPECT_EQ(spent["requests"], ledger.size());
    EXPECT_EQ(spent["charged_at_upper_bound"], 0);
  }

  Cli cli_;
  fs::path task_;
};

/// Root, a kernel from the task alone that does not compile, its repair, prose, and renamed
/// kernels.
void ExpectTheStory(const fs::path& run) {
  const auto store = store::RunStore::OpenCopy(run).value();
  const auto nodes = store->Nodes().value();
  ASSERT_EQ(nodes.size(), 5);
  EXPECT_EQ(nodes[0].origin, "");
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    EXPECT_EQ(nodes[i].origin, "test-model") << nodes[i].action;
  }
  EXPECT_EQ(nodes[1].verdict, "compile_error");
  EXPECT_EQ(nodes[2].parent, nodes[1].id);
  EXPECT_EQ(nodes[2].action, "repair_compile_error");
  EXPECT_EQ(nodes[2].verdict, "ok") << nodes[2].verdict_reason;
  for (std::size_t i = 3; i < nodes.size(); ++i) {
    EXPECT_EQ(nodes[i].verdict, "ok") << nodes[i].verdict_reason;
    EXPECT_THAT(nodes[i].action, HasSubstr("rename_"));
  }
  const auto declined = store->Declined(store::kRoot).value();
  ASSERT_EQ(declined.size(), 1) << "the prose";
  EXPECT_THAT(declined[0].action, HasSubstr("seed"));
  EXPECT_FALSE(declined[0].why.empty());
}

TEST_F(Models, ASearchOnOpenAisWireIsKeptPaidAndPlayedAgain) {
  const auto server = Serve();
  const fs::path run = Folder("run");
  const Cli::Answer answer = Find({.run = run,
                                   .url = server->url(),
                                   .evaluations = 5,
                                   .more = {"--seed-temperatures", "0.2,0.8"}});
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  server->Stop();
  ExpectTheStory(run);
  ExpectPaid(answer, server->Ledger());
  ExpectNoKey(run, answer);

  // No server is there any more.
  const Cli::Answer again = cli_.Run(
      {"optimize", "--proposer", "replay:" + run.string(), "--run", Folder("again"), "--json"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(again.Json()["replay"]["same"], true);
  EXPECT_EQ(Tree(Folder("again")), Tree(run));

  const Cli::Answer task = cli_.Run({"optimize", cli_.CopyTask("transpose"), "--proposer",
                                     "replay:" + run.string(), "--run", Folder("task")});
  EXPECT_EQ(task.exit_code, 2);
  EXPECT_THAT(task.err, HasSubstr("a run of the task block_sum, not of transpose"));

  fs::copy(fs::path(KP_SOURCE_DIR) / "prompts", Folder("prompts"), fs::copy_options::recursive);
  Cli::Edit(Folder("prompts") / "repairer.md", "The cause first", "First of all the cause");
  const Cli::Answer other = cli_.Run({"optimize", "--proposer", "replay:" + run.string(), "--run",
                                      Folder("other"), "--prompts", Folder("prompts"), "--json"});
  EXPECT_NE(other.exit_code, 0);
  EXPECT_THAT(other.Json()["error"].get<std::string>(),
              AllOf(HasSubstr("diverges"), HasSubstr("repairer"), HasSubstr("about node 2"),
                    HasSubstr("First of all the cause")));
  EXPECT_THAT(LeftoverProcesses(), IsEmpty());
}

TEST_F(Models, ASearchOnAnthropicsWireTellsTheSameStory) {
  const auto server = Serve();
  const Cli::Answer answer = Find({.run = Folder("run"),
                                   .url = server->url(),
                                   .evaluations = 5,
                                   .wire = fake::Wire::kAnthropic,
                                   .more = {"--seed-temperatures", "0.2,0.8", "--no-stream"}});
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  server->Stop();
  ExpectTheStory(Folder("run"));
  ExpectPaid(answer, server->Ledger());
  ExpectNoKey(Folder("run"), answer);
}

TEST_F(Models, KilledWithAQuestionInFlightNothingIsAskedOrPaidTwice) {
  const std::vector<std::string> more = {"--seed-temperatures", "0.2", "--no-research"};
  const auto calm = Serve();
  ASSERT_EQ(
      Find({.run = Folder("calm"), .url = calm->url(), .evaluations = 4, .more = more}).exit_code,
      0);

  std::atomic<bool> asked = false;
  const auto server =
      Serve({.responder = Play, .plan = [&asked](const fake::Asked& question) {
               const bool now = AgentOf(question) == "coder" && !asked.exchange(true);
               return fake::Fault{.kind = now ? fake::FaultKind::kStalled : fake::FaultKind::kNone};
             }});
  const fs::path run = Folder("run");
  {
    Child child = cli_.Start(Arguments(
        {.task = task_, .run = run, .url = server->url(), .evaluations = 4, .more = more}));
    for (int i = 0; i < 1200 && !asked; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(25));
    }
    ASSERT_TRUE(asked) << "no coder was ever asked";
    ::kill(child.pid(), SIGKILL);
    ASSERT_FALSE(child.RunsAfter(std::chrono::seconds(5)));
  }
  const Cli::Answer resumed =
      cli_.Run({"optimize", "--resume", run, "--evaluations", "4", "--json"});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  server->Stop();

  EXPECT_EQ(Tree(run), Tree(Folder("calm")));
  std::map<std::string, int> delivered;
  double paid = 0;
  for (const fake::LedgerEntry& entry : server->Ledger()) {
    delivered[entry.body_hash] += entry.delivered ? 1 : 0;
    paid += entry.delivered ? Dollars({entry}) : 0;
  }
  EXPECT_EQ(delivered.size() + 1, server->Ledger().size()) << "the lost question comes twice";
  for (const auto& [question, times] : delivered) {
    EXPECT_EQ(times, 1);
  }
  double upper = 0;
  for (const store::ExchangeRecord& e : ExchangesOf(run)) {
    if (e.state == "sent") {
      EXPECT_EQ(upper, 0) << "one question was lost";
      EXPECT_EQ(e.purpose, "coder");
      EXPECT_DOUBLE_EQ(e.cost, static_cast<double>(e.input_tokens) * 2e-6 +
                                   static_cast<double>(e.output_tokens) * 10e-6);
      upper = e.cost;
    }
  }
  EXPECT_GT(upper, 0);
  const auto spent = resumed.Json()["spent"];
  EXPECT_EQ(spent["charged_at_upper_bound"], 1);
  EXPECT_NEAR(spent["dollars"].get<double>(), paid + upper, 1e-9);
  ExpectNoKey(run, resumed);
}

TEST_F(Models, ADryRunAsksNobody) {
  const auto server = Serve();
  std::vector<std::string> arguments =
      Arguments({.task = task_, .run = Folder("run"), .url = server->url()});
  arguments.back() = "--dry-run";  // Instead of --json.
  cli_.environment = {"OPENAI_API_KEY="};
  const Cli::Answer answer = cli_.Run(arguments);
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_EQ(server->connections(), 0);
  EXPECT_THAT(server->Ledger(), IsEmpty());
  EXPECT_FALSE(fs::exists(Folder("run")));
  for (const char* part : {"You are the planner", "You are the coder",
                           "Write a kernel for the task", "tokens in (at most",
                           "2 dollars per million tokens in, 10 out", "a run of 6 evaluations"}) {
    EXPECT_THAT(answer.out, HasSubstr(part));
  }
}

/// What the agents were asked, as one text for each agent.
std::map<std::string, std::string> Questions(const fs::path& run) {
  std::map<std::string, std::string> questions;
  for (const store::ExchangeRecord& e : ExchangesOf(run)) {
    questions[e.purpose] += e.request;
  }
  return questions;
}

TEST_F(Models, FeedbackAndOrchestrationChangeWhatTheModelSees) {
  const auto server = Serve();
  const auto planner = [&](const char* name, std::vector<std::string> more) {
    more.insert(more.end(), {"--seed-rounds", "0", "--no-research"});
    const Cli::Answer answer = Find(
        {.run = Folder(name), .url = server->url(), .evaluations = 2, .more = std::move(more)});
    EXPECT_EQ(answer.exit_code, 0) << answer.err;
    return Questions(Folder(name))["planner"];
  };
  const std::string finding = "Waiting at block barriers";
  const std::string advice = "General advice for CUDA kernels";
  EXPECT_THAT(planner("tools", {}), AllOf(HasSubstr(finding), Not(HasSubstr(advice))));
  EXPECT_THAT(planner("raw", {"--feedback", "raw"}),
              AllOf(HasSubstr("inst_executed"), Not(HasSubstr(finding)), Not(HasSubstr(advice))));
  EXPECT_THAT(planner("none", {"--feedback", "none"}),
              AllOf(HasSubstr("You are the planner"), Not(HasSubstr(finding)),
                    Not(HasSubstr("What is known about its performance"))));
  EXPECT_THAT(planner("placebo", {"--feedback", "placebo"}),
              AllOf(HasSubstr(advice), Not(HasSubstr(finding))));
  EXPECT_THAT(planner("reactive", {"--orchestration", "reactive"}),
              AllOf(HasSubstr("get_findings"), HasSubstr("lat.barrier")));
}

}  // namespace
}  // namespace kernelpro::e2e
