// SPDX-License-Identifier: Apache-2.0
#include "search/agent_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "search/record.h"
#include "search/testing/toy_run.h"

namespace kernelpro::search {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class AgentRunTest : public testing::ToyRunTest {
 protected:
  /// A run with a seed; it has its result unless `judged` is false.
  void Start(const std::string& seed = "s.t100", bool judged = true) {
    store = OpenRun("r");
    policy = MakePolicy("mcts").value();
    store::NodeRecord root;
    root.action = "seed";
    root.source = seed;
    root.content = ContentKey({seed, {}});
    ASSERT_TRUE(store->AddNode(root, std::nullopt).ok());
    Load();
    if (judged) {
      ASSERT_TRUE(run->Evaluate(store::kRoot, assessor, {}).ok());
    }
  }

  /// As another process would see it.
  void Load() {
    run = std::make_unique<AgentRun>(*store, *policy, 1);
    ASSERT_TRUE(run->Load().ok());
  }

  static Submission Of(store::NodeId parent, const std::string& source) {
    Submission s;
    s.parent = parent;
    s.candidate.source = source;
    s.action = "step";
    return s;
  }

  NodeId Judged(store::NodeId parent, const std::string& source) {
    const auto id = run->Submit(Of(parent, source));
    EXPECT_TRUE(id.ok());
    EXPECT_TRUE(run->Evaluate(*id, assessor, {}).ok());
    return *id;
  }

  void ExpectRefused(const Submission& submission, const std::string& why) {
    const auto id = run->Submit(submission);
    ASSERT_FALSE(id.ok()) << why;
    EXPECT_EQ(id.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(id.error().message, HasSubstr(why));
    EXPECT_EQ(store->Nodes()->size(), 1U);
  }

  std::unique_ptr<store::RunStore> store;
  std::unique_ptr<Policy> policy;
  std::unique_ptr<AgentRun> run;
};

TEST_F(AgentRunTest, ASubmissionIsKeptAsItCame) {
  Start();
  Submission s = Of(1, "s.a\n");
  s.candidate.flags = {"-O3"};
  s.action = "  tile_64x64 ";
  s.reason = "it \x1b[31mreuses\xff rows";
  s.finding = "slow.t100";
  s.origin = "somebody";
  const auto id = run->Submit(s);
  ASSERT_TRUE(id.ok()) << id.error().message;
  EXPECT_EQ(*id, 2);
  EXPECT_THAT(run->Pending(), ElementsAre(2));
  const store::NodeRecord node = store->Nodes().value()[1];
  EXPECT_EQ(node.parent, 1);
  EXPECT_EQ(node.source, "s.a\n");
  EXPECT_EQ(node.flags, std::vector<std::string>{"-O3"});
  EXPECT_EQ(node.action, "tile_64x64");
  EXPECT_EQ(node.reason, "it ?[31mreuses? rows");
  EXPECT_EQ(node.finding, "slow.t100");
  EXPECT_EQ(node.origin, "somebody");
  EXPECT_FALSE(node.done);
}

TEST_F(AgentRunTest, WhatCannotBeKeptIsRefused) {
  Start();
  ExpectRefused(Of(1, "s.t100"), "the kernel of node 1 already");
  ExpectRefused(Of(7, "s.a"), "no node 7");
  ExpectRefused(Of(0, "s.a"), "no node 0");
  ExpectRefused(Of(1, " \n"), "source is empty");
  Submission s = Of(1, "s.a");
  s.action = " ";
  ExpectRefused(s, "needs an action");
  s.action = std::string(121, 'a');
  ExpectRefused(s, "action has 121 bytes");
  s.action = "two\nlines";
  ExpectRefused(s, "action is one line");
  s.action = "a";
  s.reason = std::string(2001, 'r');
  ExpectRefused(s, "reason has 2001 bytes");
  s.reason = "";
  s.origin = std::string(121, 'o');
  ExpectRefused(s, "origin has 121 bytes");
  s.origin = "me\nnode 9 (x): ok";
  ExpectRefused(s, "origin is one line");
  s.origin = "";
  s.finding = "mem.unheard_of";
  ExpectRefused(s, "no finding 'mem.unheard_of'; it has slow.t100");

  s.finding = "slow.t100";
  s.action = std::string(120, 'a');
  s.reason = std::string(2000, 'r');
  EXPECT_TRUE(run->Submit(s).ok()) << "the honest twin, at its limits";
  Submission with_flags = Of(1, "s.t100");
  with_flags.candidate.flags = {"-O3"};
  EXPECT_TRUE(run->Submit(with_flags).ok()) << "other flags make another kernel";
}

TEST_F(AgentRunTest, NextNamesAParent) {
  Start("s.t100", false);
  EXPECT_EQ(run->Next().error().code, ErrorCode::kUnavailable);
  ASSERT_TRUE(run->Evaluate(1, assessor, {}).ok());
  const auto first = run->Next().value();
  EXPECT_EQ(first.node, 1);
  EXPECT_FALSE(first.repair);
  EXPECT_EQ(first.waiting, 0U);
  ASSERT_TRUE(run->Submit(Of(1, "s.a")).ok());
  EXPECT_EQ(run->Next()->waiting, 1U);
  Load();
  EXPECT_EQ(run->Next()->waiting, 1U);
}

TEST_F(AgentRunTest, AWrongKernelIsToBeMendedAndNotForever) {
  Start();
  const NodeId wrong = Judged(1, "s.w1");
  EXPECT_EQ(run->Next()->node, wrong);
  EXPECT_TRUE(run->Next()->repair);
  const NodeId again = Judged(wrong, "s.w1.w2");
  EXPECT_EQ(run->Next()->node, again);
  Load();
  EXPECT_EQ(run->Next()->node, again) << "another process says the same";
  Judged(again, "s.w1.w2.w3");
  EXPECT_EQ(run->Next()->node, 1) << "two repairs did not help";
  EXPECT_FALSE(run->Next()->repair);
}

TEST_F(AgentRunTest, WhatCannotBeJudgedIsNotWrong) {
  Start();
  for (const char* source : {"s.u", "s.i"}) {
    const NodeId id = Judged(1, source);
    EXPECT_FALSE(IsWrong(*run->state().Find(id))) << source;
    EXPECT_EQ(run->Next()->node, 1) << source;
    EXPECT_FALSE(run->Next()->repair) << source;
  }
  EXPECT_TRUE(IsWrong(*run->state().Find(Judged(1, "s.w"))));
}

TEST_F(AgentRunTest, AWrongSeedIsMendedItself) {
  Start("w");
  EXPECT_EQ(run->Next()->node, 1);
  EXPECT_TRUE(run->Next()->repair);
  Judged(1, "s.t50");
  EXPECT_EQ(run->Next()->node, 2);
  EXPECT_FALSE(run->Next()->repair);
}

TEST_F(AgentRunTest, AParentIsJudgedBeforeItsChildren) {
  Start();
  const NodeId parent = run->Submit(Of(1, "s.t50")).value();
  const NodeId child = run->Submit(Of(parent, "s.t40")).value();
  const Status early = run->Evaluate(child, assessor, {});
  ASSERT_FALSE(early.ok());
  EXPECT_THAT(early.error().message, HasSubstr("has no result yet"));
  EXPECT_THAT(run->Pending(), ElementsAre(parent, child)) << "oldest first";
  ASSERT_TRUE(run->Evaluate(parent, assessor, {}).ok());
  ASSERT_TRUE(run->Evaluate(child, assessor, {}).ok());
  EXPECT_THAT(run->Pending(), IsEmpty());
  EXPECT_EQ(run->Evaluate(child, assessor, {}).error().code, ErrorCode::kInvalidArgument)
      << "a node with a result keeps it";
  EXPECT_EQ(run->Evaluate(99, assessor, {}).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(AgentRunTest, StoppedInAnEvaluationTheNodeStillWaits) {
  Start();
  const NodeId id = run->Submit(Of(1, "s.t50")).value();
  std::stop_source source;
  assessor.source = &source;
  assessor.stop_at = assessor.assessed + 1;
  EXPECT_EQ(run->Evaluate(id, assessor, source.get_token()).error().code, ErrorCode::kCancelled);
  EXPECT_THAT(run->Pending(), ElementsAre(id));
  EXPECT_FALSE((*store->Nodes())[1].done);
  assessor.source = nullptr;
  EXPECT_TRUE(run->Evaluate(id, assessor, {}).ok());
  EXPECT_EQ((*store->Nodes())[1].time_us, 50);
}

TEST_F(AgentRunTest, AMeasurementNeverChangesTheTree) {
  Start();
  const NodeId id = Judged(1, "s.t50");
  const NodeId waiting = run->Submit(Of(1, "s.t60")).value();
  const auto before = store->Nodes().value();

  struct Gpu : testing::PathAssessor {
    Result<Assessment> Assess(const Candidate& candidate, const std::stop_token& stop) override {
      auto a = PathAssessor::Assess(candidate, stop);
      a->evaluation.time_provenance = Provenance::kMeasured;
      if (broken) {
        a->evaluation.verdict = Verdict::kRace;
        a->evaluation.reason = "it raced";
      }
      return a;
    }

    bool broken = false;
  };

  Gpu gpu;
  const DeviceInfo device{.id = "cuda:0", .title = "a GPU"};
  ASSERT_TRUE(run->Measure(id, gpu, device, {}).ok());
  gpu.broken = true;
  ASSERT_TRUE(run->Measure(waiting, gpu, device, {}).ok());
  EXPECT_EQ(run->Measure(99, gpu, device, {}).error().code, ErrorCode::kInvalidArgument);
  const auto kept = store->Measurements().value();
  ASSERT_EQ(kept.size(), 2U);
  EXPECT_EQ(kept[0].node, id);
  EXPECT_EQ(kept[0].device, "cuda:0");
  EXPECT_EQ(kept[0].gpu, "a GPU");
  EXPECT_EQ(kept[0].verdict, "ok");
  EXPECT_EQ(kept[0].time_us, 50);
  EXPECT_EQ(kept[0].provenance, "measured");
  EXPECT_EQ(nlohmann::json::parse(kept[0].evaluation)["verdict"], "ok");
  EXPECT_EQ(kept[1].verdict, "race");
  EXPECT_EQ(kept[1].time_us, 0);
  EXPECT_EQ(kept[1].verdict_reason, "it raced");
  const auto after = store->Nodes().value();
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(after[i].done, before[i].done);
    EXPECT_EQ(after[i].verdict, before[i].verdict);
    EXPECT_EQ(after[i].provenance, before[i].provenance);
  }
  EXPECT_EQ(run->state().tree().nodes().size(), 2U);
  EXPECT_THAT(run->Pending(), ElementsAre(waiting));
}

TEST_F(AgentRunTest, NotesAreAppended) {
  Start();
  Judged(1, "s.t50");
  ASSERT_TRUE(run->Note({Lesson::Kind::kFact, " rows are\x07 short ", 0}).ok());
  ASSERT_TRUE(run->Note({Lesson::Kind::kDeadEnd, "padding", 1}).ok());
  EXPECT_FALSE(run->Note({Lesson::Kind::kFact, " ", 0}).ok());
  EXPECT_FALSE(run->Note({Lesson::Kind::kFact, "x", 9}).ok());
  const auto kept = store->Lessons().value();
  ASSERT_EQ(kept.size(), 2U);
  EXPECT_EQ(kept[0].kind, "fact");
  EXPECT_EQ(kept[0].text, "rows are? short");
  EXPECT_EQ(kept[0].node, 2) << "as old as the run was";
  std::vector<std::string> memory;
  const auto lessons = run->Memory().value();
  for (const Lesson& lesson : lessons) {
    memory.push_back(lesson.text);
  }
  EXPECT_THAT(memory, ElementsAre("padding", HasSubstr("node 2, step"), "rows are? short"));
}

TEST_F(AgentRunTest, ARunWithoutASeedCannotBeLoaded) {
  store = OpenRun("r");
  policy = MakePolicy("mcts").value();
  AgentRun empty(*store, *policy, 1);
  EXPECT_EQ(empty.Load().error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace kernelpro::search
