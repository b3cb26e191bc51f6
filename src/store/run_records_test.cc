// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <optional>

#include "base/file.h"
#include "store/database.h"
#include "store/run_store.h"

/// What models, agents and second devices add to a run, and reading a run that somebody else holds.
namespace kernelpro::store {
namespace {

namespace fs = std::filesystem;

using ::testing::HasSubstr;

NodeRecord Node(NodeId parent, const std::string& content) {
  NodeRecord node;
  node.parent = parent;
  node.action = "act " + content;
  node.source = "source " + content;
  node.content = content;
  return node;
}

ExchangeRecord Question(NodeId node, const std::string& purpose) {
  ExchangeRecord e;
  e.node = node;
  e.purpose = purpose;
  e.hash = "hash of " + purpose;
  e.request = R"({"messages":[]})";
  e.input_tokens = 100;
  e.output_tokens = 1000;
  e.cost = 0.25;
  return e;
}

class RunRecordsTest : public ::testing::Test {
 protected:
  RunRecordsTest() : temporary_(TemporaryFolder::Create("kp-records").value()) {}

  [[nodiscard]] fs::path folder() const { return temporary_.path() / "run"; }

  /// A run with a root that has a result.
  [[nodiscard]] std::unique_ptr<RunStore> NewRun() const {
    auto store = RunStore::Create(folder(), {{"task", "t"}}).value();
    EXPECT_EQ(store->AddNode(Node(0, "root"), std::nullopt).value(), kRoot);
    NodeResult result;
    result.node = kRoot;
    result.verdict = "ok";
    result.time_us = 10;
    EXPECT_TRUE(store->Finish(result).ok());
    return store;
  }

  [[nodiscard]] Database Beside() const {
    return std::move(Database::Open(folder() / "run.db", false)).value();
  }

 private:
  TemporaryFolder temporary_;
};

TEST_F(RunRecordsTest, AnExpansionIsKeptWhole) {
  const auto store = NewRun();
  const std::int64_t exchange = store->AddExchange(Question(kRoot, "coder")).value();
  const std::int64_t elsewhere = store->AddExchange(Question(7, "coder")).value();
  Expansion expansion;
  expansion.node = kRoot;
  ProposalRecord proposal;
  proposal.action = "tile";
  proposal.reason = "reuse";
  proposal.finding = "mem.reuse";
  proposal.prior = 0.75;
  proposal.source = "tiled";
  proposal.flags = {"-O3"};
  proposal.content = "c";
  proposal.origin = "model-1";
  expansion.proposals = {proposal};
  expansion.declined = {{kRoot, "fuse", "nothing to fuse with"}};
  expansion.lessons = {{0, kRoot, "fact", "rows are contiguous"}};
  ASSERT_TRUE(store->AddExpansion(expansion).ok());

  const auto proposals = store->Proposals(kRoot).value();
  ASSERT_EQ(proposals.size(), 1U);
  EXPECT_EQ(proposals[0].node, kRoot);
  EXPECT_EQ(proposals[0].action, "tile");
  EXPECT_EQ(proposals[0].reason, "reuse");
  EXPECT_EQ(proposals[0].finding, "mem.reuse");
  EXPECT_EQ(proposals[0].prior, 0.75);
  EXPECT_EQ(proposals[0].flags, std::vector<std::string>{"-O3"});
  EXPECT_EQ(proposals[0].origin, "model-1");
  EXPECT_FALSE(proposals[0].taken);
  ASSERT_EQ(store->Declined(kRoot)->size(), 1U);
  EXPECT_EQ((*store->Declined(kRoot))[0].why, "nothing to fuse with");
  ASSERT_EQ(store->Lessons()->size(), 1U);
  EXPECT_EQ((*store->Lessons())[0].kind, "fact");
  EXPECT_EQ((*store->Lessons())[0].text, "rows are contiguous");
  const auto exchanges = store->Exchanges().value();
  ASSERT_EQ(exchanges.size(), 2U);
  for (const ExchangeRecord& e : exchanges) {
    EXPECT_EQ(e.used, e.id == exchange) << "only what was asked about this node is used up";
    EXPECT_TRUE(e.id == exchange || e.id == elsewhere);
  }
}

TEST_F(RunRecordsTest, BarrenAnswersAreCountedInARow) {
  const auto store = NewRun();
  const auto barren = [&] { return store->Nodes().value()[0].barren; };
  Expansion nothing;
  nothing.node = kRoot;
  nothing.barren = true;
  ASSERT_TRUE(store->AddExpansion(nothing).ok());
  ASSERT_TRUE(store->AddExpansion(nothing).ok());
  EXPECT_EQ(barren(), 2);
  Expansion something = nothing;
  something.barren = false;
  ASSERT_TRUE(store->AddExpansion(something).ok());
  EXPECT_EQ(barren(), 0);
  ASSERT_TRUE(store->AddExpansion(nothing).ok());
  EXPECT_EQ(barren(), 1);
}

TEST_F(RunRecordsTest, AnExpansionIsAllOrNothing) {
  const auto store = NewRun();
  ASSERT_TRUE(store->AddExchange(Question(kRoot, "coder")).ok());
  Expansion expansion;
  expansion.node = kRoot;
  expansion.proposals.resize(1);
  expansion.proposals[0].content = "c";
  expansion.declined = {{kRoot, "a", "b"}};
  expansion.lessons = {{0, kRoot, "fact", "f"}};
  // The last of its statements fails.
  ASSERT_TRUE(Beside()
                  .Run("CREATE TRIGGER fail BEFORE UPDATE OF barren ON node BEGIN SELECT "
                       "RAISE(ABORT, 'planted'); END")
                  .ok());
  const Status failed = store->AddExpansion(expansion);
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.error().message, HasSubstr("planted"));
  EXPECT_TRUE(store->Proposals(kRoot)->empty());
  EXPECT_TRUE(store->Declined(kRoot)->empty());
  EXPECT_TRUE(store->Lessons()->empty());
  EXPECT_FALSE((*store->Exchanges())[0].used);

  ASSERT_TRUE(Beside().Run("DROP TRIGGER fail").ok());
  ASSERT_TRUE(store->AddExpansion(expansion).ok());
  EXPECT_EQ(store->Proposals(kRoot)->size(), 1U);
  EXPECT_TRUE((*store->Exchanges())[0].used);
}

TEST_F(RunRecordsTest, AResultThatCameLateBringsNoProposals) {
  const auto store = NewRun();
  NodeResult late;
  late.node = kRoot;
  late.verdict = "timeout";
  late.proposals.resize(1);
  late.declined = {{kRoot, "a", "b"}};
  ASSERT_TRUE(store->Finish(late).ok());
  EXPECT_EQ((*store->Nodes())[0].verdict, "ok");
  EXPECT_TRUE(store->Proposals(kRoot)->empty());
  EXPECT_TRUE(store->Declined(kRoot)->empty());
}

TEST_F(RunRecordsTest, AQuestionIsOnDiskBeforeTheProcessDies) {
  NewRun().reset();
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    auto store = RunStore::Open(folder());
    const bool kept = store && (*store)->AddExchange(Question(kRoot, "planner"));
    const char byte = kept ? 'y' : 'n';
    if (::write(ends[1], &byte, 1) == 1) {
      ::pause();
    }
    ::_exit(1);
  }
  char byte = 0;
  ASSERT_EQ(::read(ends[0], &byte, 1), 1);
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
  ASSERT_EQ(byte, 'y');
  const auto store = RunStore::Open(folder());
  ASSERT_TRUE(store.ok()) << store.error().message;
  const auto exchanges = (*store)->Exchanges().value();
  ASSERT_EQ(exchanges.size(), 1U);
  EXPECT_EQ(exchanges[0].state, "sent");
  EXPECT_EQ(exchanges[0].node, kRoot);
  EXPECT_EQ(exchanges[0].purpose, "planner");
  EXPECT_EQ(exchanges[0].hash, "hash of planner");
  EXPECT_EQ(exchanges[0].request, R"({"messages":[]})");
  EXPECT_EQ(exchanges[0].input_tokens, 100) << "its upper bound, for nobody saw its end";
  EXPECT_EQ(exchanges[0].output_tokens, 1000);
  EXPECT_EQ(exchanges[0].cost, 0.25);
  EXPECT_FALSE(exchanges[0].used);
}

TEST_F(RunRecordsTest, FinishingAnExchangeTouchesThatOneOnly) {
  const auto store = NewRun();
  ExchangeRecord first = Question(kRoot, "planner");
  first.id = store->AddExchange(first).value();
  ASSERT_TRUE(store->AddExchange(Question(kRoot, "coder")).ok());
  first.state = "answered";
  first.response = R"({"text":"a"})";
  first.model = "model-1";
  first.input_tokens = 90;
  first.output_tokens = 20;
  first.cost = 0.01;
  first.request = "what is never written twice";
  ASSERT_TRUE(store->FinishExchange(first).ok());
  const auto exchanges = store->Exchanges().value();
  ASSERT_EQ(exchanges.size(), 2U);
  EXPECT_EQ(exchanges[0].state, "answered");
  EXPECT_EQ(exchanges[0].response, R"({"text":"a"})");
  EXPECT_EQ(exchanges[0].model, "model-1");
  EXPECT_EQ(exchanges[0].input_tokens, 90);
  EXPECT_EQ(exchanges[0].output_tokens, 20);
  EXPECT_EQ(exchanges[0].cost, 0.01);
  EXPECT_EQ(exchanges[0].request, R"({"messages":[]})");
  EXPECT_EQ(exchanges[1].state, "sent");
  EXPECT_EQ(exchanges[1].cost, 0.25);
}

TEST_F(RunRecordsTest, AMeasurementReplacesThatOfTheSameNodeAndDevice) {
  const auto store = NewRun();
  ASSERT_EQ(store->AddNode(Node(kRoot, "child"), std::nullopt).value(), 2);
  const auto set = [&](NodeId node, const std::string& device, double time_us) {
    return store->SetMeasurement({.node = node,
                                  .device = device,
                                  .gpu = "title of " + device,
                                  .verdict = "ok",
                                  .verdict_reason = "",
                                  .time_us = time_us,
                                  .provenance = "measured",
                                  .evaluation = "{}"});
  };
  ASSERT_TRUE(set(2, "cuda:0", 5).ok());
  ASSERT_TRUE(set(kRoot, "cuda:0", 50).ok());
  ASSERT_TRUE(set(kRoot, "cuda:1", 40).ok());
  ASSERT_TRUE(set(kRoot, "cuda:0", 60).ok());
  EXPECT_FALSE(set(99, "cuda:0", 1).ok()) << "there is no such node";
  const auto kept = store->Measurements().value();
  ASSERT_EQ(kept.size(), 3U);
  EXPECT_EQ(kept[0].device, "cuda:0");
  EXPECT_EQ(kept[0].node, kRoot);
  EXPECT_EQ(kept[0].time_us, 60);
  EXPECT_EQ(kept[1].node, 2);
  EXPECT_EQ(kept[1].time_us, 5);
  EXPECT_EQ(kept[2].device, "cuda:1");
  EXPECT_EQ(kept[2].gpu, "title of cuda:1");
  EXPECT_EQ((*store->Nodes())[0].time_us, 10) << "never part of the run's own ranking";
}

TEST_F(RunRecordsTest, IsReadBesideTheProcessThatHoldsIt) {
  EXPECT_EQ(RunStore::OpenForReading(folder()).error().code, ErrorCode::kNotFound);
  const auto holder = NewRun();
  EXPECT_EQ(RunStore::Open(folder()).error().code, ErrorCode::kUnavailable);
  const auto reader = RunStore::OpenForReading(folder());
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  EXPECT_EQ((*reader)->Nodes()->size(), 1U);
  ASSERT_TRUE(holder->AddNode(Node(kRoot, "later"), std::nullopt).ok());
  EXPECT_EQ((*reader)->Nodes()->size(), 2U);
  EXPECT_EQ((*reader)->Fact("task"), "t");
}

/// Names and bytes of all files of a folder.
std::map<std::string, std::string> Snapshot(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    files[entry.path().filename()] = ReadFile(entry.path()).value();
  }
  return files;
}

/// Runs `work` in a process that may not write where others may not: root could write anywhere.
int AsSomebodyElse(const std::function<bool()>& work) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    constexpr unsigned kNobody = 65534;
    const bool dropped = ::getuid() != 0 || (::setgid(kNobody) == 0 && ::setuid(kNobody) == 0);
    ::_exit(!dropped ? 2 : work() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(RunRecordsTest, ACopyNeedsNoRightToWriteAndTouchesNothing) {
  const auto holder = NewRun();
  ASSERT_TRUE(fs::exists(folder() / "run.db-wal"));
  {  // The planted loss: without the log beside it the database does not have the node.
    const auto half = TemporaryFolder::Create("kp-half").value();
    fs::copy_file(folder() / "run.db", half.path() / "run.db");
    const auto store = RunStore::OpenCopy(half.path());
    ASSERT_TRUE(!store.ok() || (*store)->Nodes()->empty());
  }
  const auto before = Snapshot(folder());
  fs::permissions(folder().parent_path(), fs::perms(0755));
  for (const char* name : {"run.db", "run.db-wal"}) {
    fs::permissions(folder() / name, fs::perms(0444));
  }
  fs::permissions(folder(), fs::perms(0555));
  EXPECT_EQ(AsSomebodyElse([&] {
              const auto copy = RunStore::OpenCopy(folder());
              return copy && (*copy)->Nodes()->size() == 1 && (*copy)->Fact("task") == "t" &&
                     (*copy)->folder() == folder() && (*copy)->SetFact("task", "other").ok();
            }),
            0);
  EXPECT_EQ(Snapshot(folder()), before);
  EXPECT_EQ(holder->Fact("task"), "t");

  fs::permissions(folder() / "run.db-wal", fs::perms::none);
  EXPECT_EQ(AsSomebodyElse([&] {
              const auto copy = RunStore::OpenCopy(folder());
              return !copy && copy.error().message.find("Permission denied") != std::string::npos &&
                     copy.error().message.find("run.db-wal") != std::string::npos;
            }),
            0);
  fs::permissions(folder(), fs::perms(0755));
}

/// Ends a process whatever the test does.
struct Killer {
  ~Killer() {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }

  pid_t pid;
};

TEST_F(RunRecordsTest, ACopyIsWholeWhileTheRunIsWritten) {
  NewRun().reset();
  const std::string large(64 << 10, 'x');  // the log is written back and begun anew often
  const pid_t pid = ::fork();
  if (pid == 0) {
    auto store = RunStore::Open(folder());
    for (int i = 2; i < 3000; ++i) {
      NodeRecord node = Node(kRoot, std::to_string(i));
      node.source = large + std::to_string(i);
      if (!store || !(*store)->AddNode(node, std::nullopt)) {
        ::_exit(1);
      }
    }
    ::_exit(0);
  }
  const Killer killer{pid};
  std::size_t most = 0;
  for (int copies = 0; copies < 40; ++copies) {
    const auto copy = RunStore::OpenCopy(folder());
    ASSERT_TRUE(copy.ok()) << copy.error().message;
    const auto nodes = (*copy)->Nodes();
    ASSERT_TRUE(nodes.ok()) << nodes.error().message;
    ASSERT_GE(nodes->size(), most) << "what was there once is lost";
    most = nodes->size();
    for (std::size_t i = 1; i < nodes->size(); ++i) {
      ASSERT_EQ((*nodes)[i].id, static_cast<NodeId>(i + 1)) << "a hole";
      ASSERT_EQ((*nodes)[i].source, large + std::to_string(i + 1));
    }
  }
  EXPECT_GT(most, 1U) << "nothing was written meanwhile";
}

}  // namespace
}  // namespace kernelpro::store
