// SPDX-License-Identifier: Apache-2.0
#include "process/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "base/file.h"
#include "base/text.h"

namespace kernelpro {
namespace {

using std::chrono::milliseconds;
using End = ProcessResult::End;

ProcessSpec Shell(const std::string& script) {
  ProcessSpec spec;
  spec.argv = {"sh", "-c", script};
  return spec;
}

bool Alive(pid_t pid) {
  return ::kill(pid, 0) == 0;
}

/// A killed grandchild is reaped by init at its leisure; a zombie counts as gone.
bool GoneSoon(pid_t pid) {
  for (int i = 0; i < 200; ++i) {
    if (!Alive(pid)) {
      return true;
    }
    auto stat = ReadFile("/proc/" + std::to_string(pid) + "/stat");
    if (!stat.ok() || stat->find(") Z") != std::string::npos) {
      return true;
    }
    std::this_thread::sleep_for(milliseconds(10));
  }
  return false;
}

TEST(Process, OutputErrorCodeAndInput) {
  ProcessSpec spec = Shell("cat; echo oops >&2; exit 3");
  spec.input = std::string(300000, 'x');
  auto result = RunProcess(spec);
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->end, End::kExited);
  EXPECT_EQ(result->exit_code, 3);
  EXPECT_EQ(result->out, spec.input);
  EXPECT_EQ(result->err, "oops\n");
  EXPECT_GT(result->peak_rss_bytes, 100000U);
}

TEST(Process, MissingProgramIsAnError) {
  ProcessSpec spec;
  spec.argv = {"no-such-program-here"};
  auto result = RunProcess(spec);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kNotFound);
  EXPECT_NE(result.error().message.find("no-such-program-here"), std::string::npos);
}

TEST(Process, WallLimitKillsTheWholeGroup) {
  ProcessSpec spec = Shell("sleep 100 & echo $!; sleep 100");
  spec.limits.wall = milliseconds(300);
  auto result = RunProcess(spec);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->end, End::kTimedOut);
  EXPECT_NE(DescribeEnd(*result, spec.limits).find("0.3 s"), std::string::npos);
  long long grandchild = 0;
  ASSERT_TRUE(ParseInteger(Trim(result->out), &grandchild));
  EXPECT_TRUE(GoneSoon(static_cast<pid_t>(grandchild)));
}

TEST(Process, LeftoverOfAFinishedChildIsKilled) {
  auto result = RunProcess(Shell("sleep 100 & echo $!"));
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->Succeeded());
  long long grandchild = 0;
  ASSERT_TRUE(ParseInteger(Trim(result->out), &grandchild));
  EXPECT_TRUE(GoneSoon(static_cast<pid_t>(grandchild)));
}

TEST(Process, StopRequestCancels) {
  std::stop_source source;
  std::jthread stopper([&source] {
    std::this_thread::sleep_for(milliseconds(100));
    source.request_stop();
  });
  auto result = RunProcess(Shell("sleep 100"), source.get_token());
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->end, End::kCancelled);
}

TEST(Process, FloodIsCutAndDoesNotBlock) {
  ProcessSpec spec = Shell("head -c 5000000 /dev/zero; head -c 5000000 /dev/zero >&2");
  spec.limits.output_bytes = 1000;
  auto result = RunProcess(spec);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->Succeeded());
  EXPECT_TRUE(result->output_cut);
  EXPECT_EQ(result->out.size(), 1000U);
  EXPECT_EQ(result->err.size(), 1000U);
}

TEST(Process, LimitsHold) {
  ProcessSpec spec = Shell("head -c 100000 /dev/zero > big");
  auto folder = TemporaryFolder::Create("kp-process");
  spec.folder = folder->path();
  spec.limits.file_bytes = 4096;
  auto result = RunProcess(spec);
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(result->Succeeded());
  EXPECT_LE(std::filesystem::file_size(folder->path() / "big"), 4096U);
  spec.limits.file_bytes = 0;
  EXPECT_TRUE(RunProcess(spec)->Succeeded());
}

TEST(Process, CpuTimeIsLimitedAndWaitingIsNot) {
  ProcessSpec spec = Shell("while :; do :; done");
  spec.limits.cpu_seconds = 1;
  auto result = RunProcess(spec);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->end, End::kSignaled);
  EXPECT_EQ(DescribeEnd(*result, spec.limits), "used more than its limit of 1 s of CPU time");
  EXPECT_GE(result->cpu.count(), 500);
  ProcessSpec sleeper = Shell("sleep 1.5");
  sleeper.limits.cpu_seconds = 1;
  EXPECT_TRUE(RunProcess(sleeper)->Succeeded());
}

TEST(Process, OnlyNamedDescriptorsReachTheChild) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);  // Inheritable on purpose.
  ProcessSpec spec = Shell("ls /proc/self/fd | tr '\\n' ' '; echo hello >&7");
  spec.fds = {{ends[1], 7}};
  auto result = RunProcess(spec);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->out, "0 1 2 3 7 ");  // 3 is ls reading the folder.
  char got[6] = {};
  EXPECT_EQ(::read(ends[0], got, 5), 5);
  EXPECT_STREQ(got, "hello");
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(Process, EnvironmentIsReplaced) {
  ProcessSpec spec = Shell("env | grep -v -e ^PWD= -e ^_= -e ^SHLVL= -e ^OLDPWD=");
  spec.environment = std::vector<std::string>{"A=1", "PATH=/usr/bin:/bin"};
  EXPECT_EQ(RunProcess(spec)->out, "A=1\nPATH=/usr/bin:/bin\n");
}

TEST(Process, SignalIsNamed) {
  auto result = RunProcess(Shell("kill -SEGV $$"));
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(DescribeEnd(*result, {}), "was killed by signal 11 (SIGSEGV)");
}

TEST(Process, DestroyedChildIsGone) {
  pid_t pid = 0;
  {
    auto child = Child::Start(Shell("sleep 100"));
    ASSERT_TRUE(child.ok());
    pid = child->pid();
    EXPECT_TRUE(child->RunsAfter(milliseconds(20)));
    EXPECT_TRUE(Alive(pid));
  }
  EXPECT_FALSE(Alive(pid));
}

}  // namespace
}  // namespace kernelpro
