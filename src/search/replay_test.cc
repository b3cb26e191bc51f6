// SPDX-License-Identifier: Apache-2.0
#include "search/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "propose/replay/replay_proposer.h"
#include "search/agent_run.h"
#include "search/record.h"
#include "search/testing/toy_run.h"

namespace kernelpro::search {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ReplayTest : public testing::ToyRunTest {
 protected:
  /// What an agent made: it went on elsewhere before it mended a wrong kernel, gave another up, and
  /// judged its kernels in another order than it wrote them.
  std::vector<store::NodeRecord> AgentsTree() {
    const auto store = OpenRun("agent");
    const auto policy = MakePolicy("mcts").value();
    store::NodeRecord root;
    root.action = "seed";
    root.source = "s";
    root.content = ContentKey({"s", {}});
    EXPECT_TRUE(store->AddNode(root, std::nullopt).ok());
    AgentRun run(*store, *policy, 1);
    EXPECT_TRUE(run.Load().ok());
    const auto submit = [&](store::NodeId parent, const std::string& source) {
      Submission s;
      s.parent = parent;
      s.candidate = {source, {"-flag of " + source}};
      s.action = "made_" + source;
      s.reason = "because";
      s.finding = parent == 1 ? "slow.s" : "";
      s.origin = "agent";
      EXPECT_TRUE(run.Submit(s).ok());
    };
    EXPECT_TRUE(run.Evaluate(1, assessor, {}).ok());
    submit(1, "s.w1");    // 2
    submit(1, "s.t500");  // 3
    submit(3, "s.t400");  // 4
    submit(1, "s.u");     // 5
    submit(2, "s.t300");  // 6: mends 2
    submit(4, "s.w2");    // 7: given up
    submit(6, "s.t200");  // 8
    submit(3, "s.t450");  // 9
    for (const store::NodeId id : {2, 6, 3, 8, 4, 5, 9, 7}) {
      EXPECT_TRUE(run.Evaluate(id, assessor, {}).ok());
    }
    return store->Nodes().value();
  }

  Result<SearchResult> TryReplay(const std::vector<store::NodeRecord>& recorded,
                                 std::uint32_t evaluations, std::uint32_t mended) {
    Forget();
    const auto store = OpenRun("replay");
    const auto order = MakeRecordedOrder(recorded);
    const auto replay = MakeReplay(recorded);
    auto result = RunSearch({task, *store, assessor, *replay, *order, clock, observer}, {"s", {}},
                            {.evaluations = evaluations, .repairs = mended}, {});
    nodes = store->Nodes().value();
    return result;
  }

  std::vector<store::NodeRecord> Replay(const std::vector<store::NodeRecord>& recorded,
                                        std::uint32_t evaluations = 100) {
    const auto result = TryReplay(recorded, evaluations, 0);
    EXPECT_TRUE(result.ok()) << result.error().message;
    return nodes;
  }
};

TEST_F(ReplayTest, AnAgentsTreeIsMadeAgain) {
  const auto recorded = AgentsTree();
  const auto replayed = Replay(recorded);
  EXPECT_THAT(CompareTrees(recorded, replayed, true), IsEmpty());
  ASSERT_EQ(replayed.size(), 9U);
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    EXPECT_EQ(replayed[i].flags, recorded[i].flags);
    EXPECT_EQ(replayed[i].reason, recorded[i].reason);
    EXPECT_EQ(replayed[i].finding, recorded[i].finding);
    EXPECT_EQ(replayed[i].origin, recorded[i].origin);
    EXPECT_EQ(replayed[i].feedback, recorded[i].feedback);
  }
}

TEST_F(ReplayTest, ADriverThatMendsOnItsOwnIsNoticed) {
  const auto result = TryReplay(AgentsTree(), 100, 2);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(result.error().message, HasSubstr("diverges at node"));
}

TEST_F(ReplayTest, AReplayThatWasStoppedGoesOn) {
  const auto recorded = AgentsTree();
  EXPECT_EQ(Replay(recorded, 4).size(), 4U);
  EXPECT_THAT(CompareTrees(recorded, Replay(recorded), true), IsEmpty());
}

TEST_F(ReplayTest, AnotherKernelInThePlaceOfAParentIsNamed) {
  auto recorded = AgentsTree();
  const auto proposer_of_it = MakeReplay(recorded);
  const Candidate other{"another seed", {}};
  const Diagnosis nothing;
  const Profile empty;
  const auto ask = [&](store::NodeId node, const Candidate& parent) {
    return proposer_of_it->Propose(
        {.task = task, .parent = parent, .diagnosis = nothing, .profile = empty, .node = {node}},
        {});
  };
  EXPECT_THAT(ask(1, other).error().message, HasSubstr("node 1: the recorded run has another"));
  EXPECT_THAT(ask(77, other).error().message, HasSubstr("node 77: the recorded run has no such"));
  const Candidate other_flags{"s", {"-O0"}};
  EXPECT_FALSE(ask(1, other_flags).ok());
  const Candidate same{"s", {}};
  const auto answer = ask(1, same);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->proposals.at(0).candidate.source, "s.w1");
}

TEST_F(ReplayTest, EveryKindOfDifferenceIsNamed) {
  const auto recorded = AgentsTree();
  const auto differences = [&](const auto& change, bool same_device = true) {
    auto replayed = recorded;
    change(&replayed);
    return CompareTrees(recorded, replayed, same_device);
  };
  using Nodes = std::vector<store::NodeRecord>;
  EXPECT_THAT(differences([](Nodes*) {}), IsEmpty());
  EXPECT_THAT(differences([](Nodes* n) { (*n)[3].content = "x"; }),
              ElementsAre("node 4: another kernel"));
  EXPECT_THAT(differences([](Nodes* n) { (*n)[3].parent = 1; }),
              ElementsAre("node 4: was made of node 3, now of node 1"));
  EXPECT_THAT(differences([](Nodes* n) { (*n)[3].action = "x"; }),
              ElementsAre("node 4: was called made_s.t400, is x"));
  EXPECT_THAT(differences([](Nodes* n) {
                (*n)[3].verdict = "race";
                (*n)[3].verdict_reason = "two writers";
              }),
              ElementsAre("node 4: was ok, is race: two writers"));
  EXPECT_THAT(differences([](Nodes* n) {
                (*n)[3].done = false;
                (*n)[3].verdict = "";
              }),
              ElementsAre("node 4: was ok, is waiting"));
  const auto slower = [](Nodes* n) { (*n)[3].time_us = 400.001; };
  EXPECT_THAT(differences(slower), ElementsAre(HasSubstr("node 4: took 400 us, takes 400.001 us")));
  EXPECT_THAT(differences(slower, false), IsEmpty()) << "another device has other times";
  EXPECT_THAT(differences([](Nodes* n) { (*n)[3].time_us *= 1 + 1e-13; }), IsEmpty());
  EXPECT_THAT(differences([](Nodes* n) { n->resize(8); }),
              ElementsAre("9 nodes were recorded, 8 were made"));
  EXPECT_THAT(differences([](Nodes* n) { n->push_back(n->back()); }),
              ElementsAre("9 nodes were recorded, 10 were made"));
}

}  // namespace
}  // namespace kernelpro::search
