// SPDX-License-Identifier: Apache-2.0
// Processes of an evaluation are stopped or killed from outside: a verdict comes, nothing is left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <thread>

#include "base/text.h"
#include "cli.h"

namespace kernelpro::e2e {
namespace {

using std::chrono::milliseconds;

/// Right, and slow in its first call, so that there is time to disturb it.
constexpr const char* kSlowStart = R"(#include "kernelpro_task.h"
#include <unistd.h>
__global__ void Sum(const float* x, float* y, int segments, int length) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j >= segments) return;
  float sum = 0;
  for (int i = 0; i < length; ++i) sum += x[(size_t)j * length + i];
  y[j] = sum;
}
static int calls = 0;
extern "C" cudaError_t kernelpro_run(const TaskArgs* args, cudaStream_t stream) {
  if (calls++ == 0) usleep(4000000);
  const int segments = static_cast<int>(args->segments);
  Sum<<<(segments + 63) / 64, 64, 0, stream>>>(args->in, args->out, segments,
                                              static_cast<int>(args->length));
  return cudaGetLastError();
}
)";

std::string Slurp(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A child of `parent` whose program has this name.
std::optional<pid_t> ChildNamed(pid_t parent, const std::string& name) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    long long pid = 0;
    if (!ParseInteger(entry.path().filename().string(), &pid)) {
      continue;
    }
    const std::string command = Slurp(entry.path() / "cmdline");
    const std::string status = Slurp(entry.path() / "status");
    if (command.substr(0, command.find('\0')).ends_with(name) &&
        status.find("PPid:\t" + std::to_string(parent) + "\n") != std::string::npos) {
      return static_cast<pid_t>(pid);
    }
  }
  return std::nullopt;
}

class CrashTest : public ::testing::Test {
 protected:
  CrashTest() {
    EXPECT_TRUE(WriteFileAtomically(Candidate(), kSlowStart).ok());
    task_ = cli_.CopyTask("block_sum");
  }

  [[nodiscard]] std::filesystem::path Candidate() const { return cli_.folder() / "candidate.cu"; }

  [[nodiscard]] Child Evaluate() const {
    return cli_.Start({"evaluate", task_, Candidate(), "--json"});
  }

  /// Inside the first call, as far as one can tell from here.
  static pid_t WaitFor(const Child& referee, const std::string& program) {
    for (int i = 0; i < 1200; ++i) {
      if (const auto pid = ChildNamed(referee.pid(), program)) {
        std::this_thread::sleep_for(milliseconds(1500));
        return *pid;
      }
      std::this_thread::sleep_for(milliseconds(50));
    }
    ADD_FAILURE() << program << " was never started";
    return -1;
  }

  static std::string Verdict(Child& referee) {
    const auto result = referee.Wait();
    EXPECT_TRUE(result.ok());
    const auto json = Cli::Answer{.exit_code = 0, .out = result->out, .err = result->err}.Json();
    return json.is_object() ? json.value("verdict", "") : result->out + result->err;
  }

  Cli cli_;
  std::filesystem::path task_;
};

TEST_F(CrashTest, UndisturbedItIsFine) {
  Child referee = Evaluate();
  EXPECT_EQ(Verdict(referee), "ok");
}

// SIGKILL is what the kernel does to the largest process when memory is short.
TEST_F(CrashTest, AKilledRunnerRanOutOfMemory) {
  Child referee = Evaluate();
  const pid_t runner = WaitFor(referee, "kernelpro-runner");
  ASSERT_GT(runner, 0);
  ::kill(runner, SIGKILL);
  EXPECT_EQ(Verdict(referee), "out_of_memory");
  EXPECT_THAT(LeftoverProcesses(), ::testing::IsEmpty());
}

TEST_F(CrashTest, AStoppedRunnerRunsIntoTheTimeLimit) {
  Child referee = Evaluate();
  const pid_t runner = WaitFor(referee, "kernelpro-runner");
  ASSERT_GT(runner, 0);
  ::kill(runner, SIGSTOP);
  EXPECT_EQ(Verdict(referee), "timeout");
  EXPECT_NE(::kill(runner, 0), 0) << "a stopped process is killed like any other";
  EXPECT_THAT(LeftoverProcesses(), ::testing::IsEmpty());
}

TEST_F(CrashTest, AKilledGpuIsOurFailure) {
  Child referee = Evaluate();
  const pid_t gpu = WaitFor(referee, "kernelpro-emulated-gpu");
  ASSERT_GT(gpu, 0);
  ::kill(gpu, SIGKILL);
  EXPECT_EQ(Verdict(referee), "infrastructure_error");
  EXPECT_THAT(LeftoverProcesses(), ::testing::IsEmpty());
}

TEST_F(CrashTest, AKilledRefereeLeavesNothing) {
  Child referee = Evaluate();
  const pid_t runner = WaitFor(referee, "kernelpro-runner");
  ASSERT_GT(runner, 0);
  ::kill(runner, SIGSTOP);  // The hard case: it cannot notice anything by itself.
  ::kill(referee.pid(), SIGKILL);
  EXPECT_FALSE(referee.RunsAfter(std::chrono::seconds(5)));
  EXPECT_THAT(LeftoverProcesses(), ::testing::IsEmpty());
  // Its new parent may not have collected it yet.
  const std::string stat = Slurp("/proc/" + std::to_string(runner) + "/stat");
  EXPECT_TRUE(stat.empty() || stat.find(") Z") != std::string::npos) << stat;
}

}  // namespace
}  // namespace kernelpro::e2e
