// SPDX-License-Identifier: Apache-2.0
#include "store/run_store.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/file.h"

namespace kernelpro::store {
namespace {

namespace fs = std::filesystem;

NodeRecord Node(NodeId parent, const std::string& content) {
  NodeRecord node;
  node.parent = parent;
  node.action = "pad_shared(tile)";
  node.reason = "it's \"quoted\"; DROP TABLE node";
  node.source = std::string("a\0b", 3) + content;
  node.flags = {"-maxrregcount=32"};
  node.content = content;
  return node;
}

class RunStoreTest : public ::testing::Test {
 protected:
  RunStoreTest() : temporary_(TemporaryFolder::Create("kp-store").value()) {}

  [[nodiscard]] fs::path folder() const { return temporary_.path() / "run"; }

 private:
  TemporaryFolder temporary_;
};

TEST_F(RunStoreTest, KeepsEverythingAcrossReopening) {
  {
    auto store = RunStore::Create(folder(), {{"task", "t"}, {"seed", "7"}});
    ASSERT_TRUE(store.ok()) << store.error().message;
    const NodeId root = *(*store)->AddNode(Node(0, "x"), std::nullopt);
    EXPECT_EQ(root, kRoot);
    NodeResult result;
    result.node = root;
    result.verdict = "ok";
    result.time_us = 12.5;
    result.provenance = "modelled";
    ProposalRecord proposal;
    proposal.action = "unroll(4)";
    proposal.prior = 0.25;
    proposal.content = "y";
    result.proposals = {proposal};
    result.declined = {{0, "swap_thread_roles", "one-dimensional block"}};
    ASSERT_TRUE((*store)->Finish(result).ok());
  }
  auto store = RunStore::Open(folder());
  ASSERT_TRUE(store.ok()) << store.error().message;
  EXPECT_EQ((*store)->Fact("seed"), "7");
  EXPECT_EQ((*store)->Fact("nothing"), std::nullopt);
  const auto nodes = (*store)->Nodes();
  ASSERT_EQ(nodes->size(), 1U);
  EXPECT_TRUE((*nodes)[0].done);
  EXPECT_EQ((*nodes)[0].source, Node(0, "x").source) << "a NUL byte must survive";
  EXPECT_EQ((*nodes)[0].reason, Node(0, "x").reason);
  EXPECT_EQ((*nodes)[0].flags, Node(0, "x").flags);
  EXPECT_EQ((*nodes)[0].time_us, 12.5);
  const auto proposals = (*store)->Proposals(kRoot);
  ASSERT_EQ(proposals->size(), 1U);
  EXPECT_FALSE((*proposals)[0].taken);
  EXPECT_EQ((*(*store)->Declined(kRoot))[0].why, "one-dimensional block");
  ASSERT_TRUE((*store)->AddNode(Node(kRoot, "y"), (*proposals)[0].id).ok());
  EXPECT_TRUE((*(*store)->Proposals(kRoot))[0].taken);
}

TEST_F(RunStoreTest, AResultIsWrittenOnce) {
  auto store = RunStore::Create(folder(), {});
  const NodeId id = *(*store)->AddNode(Node(0, "x"), std::nullopt);
  NodeResult result;
  result.node = id;
  result.verdict = "ok";
  ASSERT_TRUE((*store)->Finish(result).ok());
  result.verdict = "timeout";
  ASSERT_TRUE((*store)->Finish(result).ok());
  EXPECT_EQ((*(*store)->Nodes())[0].verdict, "ok");
}

TEST_F(RunStoreTest, TwoNodesWithOneContentAreRefused) {
  auto store = RunStore::Create(folder(), {});
  ASSERT_TRUE((*store)->AddNode(Node(0, "x"), std::nullopt).ok());
  EXPECT_FALSE((*store)->AddNode(Node(1, "x"), std::nullopt).ok());
  EXPECT_EQ((*store)->Nodes()->size(), 1U);
}

TEST_F(RunStoreTest, SaysWhyItCannotOpen) {
  EXPECT_EQ(RunStore::Open(folder()).error().code, ErrorCode::kNotFound);
  {
    auto store = RunStore::Create(folder(), {});
    ASSERT_TRUE(store.ok());
    EXPECT_EQ(RunStore::Open(folder()).error().code, ErrorCode::kUnavailable);
    ASSERT_TRUE((*store)->SetFact("format", "99").ok());
  }
  EXPECT_EQ(RunStore::Create(folder(), {}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(RunStore::Open(folder()).error().message.find("99"), std::string::npos);
  ASSERT_TRUE(WriteFileAtomically(folder() / "run.db", std::string(5000, 'g')).ok());
  fs::remove(folder() / "run.db-wal");
  EXPECT_FALSE(RunStore::Open(folder()).ok());
  EXPECT_EQ(RunStore::Create("/proc/nope", {}).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(RunStoreTest, AKilledWriterLosesNoFinishedNode) {
  {
    ASSERT_TRUE(RunStore::Create(folder(), {}).ok());
  }
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    auto store = RunStore::Open(folder());
    for (int i = 0;; ++i) {
      NodeResult result;
      result.node = *(*store)->AddNode(Node(0, std::to_string(i)), std::nullopt);
      result.verdict = "ok";
      if (!(*store)->Finish(result).ok() || ::write(ends[1], &i, sizeof i) != sizeof i) {
        ::_exit(1);
      }
    }
  }
  int last = -1;
  while (last < 20) {
    ASSERT_EQ(::read(ends[0], &last, sizeof last), static_cast<ssize_t>(sizeof last));
  }
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  ::close(ends[1]);
  for (int i = 0; ::read(ends[0], &i, sizeof i) > 0;) {
    last = i;
  }
  ::close(ends[0]);
  auto store = RunStore::Open(folder());
  ASSERT_TRUE(store.ok()) << store.error().message;
  int done = 0;
  const auto nodes = (*store)->Nodes();
  for (const NodeRecord& node : *nodes) {
    done += node.done ? 1 : 0;
  }
  EXPECT_GE(done, last + 1);
}

}  // namespace
}  // namespace kernelpro::store
