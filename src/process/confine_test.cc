// SPDX-License-Identifier: Apache-2.0
#include "process/confine.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/file.h"
#include "process/landlock.h"
#include "process/process.h"

namespace kernelpro {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

/// What the attempt printed, and what was on.
struct Attempt {
  std::string said;
  std::vector<ConfinementReport> measures;

  [[nodiscard]] bool On(std::string_view name) const {
    return std::ranges::any_of(measures, [&](const auto& m) { return m.name == name && m.on; });
  }
};

class ConfineTest : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = TemporaryFolder::Create("kp-confine");
    ASSERT_TRUE(folder.ok());
    folder_.emplace(std::move(*folder));
    const std::filesystem::path root = folder_->path();
    std::filesystem::create_directories(root / "private");
    std::filesystem::create_directories(root / "outside");
    ASSERT_TRUE(WriteFileAtomically(root / "outside" / "secret", "secret").ok());
    ASSERT_TRUE(WriteFileAtomically(root / "private" / "own", "own").ok());
  }

  [[nodiscard]] std::filesystem::path Path(const char* name) const {
    return folder_->path() / name;
  }

  [[nodiscard]] Confinement Usual() const {
    Confinement confinement = SystemConfinement();
    confinement.read_only.push_back(std::filesystem::path(KP_ATTEMPT).parent_path());
    confinement.read_write = {Path("private")};
    return confinement;
  }

  static Attempt Try(const std::string& what, const std::string& argument,
                     std::optional<Confinement> confinement) {
    ProcessSpec spec;
    spec.argv = {KP_ATTEMPT, what, argument};
    spec.confinement = std::move(confinement);
    spec.limits.wall = std::chrono::seconds(20);
    auto result = RunProcess(spec);
    EXPECT_TRUE(result.ok()) << result.error().message;
    if (!result) {
      return {};
    }
    EXPECT_TRUE(result->Succeeded()) << DescribeEnd(*result, spec.limits) << result->err;
    return {result->out, result->confinement};
  }

 private:
  std::optional<TemporaryFolder> folder_;
};

#define SKIP_WITHOUT_LANDLOCK(version)                                    \
  if (landlock::Version() < (version)) {                                  \
    GTEST_SKIP() << "skipped: this kernel has no Landlock " << (version); \
  }

TEST_F(ConfineTest, ReadsWhatIsListedAndNothingElse) {
  SKIP_WITHOUT_LANDLOCK(1);
  EXPECT_EQ(Try("read", Path("outside/secret"), {}).said, "done");
  EXPECT_EQ(Try("read", Path("outside/secret"), Usual()).said, "EACCES");
  EXPECT_EQ(Try("read", "/etc/passwd", Usual()).said, "EACCES");
  EXPECT_EQ(Try("read", Path("private/own"), Usual()).said, "done");
  EXPECT_EQ(Try("read", "/usr/bin/env", Usual()).said, "done");
  EXPECT_EQ(Try("read", "/proc/self/maps", Usual()).said, "done");
}

TEST_F(ConfineTest, WritesInThePrivateFolderOnly) {
  SKIP_WITHOUT_LANDLOCK(1);
  EXPECT_EQ(Try("write", Path("outside/new"), Usual()).said, "EACCES");
  EXPECT_EQ(Try("write", Path("outside/secret"), Usual()).said, "EACCES");
  EXPECT_EQ(Try("write", Path("private/new"), Usual()).said, "done");
  EXPECT_EQ(Try("write", "/dev/null", Usual()).said, "done");
}

TEST_F(ConfineTest, ALinkLeadsNowhere) {
  SKIP_WITHOUT_LANDLOCK(1);
  std::filesystem::create_symlink(Path("outside/secret"), Path("private/link"));
  std::filesystem::create_symlink(Path("private/own"), Path("outside/link"));
  EXPECT_EQ(Try("read", Path("private/link"), Usual()).said, "EACCES");
  EXPECT_EQ(Try("read", Path("outside/link"), Usual()).said, "done");
}

TEST_F(ConfineTest, DescendantsAreConfinedToo) {
  SKIP_WITHOUT_LANDLOCK(1);
  ProcessSpec spec;
  spec.argv = {"sh",
               "-c",
               "sh -c 'cat \"$1\"' x \"$1\"; echo then >\"$2\"",
               "x",
               Path("outside/secret"),
               Path("private/new")};
  spec.confinement = Usual();
  auto result = RunProcess(spec);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->out, "");
  EXPECT_THAT(result->err, HasSubstr("denied"));
  EXPECT_EQ(ReadFile(Path("private/new")).value(), "then\n");
}

TEST_F(ConfineTest, NoNetwork) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(listener, generic, size), 0);
  ASSERT_EQ(::listen(listener, 4), 0);
  ASSERT_EQ(::getsockname(listener, generic, &size), 0);
  const std::string port = std::to_string(ntohs(address.sin_port));

  EXPECT_EQ(Try("connect", port, {}).said, "done");
  const Attempt confined = Try("connect", port, Usual());
  EXPECT_TRUE(confined.On("no network"));
  EXPECT_NE(confined.said, "done");
  EXPECT_EQ(Try("pair", "", Usual()).said, "done");
  Confinement open = Usual();
  open.network = true;
  EXPECT_EQ(Try("connect", port, open).said, "done");
  ::close(listener);
}

TEST_F(ConfineTest, TheParentIsOutOfReach) {
  const std::string self = std::to_string(::getpid());
  EXPECT_EQ(Try("trace", self, Usual()).said, "EPERM");
  if (landlock::Version() >= 1) {
    EXPECT_EQ(Try("read", "/proc/" + self + "/mem", Usual()).said, "EACCES");
    EXPECT_EQ(Try("read", "/proc/" + self + "/environ", Usual()).said, "EACCES");
  }
}

TEST_F(ConfineTest, TheParentCannotBeSignalled) {
  SKIP_WITHOUT_LANDLOCK(6);
  const std::string self = std::to_string(::getpid());
  EXPECT_EQ(Try("signal", self, {}).said, "done");
  EXPECT_EQ(Try("signal", self, Usual()).said, "EPERM");
  EXPECT_EQ(Try("own", "", Usual()).said, "done");
}

TEST_F(ConfineTest, AForkBombIsLimited) {
  Confinement few = Usual();
  few.processes = 20;
  const Attempt bomb = Try("bomb", "60", few);
  if (!bomb.On("process limit")) {
    GTEST_SKIP() << "skipped: " << Describe(bomb.measures);
  }
  EXPECT_EQ(bomb.said, "EAGAIN");
  EXPECT_EQ(Try("bomb", "8", few).said, "done");
}

TEST_F(ConfineTest, ThreadsWorkAndSessionsDoNot) {
  EXPECT_EQ(Try("thread", "", Usual()).said, "done");
  EXPECT_EQ(Try("session", "", {}).said, "done");
  EXPECT_EQ(Try("session", "", Usual()).said, "EPERM");
}

TEST_F(ConfineTest, EveryMeasureIsReported) {
  const Attempt attempt = Try("thread", "", Usual());
  EXPECT_TRUE(attempt.On("seccomp"));
  EXPECT_EQ(attempt.On("landlock"), landlock::Version() >= 1);
  const std::string text = Describe(attempt.measures);
  EXPECT_THAT(text, HasSubstr("seccomp on"));
  EXPECT_THAT(text, AnyOf(HasSubstr("user namespace"), HasSubstr("name spaces")));
  EXPECT_TRUE(Try("thread", "", {}).measures.empty());
}

TEST_F(ConfineTest, AMissingProgramIsStillAnError) {
  ProcessSpec spec;
  spec.argv = {Path("private/own")};
  spec.confinement = Usual();
  auto result = RunProcess(spec);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kNotFound);
}

TEST_F(ConfineTest, WhatIsRequiredAndMissingIsAnError) {
  Confinement confinement = Usual();
  confinement.required = true;
  ProcessSpec spec;
  spec.argv = {KP_ATTEMPT, "thread", ""};
  spec.confinement = confinement;
  auto result = RunProcess(spec);
  if (landlock::Version() >= 1) {
    EXPECT_TRUE(result.ok());
  } else {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(result.error().message, HasSubstr("landlock off"));
  }
}

TEST_F(ConfineTest, APathThatDoesNotExistIsLeftOut) {
  Confinement confinement = Usual();
  confinement.read_only.emplace_back("/no/such/folder");
  const Attempt attempt = Try("read", Path("private/own"), confinement);
  EXPECT_EQ(attempt.said, "done");
  EXPECT_EQ(attempt.On("landlock"), landlock::Version() >= 1);
}

TEST_F(ConfineTest, TheIdentityStaysWhatItIs) {
  ProcessSpec spec;
  spec.argv = {"id", "-u"};
  spec.confinement = Usual();
  auto result = RunProcess(spec);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->out, std::to_string(::geteuid()) + "\n");
}

}  // namespace
}  // namespace kernelpro
