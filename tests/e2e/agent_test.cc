// SPDX-License-Identifier: Apache-2.0
// A search that an outside agent drives: its turns, its mistakes, and two of them at once.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "players.h"

namespace kernelpro::e2e {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kTranspose = R"(#include "kernelpro_task.h"
__global__ void Move(const float* in, float* out, int rows, int cols) {{
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  {2}
  if (x < cols && y < rows) out[(size_t)x * rows + y] = {1}in[(size_t)y * cols + x];
}}
extern "C" cudaError_t kernelpro_run(const TaskArgs* args, cudaStream_t stream) {{
  const int rows = (int)args->rows, cols = (int)args->cols;
  const dim3 block({0}, 256 / {0});
  Move<<<dim3((cols + block.x - 1) / block.x, (rows + block.y - 1) / block.y), block, 0, stream>>>(
      args->in, args->out, rows, cols);
  return cudaGetLastError();
}}
)";

std::string Right(int width) {
  return fmt::format(kTranspose, width, "", "");
}

std::string Wrong(int width) {
  return fmt::format(kTranspose, width, "2 * ", "");
}

/// Its first launch takes long enough to be disturbed.
std::string Slow() {
  std::string source = Right(64);
  source.insert(source.find("  const int rows"),
                "  static int calls = 0;\n  if (calls++ == 0) usleep(4000000);\n");
  return "#include <unistd.h>\n" + source;
}

class AgentTest : public ::testing::Test {
 protected:
  AgentTest() {
    task_ = cli_.CopyTask("transpose");
    Cli::Edit(task_ / "task.toml", "rows = 4096, cols = 4096", "rows = 256, cols = 256");
  }

  [[nodiscard]] Cli::Answer Start(const std::string& device = "emulator") const {
    return cli_.Run(
        {"agent", "start", task_, "--run", run_, "--device", device, "--seed", "3", "--json"});
  }

  [[nodiscard]] fs::path Write(const std::string& source) const {
    const fs::path file = cli_.folder() / "kernel.cu";
    EXPECT_TRUE(WriteFileAtomically(file, source).ok());
    return file;
  }

  [[nodiscard]] std::vector<std::string> Submission(const std::string& source, int parent,
                                                    std::vector<std::string> more = {}) const {
    std::vector<std::string> all = {"agent",       "submit",   run_,
                                    Write(source), "--parent", std::to_string(parent),
                                    "--action",    "try",      "--json"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  [[nodiscard]] Cli::Answer Submit(const std::string& source, int parent,
                                   std::vector<std::string> more = {}) const {
    return cli_.Run(Submission(source, parent, std::move(more)));
  }

  [[nodiscard]] Cli::Answer Agent(const std::string& verb,
                                  std::vector<std::string> more = {}) const {
    std::vector<std::string> all = {"agent", verb, run_, "--json"};
    all.insert(all.end(), more.begin(), more.end());
    return cli_.Run(all);
  }

  /// Until the runner of a kernel is at work.
  static void WaitForRunner(const Child& child) {
    const std::string parent = "PPid:\t" + std::to_string(child.pid()) + "\n";
    for (int i = 0; i < 600; ++i) {
      for (const auto& entry : fs::directory_iterator("/proc")) {
        std::ifstream status(entry.path() / "status");
        const std::string text{std::istreambuf_iterator<char>(status), {}};
        if (text.find("Name:\tkernelpro-runne") != std::string::npos &&
            text.find(parent) != std::string::npos) {
          std::this_thread::sleep_for(std::chrono::milliseconds(500));
          return;
        }
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    ADD_FAILURE() << "no runner came";
  }

  Cli cli_;
  fs::path task_;
  std::string run_ = "run";
};

TEST_F(AgentTest, TakesTurnsWithTheReferee) {
  const Cli::Answer start = Start();
  ASSERT_EQ(start.exit_code, 0) << start.err;
  EXPECT_EQ(start.Json()["verdict"], "ok");
  EXPECT_EQ(start.Json()["run"], "run");
  EXPECT_EQ(start.Json()["findings"][0]["id"], "mem.coalesce_st");

  const auto next = Agent("next").Json();
  EXPECT_EQ(next["parent"]["node"], 1);
  EXPECT_EQ(next["repair"], false);
  EXPECT_THAT(next["source"].get<std::string>(), HasSubstr("Transpose<<<"));

  const Cli::Answer wrong = Submit(Wrong(32), 1, {"--finding", "mem.coalesce_st", "--by", "me"});
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_EQ(wrong.Json()["verdict"], "wrong_result");
  EXPECT_EQ(wrong.Json()["origin"], "me");
  EXPECT_EQ(wrong.Json()["finding"], "mem.coalesce_st");
  const auto repair = Agent("next").Json();
  EXPECT_EQ(repair["parent"]["node"], 2);
  EXPECT_EQ(repair["repair"], true);

  const Cli::Answer mended = Submit(Right(32), 2);
  EXPECT_EQ(mended.exit_code, 0) << mended.out;
  EXPECT_EQ(Agent("next").Json()["repair"], false);
  EXPECT_EQ(Agent("diagnose", {"--node", "3"}).Json()["node"], 3);

  EXPECT_EQ(Agent("note", {"a block of 8 columns is \"slow\"", "--kind", "dead_end"}).exit_code, 0);
  const auto memory = Agent("memory", {"columns"}).Json()["lessons"];
  ASSERT_EQ(memory.size(), 1);
  EXPECT_EQ(memory[0]["kind"], "dead_end");
  EXPECT_EQ(Agent("status").Json()["nodes"].size(), 3);
  const Cli::Answer report = Agent("report");
  EXPECT_EQ(report.exit_code, 0);
  EXPECT_TRUE(fs::exists(cli_.folder() / run_ / "best.cu"));
  EXPECT_THAT(LeftoverProcesses(), IsEmpty());

  // The same tree once more, from the record; and the run itself stays the agent's.
  const Cli::Answer replay =
      cli_.Run({"optimize", "--proposer", "replay:run", "--run", "again", "--json"});
  EXPECT_EQ(replay.exit_code, 0) << replay.err;
  EXPECT_EQ(Tree(cli_.folder() / "again"), Tree(cli_.folder() / "run"));
  const Cli::Answer resume = cli_.Run({"optimize", "--resume", "run"});
  EXPECT_EQ(resume.exit_code, 2);
  EXPECT_THAT(resume.err, HasSubstr("kernelpro agent next run"));
}

// The stored example is what its README says: judged again it is the same tree, to the last digit
// of a time. When the emulator's time model changes this fails, and the example is judged anew.
TEST_F(AgentTest, TheRecordedExampleReplays) {
  const std::filesystem::path example =
      std::filesystem::path(KP_SOURCE_DIR) / "examples/runs/layer_norm";
  const std::string before = ReadFile(example / "run.db").value();
  const Cli::Answer replay = cli_.Run({"optimize", "--proposer", "replay:" + example.string(),
                                       "--run", "again", "--minutes", "10", "--json"});
  EXPECT_EQ(replay.exit_code, 0) << replay.err;
  EXPECT_EQ(replay.Json()["replay"]["same"], true);
  EXPECT_EQ(replay.Json()["evaluations"], 15);
  EXPECT_EQ(ReadFile(example / "run.db").value(), before) << "reading it changed it";
}

TEST_F(AgentTest, SaysWhyASubmissionIsRefused) {
  ASSERT_EQ(Start().exit_code, 0);
  const auto refused = [&](const Cli::Answer& answer, const std::string& why) {
    EXPECT_EQ(answer.exit_code, 2) << answer.out;
    EXPECT_THAT(answer.err, HasSubstr(why));
  };
  refused(Submit(ReadFile(task_ / "seed.cu").value(), 1), "the kernel of node 1 already");
  refused(Submit(Right(16), 1, {"--finding", "no.such"}), "it has mem.coalesce_st");
  refused(Submit(Right(16), 7), "there is no node 7");
  refused(Agent("next", {"--node", "9"}), "there is no node 9");
  refused(Agent("note", {" "}), "needs a text");
  refused(cli_.Run({"agent", "next", "nowhere"}), "nowhere");
  refused(cli_.Run({"agent", "nxt", run_}),
          "there is no command 'nxt'; see kernelpro agent --help");
  refused(Start(), "agent next run");
  EXPECT_EQ(Agent("status").Json()["nodes"].size(), 1);
}

TEST_F(AgentTest, WhatTheEmulatorCannotJudgeIsNotCalledWrong) {
  ASSERT_EQ(Start().exit_code, 0);
  const std::string exotic =
      fmt::format(kTranspose, 32, "",
                  "unsigned int t; asm volatile(\"mov.u32 %0, %%lanemask_lt;\" : \"=r\"(t)); "
                  "asm volatile(\"nanosleep.u32 %0;\" :: \"r\"(t)); "
                  "asm volatile(\"brkpt;\");");
  const Cli::Answer answer = Submit(exotic, 1);
  ASSERT_EQ(answer.Json()["verdict"], "unsupported") << answer.out;
  EXPECT_EQ(Agent("next").Json()["repair"], false);
  EXPECT_EQ(Agent("next").Json()["parent"]["node"], 1);

  const Cli::Answer wrong =
      cli_.Run({"agent", "submit", run_, Write(Wrong(16)), "--parent", "1", "--action", "double"});
  EXPECT_THAT(wrong.out, AllOf(HasSubstr("wrong_result: "), Not(HasSubstr("worst error 0 of"))));
  EXPECT_EQ(wrong.out.find("of 'out' are wrong"), wrong.out.rfind("of 'out' are wrong"))
      << "told once";
}

TEST_F(AgentTest, WhatWasPutOffIsJudgedLaterAndElsewhere) {
  ASSERT_EQ(Start().exit_code, 0);
  const Cli::Answer later = Submit(Right(16), 1, {"--defer"});
  EXPECT_EQ(later.exit_code, 0);
  EXPECT_TRUE(later.Json()["verdict"].is_null());
  EXPECT_EQ(Agent("next").Json()["waiting"], 1);

  fs::remove_all(task_);
  fs::rename(cli_.folder() / "run", cli_.folder() / "moved");
  run_ = "moved";
  const Cli::Answer evaluated = Agent("evaluate", {"--pending"});
  EXPECT_EQ(evaluated.exit_code, 0) << evaluated.err;
  EXPECT_EQ(evaluated.Json()["nodes"][1]["verdict"], "ok");
  EXPECT_EQ(Agent("next").Json()["waiting"], 0);
}

TEST_F(AgentTest, ARunForAGpuThatIsNotHereWaits) {
  if (fs::exists("/dev/nvidiactl")) {
    GTEST_SKIP() << "there is a GPU";
  }
  const Cli::Answer start = Start("cuda");
  EXPECT_EQ(start.exit_code, 0) << start.err;
  EXPECT_TRUE(start.Json()["verdict"].is_null());
  const Cli::Answer queued =
      cli_.Run({"agent", "submit", run_, Write(Right(16)), "--parent", "1", "--action", "narrow"});
  EXPECT_EQ(queued.exit_code, 0) << queued.err;
  EXPECT_THAT(queued.out, AllOf(HasSubstr("waits for a result"), HasSubstr("agent evaluate run")));
  const Cli::Answer evaluated = Agent("evaluate", {"--pending"});
  EXPECT_EQ(evaluated.exit_code, 3);
  EXPECT_FALSE(evaluated.err.empty());
}

TEST_F(AgentTest, OneWritesWhileOthersRead) {
  ASSERT_EQ(Start().exit_code, 0);
  ASSERT_EQ(Submit(Slow(), 1, {"--defer"}).exit_code, 0);
  Child busy = cli_.Start({"agent", "evaluate", run_, "--json"});
  WaitForRunner(busy);
  const Cli::Answer second = Submit(Right(16), 1);
  EXPECT_EQ(second.exit_code, 3);
  EXPECT_THAT(second.err, HasSubstr("in use"));
  EXPECT_EQ(Agent("status").Json()["nodes"].size(), 2);
  EXPECT_EQ(Agent("next").Json()["waiting"], 1);
  EXPECT_TRUE(busy.RunsAfter(std::chrono::milliseconds(0))) << "they were not side by side";

  ::kill(busy.pid(), SIGINT);
  const auto ended = busy.Wait();
  ASSERT_TRUE(ended.ok());
  EXPECT_EQ(ended->end, ProcessResult::End::kExited);
  EXPECT_EQ(ended->exit_code, 1);
  EXPECT_THAT(LeftoverProcesses(), IsEmpty());
  EXPECT_TRUE(Agent("status").Json()["nodes"][1]["verdict"].is_null()) << "it still waits";
}

TEST_F(AgentTest, ADamagedRunIsSaidToBeOne) {
  ASSERT_EQ(Start("cuda").exit_code, 0);  // Nothing needs to be judged for this.
  const std::string good = ReadFile(cli_.folder() / run_ / "run.db").value();
  std::string torn = good;
  for (std::size_t i = 4096; i < torn.size(); ++i) {
    torn[i] = static_cast<char>(i * 131);
  }
  for (const std::string& bytes : {std::string("no database"), good.substr(0, 5000), torn}) {
    for (const char* rest : {"run.db-wal", "run.db-shm"}) {
      fs::remove(cli_.folder() / run_ / rest);
    }
    ASSERT_TRUE(WriteFileAtomically(cli_.folder() / run_ / "run.db", bytes).ok());
    for (const char* verb : {"next", "status", "report", "evaluate"}) {
      const Cli::Answer answer = Agent(verb);
      EXPECT_EQ(answer.exit_code, 2) << verb << answer.out;
      EXPECT_THAT(answer.err, HasSubstr("damaged")) << verb;
    }
  }
}

}  // namespace
}  // namespace kernelpro::e2e
