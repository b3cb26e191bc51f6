// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "search/testing/toy_run.h"

/// The driver with a proposer that is asked for every child.
namespace kernelpro::search {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class OnDemandTest : public testing::ToyRunTest {
 protected:
  /// Some of everything: wrong kernels, repairs that help or do not, answers without a kernel,
  /// doubles.
  void PlanTrouble() {
    proposer.plan["s"] = {"a", "wa", "b", "c"};
    proposer.plan["s.a"] = {"wb", "x", "u", ""};
    proposer.plan["s.b"] = {"=s.a"};
    proposer.plan["s.wa"] = {"wc"};
    proposer.plan["s.wa.wc"] = {"fine"};
    proposer.plan["s.a.wb"] = {""};
  }

  [[nodiscard]] std::vector<store::DeclinedRecord> Declined(const std::string& run,
                                                            store::NodeId node) const {
    return OpenRun(run)->Declined(node).value();
  }
};

/// The question that was cut off is asked again, and one that got nothing new is asked again as it
/// stood: only the order of different questions is compared.
std::vector<std::string> Different(std::vector<std::string> requests) {
  requests.erase(std::unique(requests.begin(), requests.end()), requests.end());
  return requests;
}

TEST_F(OnDemandTest, SameSeedSameRun) {
  PlanTrouble();
  ASSERT_TRUE(Search("one", 20).ok());
  const auto sources = Sources();
  const auto requests = proposer.requests;
  ASSERT_EQ(sources.size(), 20U);
  Forget();
  ASSERT_TRUE(Search("two", 20).ok());
  EXPECT_EQ(Sources(), sources);
  EXPECT_EQ(proposer.requests, requests);
  Forget();
  ASSERT_TRUE(Search("three", 20, "mcts", 2).ok());
  EXPECT_NE(proposer.requests, requests) << "the seed is what a proposer draws from";
}

TEST_F(OnDemandTest, StoppedWhileJudgingEqualsUninterrupted) {
  PlanTrouble();
  ASSERT_TRUE(Search("whole", 16).ok());
  const auto whole = Sources();
  const auto requests = Different(proposer.requests);
  for (int at = 1; at <= 16; ++at) {
    Forget();
    std::stop_source cut;
    stop = cut;
    assessor.source = &cut;
    assessor.stop_at = at;
    const std::string run = "cut" + std::to_string(at);
    const auto stopped = Search(run, 16);
    ASSERT_TRUE(stopped.ok()) << stopped.error().message;
    EXPECT_EQ(stopped->stopped, Stopped::kRequested);
    assessor.source = nullptr;
    stop = std::stop_source();
    ASSERT_TRUE(Search(run, 16).ok());
    EXPECT_EQ(Sources(), whole) << "cut at " << at;
    EXPECT_EQ(Different(proposer.requests), requests) << "cut at " << at;
  }
}

TEST_F(OnDemandTest, StoppedWhileAskingEqualsUninterrupted) {
  PlanTrouble();
  ASSERT_TRUE(Search("whole", 16).ok());
  const auto whole = Sources();
  const auto requests = Different(proposer.requests);
  const auto asked = static_cast<int>(proposer.requests.size());
  for (const bool cut_off : {true, false}) {
    for (int at = 1; at <= asked; ++at) {
      Forget();
      std::stop_source cut;
      stop = cut;
      proposer.source = &cut;
      proposer.stop_at = at;
      proposer.cut_off = cut_off;
      const std::string run = (cut_off ? "cut" : "late") + std::to_string(at);
      const auto stopped = Search(run, 16);
      ASSERT_TRUE(stopped.ok()) << stopped.error().message;
      EXPECT_EQ(stopped->stopped, Stopped::kRequested);
      proposer.source = nullptr;
      stop = std::stop_source();
      ASSERT_TRUE(Search(run, 16).ok());
      EXPECT_EQ(Sources(), whole) << run;
      EXPECT_EQ(Different(proposer.requests), requests) << run;
    }
  }
}

TEST_F(OnDemandTest, ABudgetEndsTheRunAndItCanGoOn) {
  PlanTrouble();
  ASSERT_TRUE(Search("whole", 12).ok());
  const auto whole = Sources();
  Forget();
  proposer.fail_at = 5;
  proposer.fail_with = ErrorCode::kBudget;
  const auto stopped = Search("r", 12);
  ASSERT_TRUE(stopped.ok()) << stopped.error().message;
  EXPECT_EQ(stopped->stopped, Stopped::kBudget);
  EXPECT_EQ(stopped->why, "planted");
  EXPECT_LT(stopped->evaluated, 12U);
  EXPECT_EQ(stopped->best.verdict, "ok");
  proposer.fail_at = -1;
  const auto resumed = Search("r", 12);
  ASSERT_TRUE(resumed.ok());
  EXPECT_EQ(resumed->stopped, Stopped::kEvaluations);
  EXPECT_EQ(resumed->why, "");
  EXPECT_EQ(Sources(), whole);

  Forget();
  proposer.fail_at = 5;
  proposer.fail_with = ErrorCode::kUnavailable;
  EXPECT_EQ(Search("other", 12).error().code, ErrorCode::kUnavailable);
  proposer.fail_at = -1;
  ASSERT_TRUE(Search("other", 12).ok());
  EXPECT_EQ(Sources(), whole) << "any other error leaves a run that can go on as well";
}

TEST_F(OnDemandTest, WrongKernelsAreRepairedFirstAndNotForever) {
  proposer.plan["s"] = {"a", "w1"};
  proposer.plan["s.w1"] = {"w2"};
  proposer.plan["s.w1.w2"] = {"w3"};
  proposer.plan["s.a"] = {"w4", "x"};
  proposer.plan["s.a.w4"] = {"good"};
  for (const std::uint32_t allowed : {0U, 1U, 2U, 5U}) {
    Forget();
    repairs = allowed;
    ASSERT_TRUE(Search("r" + std::to_string(allowed), 14, "random").ok());
    std::map<store::NodeId, const store::NodeRecord*> by_id;
    std::uint32_t longest = 0;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      by_id[nodes[i].id] = &nodes[i];
      std::uint32_t wrong = 0;
      for (const auto* n = &nodes[i]; n->verdict == "wrong_result"; n = by_id[n->parent]) {
        ++wrong;
      }
      longest = std::max(longest, wrong);
      if (wrong > 0 && wrong <= allowed && i + 1 < nodes.size()) {
        EXPECT_EQ(nodes[i + 1].parent, nodes[i].id) << "mended before anything else";
      }
    }
    EXPECT_EQ(longest, std::min(allowed + 1, 3U)) << "repairs in a row of which none helped";
    for (const auto& node : nodes) {
      const auto children = std::count_if(nodes.begin(), nodes.end(),
                                          [&](const auto& n) { return n.parent == node.id; });
      EXPECT_LE(node.verdict == "wrong_result" ? children : 0, 1) << "mended once";
    }
  }
}

TEST_F(OnDemandTest, WhatCannotBeJudgedIsNotMended) {
  proposer.plan["s"] = {"u", "i", "w"};
  ASSERT_TRUE(Search("r", 8).ok());
  std::map<std::string, store::NodeId> by_source;
  for (const auto& node : nodes) {
    by_source[node.source] = node.id;
  }
  ASSERT_EQ(by_source.count("s.u") + by_source.count("s.i") + by_source.count("s.w"), 3U);
  EXPECT_THAT(proposer.nodes, Not(Contains(by_source["s.u"])));
  EXPECT_THAT(proposer.nodes, Not(Contains(by_source["s.i"])));
  EXPECT_THAT(proposer.nodes, Contains(by_source["s.w"])) << "the honest twin: a wrong one is";
}

TEST_F(OnDemandTest, ANodeWithoutIdeasIsLeftAloneAndTheRootNever) {
  proposer.plan["s"] = {"t10", "w"};
  proposer.plan["s.t10"] = {""};
  proposer.plan["s.w"] = {""};
  const auto result = Search("r", 4, "greedy");
  ASSERT_TRUE(result.ok()) << result.error().message;
  // Greedy goes on from the fastest; a wrong kernel is asked about once.
  EXPECT_THAT(proposer.nodes, ElementsAre(1, 2, 2, 2, 1, 3, 1));
  EXPECT_EQ(nodes[1].barren, 3);

  Forget();
  proposer.plan = {{"s", {""}}};
  const auto ended = Search("root", 4, "greedy");
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.error().code, ErrorCode::kToolFailed);
  EXPECT_THAT(ended.error().message, AllOf(HasSubstr("8 answers"), HasSubstr("no idea for s")));
  EXPECT_EQ(proposer.nodes.size(), 8U);
  EXPECT_THAT(proposer.nodes, Each(store::kRoot));
  EXPECT_EQ(nodes[0].barren, 8);
  proposer.plan.clear();
  const auto resumed = Search("root", 4, "greedy");
  ASSERT_TRUE(resumed.ok()) << "an idea came at last";
  EXPECT_EQ(nodes[0].barren, 0);
}

TEST_F(OnDemandTest, OnlyAnswersInARowEndTheRun) {
  // Two nodes without ideas, and a kernel between: 3 + 3 answers are not 8 in a row.
  proposer.plan["s"] = {"t10", "t20", "t30", "t40"};
  for (const char* source : {"s.t10", "s.t20", "s.t30"}) {
    proposer.plan[source] = {""};
  }
  const auto result = Search("r", 5, "greedy");
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(std::count(proposer.nodes.begin(), proposer.nodes.end(), store::kRoot), 4);
  EXPECT_EQ(proposer.nodes.size(), 4U + 9U);
}

TEST_F(OnDemandTest, DoublesAreDeclinedAndNotJudgedAgain) {
  proposer.plan["s"] = {"t10"};
  proposer.plan["s.t10"] = {"=s"};
  ASSERT_TRUE(Search("r", 3, "greedy").ok());
  EXPECT_THAT(Sources(), ElementsAre("s", "s.t10", "s.1"));
  const auto declined = Declined("r", 2);
  ASSERT_EQ(declined.size(), 3U);
  EXPECT_EQ(declined[0].why, "the same kernel as node 1");
}

/// Offers two children at once, then the second of them again for the first.
class Pair : public Proposer {
 public:
  [[nodiscard]] std::string_view name() const override { return "pair"; }

  [[nodiscard]] bool on_demand() const override { return true; }

  Result<Proposals> Propose(const ProposalRequest& request, const std::stop_token&) override {
    Proposals answer;
    if (request.node.node == store::kRoot) {
      answer.proposals = {testing::Step("s", "t10", 0.9), testing::Step("s", "t20", 0.1)};
    } else {
      answer.proposals = {testing::Step("s", "t20")};
    }
    return answer;
  }
};

TEST_F(OnDemandTest, ADoubleOfWhatIsPlannedIsDeclinedAlsoAfterResume) {
  Pair pair;
  const auto search = [&](std::uint32_t evaluations) {
    const auto store = OpenRun("r");
    const auto policy = MakePolicy("greedy").value();
    auto result = RunSearch({task, *store, assessor, pair, *policy, clock, observer}, {"s", {}},
                            {.evaluations = evaluations}, {});
    nodes = store->Nodes().value();
    return result;
  };
  ASSERT_TRUE(search(2).ok());
  EXPECT_THAT(Sources(), ElementsAre("s", "s.t10"));
  ASSERT_TRUE(search(3).ok());
  EXPECT_THAT(Sources(), ElementsAre("s", "s.t10", "s.t20"));
  EXPECT_EQ(nodes[2].parent, 1);
  const auto declined = Declined("r", 2);
  ASSERT_FALSE(declined.empty());
  EXPECT_EQ(declined[0].why, "the same kernel as another proposal");
}

TEST_F(OnDemandTest, TheSearchGoesDown) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    Forget();
    ASSERT_TRUE(Search("r" + std::to_string(seed), 13, "mcts", seed).ok());
    ASSERT_EQ(nodes.size(), 13U);
    const auto deeper =
        std::count_if(nodes.begin(), nodes.end(), [](const auto& node) { return node.parent > 1; });
    EXPECT_GE(deeper, 5);
    EXPECT_LT(deeper, 11) << "and the seed is asked more than once";
  }
}

}  // namespace
}  // namespace kernelpro::search
