// SPDX-License-Identifier: Apache-2.0
// Whole searches with the real binary, compiler and emulator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <map>
#include <thread>

#include "cli.h"
#include "store/run_store.h"

namespace kernelpro::e2e {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::vector<std::string> Optimize(const fs::path& task, const fs::path& run, int evaluations) {
  return {"optimize", task, "--run", run, "--evaluations", std::to_string(evaluations),
          "--seed",   "5",  "--json"};
}

std::vector<store::NodeRecord> Nodes(const fs::path& run) {
  return store::RunStore::Open(run).value()->Nodes().value();
}

TEST(Search, FindsAFasterKernelAndKeepsTheContract) {
  const Cli cli;
  const fs::path run = cli.folder() / "run";
  const Cli::Answer answer = cli.Run(Optimize(cli.CopyTask("row_softmax"), run, 8));
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  const auto json = answer.Json();
  EXPECT_EQ(json["task"], "row_softmax");
  EXPECT_EQ(json["device"], "emulator:h200");
  EXPECT_LE(json["evaluations"].get<int>(), 8);
  EXPECT_EQ(json["best"]["verdict"], "ok");
  EXPECT_EQ(json["best"]["provenance"], "modelled");
  EXPECT_GT(json["best"]["speedup"].get<double>(), 3.0);
  EXPECT_NEAR(json["best"]["speedup"].get<double>(),
              json["seed"]["time_us"].get<double>() / json["best"]["time_us"].get<double>(), 1e-9);
  EXPECT_EQ(fs::path(json["run"].get<std::string>()), run);
  EXPECT_EQ(ReadFile(run / "best.cu").value(), json["best"]["source"].get<std::string>());
  EXPECT_TRUE(answer.err.empty()) << "quiet when piped, but: " << answer.err;
  EXPECT_THAT(LeftoverProcesses(), ::testing::IsEmpty());
}

TEST(Search, SameSeedSameRun) {
  const Cli cli;
  const fs::path task = cli.CopyTask("block_sum");
  std::vector<std::map<std::string, double>> runs;
  for (const char* name : {"one", "two"}) {
    ASSERT_EQ(cli.Run(Optimize(task, cli.folder() / name, 6)).exit_code, 0);
    std::map<std::string, double> times;
    for (const auto& node : Nodes(cli.folder() / name)) {
      times[std::to_string(node.id) + node.action + node.verdict] = node.time_us;
    }
    runs.push_back(times);
  }
  EXPECT_EQ(runs[0], runs[1]);
}

TEST(Search, KilledAtAnyMomentResumesWithoutLossOrRepetition) {
  const Cli cli;
  const fs::path task = cli.CopyTask("transpose");
  const fs::path run = cli.folder() / "run";
  std::map<store::NodeId, std::string> finished;  // id -> evaluation as first written
  for (int round = 0; round < 6; ++round) {
    const bool fresh = !fs::exists(run / "run.db");
    Child child = cli.Start(fresh ? Optimize(task, run, 10)
                                  : std::vector<std::string>{"optimize", "--resume", run,
                                                             "--evaluations", "10", "--json"});
    const bool running = child.RunsAfter(std::chrono::milliseconds(700 + 900 * round));
    ::kill(child.pid(), SIGKILL);  // The leader only: its children must notice by themselves.
    (void)child.RunsAfter(std::chrono::seconds(5));
    if (!fs::exists(run / "run.db")) {
      continue;
    }
    for (const auto& node : Nodes(run)) {
      if (node.done) {
        const auto [known, is_new] = finished.emplace(node.id, node.evaluation);
        EXPECT_EQ(known->second, node.evaluation) << "node " << node.id << " was evaluated twice";
      }
    }
    EXPECT_THAT(LeftoverProcesses(), ::testing::IsEmpty());
    if (!running) {
      break;
    }
  }
  const Cli::Answer last = cli.Run({"optimize", "--resume", run, "--evaluations", "10", "--json"});
  ASSERT_EQ(last.exit_code, 0) << last.err;
  const auto nodes = Nodes(run);
  EXPECT_EQ(nodes.size(), last.Json()["evaluations"].get<std::size_t>());
  for (const auto& [id, evaluation] : finished) {
    EXPECT_EQ(nodes[static_cast<std::size_t>(id) - 1].evaluation, evaluation)
        << "finished node " << id << " was lost or evaluated again";
  }
}

TEST(Search, InterruptLeavesAResumableRun) {
  const Cli cli;
  const fs::path run = cli.folder() / "run";
  Child child = cli.Start(Optimize(cli.CopyTask("matmul"), run, 30));
  for (int i = 0; i < 600 && !fs::exists(run / "run.db"); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  ASSERT_TRUE(child.RunsAfter(std::chrono::seconds(4)));
  ::kill(child.pid(), SIGINT);
  const auto ended = child.Wait();
  ASSERT_TRUE(ended.ok());
  EXPECT_EQ(ended->end, ProcessResult::End::kExited);
  EXPECT_EQ(ended->exit_code, 1);
  EXPECT_THAT(LeftoverProcesses(), ::testing::IsEmpty());
  const std::size_t before = Nodes(run).size();
  const Cli::Answer resumed =
      cli.Run({"optimize", "--resume", run, "--evaluations", std::to_string(before + 1), "--json"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
}

TEST(Search, ARunFolderCanBeMoved) {
  const Cli cli;
  const fs::path run = cli.folder() / "run";
  const fs::path task = cli.CopyTask("transpose");
  ASSERT_EQ(cli.Run(Optimize(task, run, 2)).exit_code, 0);
  fs::remove_all(task);
  fs::rename(run, cli.folder() / "moved");
  const Cli::Answer answer =
      cli.Run({"optimize", "--resume", cli.folder() / "moved", "--evaluations", "3", "--json"});
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_EQ(answer.Json()["evaluations"], 3);
}

}  // namespace
}  // namespace kernelpro::e2e
