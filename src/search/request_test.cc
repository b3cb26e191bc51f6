// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "search/testing/toy_run.h"

/// What a proposer that is asked on demand is told. on_demand_test.cc shows that a resumed run
/// tells it the same.
namespace kernelpro::search {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Keeps what the last question about a node said; the request itself refers to what is gone.
class Listener : public testing::PlannedProposer {
 public:
  struct Heard {
    Candidate parent;
    Diagnosis diagnosis;
    Profile profile;
    NodeBrief node, best;
    std::string feedback, provenance, gpu;
    std::vector<NodeBrief> path, tried;
    std::vector<Lesson> memory;
    double seed_us = 0;
  };

  Result<Proposals> Propose(const ProposalRequest& r, const std::stop_token& stop) override {
    heard[r.node.node] = {r.parent,     r.diagnosis, r.profile, r.node,  r.best,   r.feedback,
                          r.provenance, r.gpu,       r.path,    r.tried, r.memory, r.seed_us};
    return PlannedProposer::Propose(r, stop);
  }

  std::map<store::NodeId, Heard> heard;
};

class RequestTest : public testing::ToyRunTest {
 protected:
  void Run(std::uint32_t evaluations) {
    const auto store = OpenRun("r");
    const auto policy = MakePolicy("greedy").value();
    const auto result =
        RunSearch({task, *store, assessor, listener, *policy, clock, observer}, {"s.t100", {"-O3"}},
                  {.evaluations = evaluations, .gpu = "toy gpu"}, {});
    ASSERT_TRUE(result.ok()) << result.error().message;
  }

  static std::vector<store::NodeId> Ids(const std::vector<NodeBrief>& briefs) {
    std::vector<store::NodeId> ids;
    for (const NodeBrief& brief : briefs) {
      ids.push_back(brief.node);
    }
    return ids;
  }

  Listener listener;
};

TEST_F(RequestTest, SaysWhereTheParentStands) {
  listener.plan["s.t100"] = {"t50"};
  listener.plan["s.t100.t50"] = {"t80", "t70"};
  Run(4);
  const Listener::Heard& heard = listener.heard.at(2);
  EXPECT_EQ(heard.parent.source, "s.t100.t50");
  EXPECT_EQ(heard.node.node, 2);
  EXPECT_EQ(heard.node.parent, 1);
  EXPECT_EQ(heard.node.action, "step_t50");
  EXPECT_EQ(heard.node.reason, "because of t50");
  EXPECT_EQ(heard.node.finding, "slow.t100");
  EXPECT_EQ(heard.node.verdict, "ok");
  EXPECT_EQ(heard.node.time_us, 50);
  EXPECT_THAT(Ids(heard.path), ElementsAre(1, 2));
  EXPECT_EQ(heard.path[0].action, "seed");
  EXPECT_THAT(Ids(heard.tried), ElementsAre(3));
  EXPECT_EQ(heard.tried[0].time_us, 80);
  EXPECT_EQ(heard.best.node, 2);
  EXPECT_EQ(heard.seed_us, 100);
  EXPECT_EQ(heard.provenance, "modelled");
  EXPECT_EQ(heard.gpu, "toy gpu");
  // The outcome of the finding that it answered is part of the feedback (outcome.h).
  EXPECT_THAT(heard.feedback, HasSubstr("LAST"));
  ASSERT_EQ(heard.diagnosis.findings.size(), 1U);
  EXPECT_EQ(heard.diagnosis.findings[0].id, "slow.t50") << "made again from the stored profile";
  ASSERT_EQ(heard.profile.kernels.size(), 1U);
  EXPECT_EQ(heard.profile.kernels[0].name, "s.t100.t50");
  std::vector<std::string> memory;
  for (const Lesson& lesson : heard.memory) {
    memory.push_back(std::string(Name(lesson.kind)) + " " + lesson.text);
  }
  EXPECT_THAT(memory,
              ElementsAre("fact made t50",
                          "win node 2, step_t50 (for slow.t100): the best so far, 2.000x of node 1 "
                          "(50 us modelled)",
                          "fact made t80",
                          "dead_end node 3, step_t80 (for slow.t50): slower, 0.625x of node 2 (80 "
                          "us modelled)"));
}

TEST_F(RequestTest, OfAWrongParentNothingIsSaidAboutSpeed) {
  listener.plan["s.t100"] = {"w"};
  Run(3);
  const Listener::Heard& heard = listener.heard.at(2);
  EXPECT_EQ(heard.node.verdict, "wrong_result");
  EXPECT_EQ(heard.node.verdict_reason, "reason of s.t100.w");
  EXPECT_EQ(heard.node.time_us, 0);
  EXPECT_EQ(heard.best.node, 1);
  EXPECT_TRUE(heard.diagnosis.findings.empty());
  EXPECT_TRUE(heard.profile.kernels.empty());
  EXPECT_EQ(heard.feedback, "");
  const Listener::Heard& root = listener.heard.at(1);
  EXPECT_EQ(root.parent.flags, std::vector<std::string>{"-O3"});
  EXPECT_EQ(root.diagnosis.findings.at(0).id, "slow.t100") << "the honest twin";
  EXPECT_EQ(root.feedback, "feedback of s.t100");
}

}  // namespace
}  // namespace kernelpro::search
