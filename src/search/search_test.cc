// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "search/driver.h"

namespace kernelpro::search {
namespace {

namespace fs = std::filesystem;

/// A toy landscape: a source is "a,b" with 0 <= a, b < 8. Time falls with a and b, but stepping b
/// before a is 4 makes the kernel slower first, so a greedy search has something to get wrong.
struct Point {
  long long a = 0, b = 0;
};

Point ParsePoint(const std::string& source) {
  const auto parts = Split(source, ',');
  Point p;
  EXPECT_TRUE(ParseInteger(parts[0], &p.a) && ParseInteger(parts[1], &p.b)) << source;
  return p;
}

double TimeOf(Point p) {
  const double penalty = p.b > 0 && p.a < 4 ? 3.0 : 1.0;
  return 1000.0 * penalty / ((1.0 + static_cast<double>(p.a)) * (1.0 + static_cast<double>(p.b)));
}

class ToyAssessor : public Assessor {
 public:
  Result<Assessment> Assess(const Candidate& candidate, const std::stop_token&) override {
    ++assessed;
    EXPECT_TRUE(seen.insert(candidate.source).second) << candidate.source << " evaluated twice";
    if (source != nullptr && assessed == stop_at) {
      source->request_stop();
      seen.erase(candidate.source);
    }
    Assessment a;
    const Point p = ParsePoint(candidate.source);
    a.evaluation.verdict = Verdict::kOk;
    a.evaluation.time_us = TimeOf(p);
    if (p.a == 2 && p.b > 0) {  // Fast, and wrong.
      a.evaluation.verdict = Verdict::kWrongResult;
      a.evaluation.time_us = 0;
    }
    if (infrastructure_breaks) {
      a.evaluation.verdict = Verdict::kInfrastructureError;
    }
    a.feedback = "feedback of " + candidate.source;
    return a;
  }

  [[nodiscard]] Diagnosis Rediagnose(const Profile&) const override { return {}; }

  int assessed = 0;
  std::set<std::string> seen;
  std::stop_source* source = nullptr;
  int stop_at = -1;
  bool infrastructure_breaks = false;
};

class ToyProposer : public Proposer {
 public:
  [[nodiscard]] std::string_view name() const override { return "toy"; }

  Result<Proposals> Propose(const ProposalRequest& request, const std::stop_token&) override {
    const Point p = ParsePoint(request.parent.source);
    Proposals all;
    const auto add = [&all](long long a, long long b, std::string action) {
      if (a >= 0 && a < 8 && b >= 0 && b < 8) {
        Proposal proposal;
        proposal.candidate.source = std::to_string(a) + "," + std::to_string(b);
        proposal.action = std::move(action);
        all.proposals.push_back(std::move(proposal));
      }
    };
    add(p.a + 1, p.b, "a(+1)");
    add(p.a, p.b + 1, "b(+1)");
    add(p.a - 1, p.b, "a(-1)");
    all.declined.push_back({"c", "there is no c"});
    return all;
  }
};

class Silent : public ProgressObserver {
 public:
  void OnProgress(const Progress& progress) override { last = progress; }

  Progress last;
};

class SearchTest : public ::testing::Test {
 protected:
  SearchTest() : temporary_(TemporaryFolder::Create("kp-search").value()) {}

  Result<SearchResult> Search(const std::string& run, std::uint32_t evaluations,
                              std::string_view policy = "mcts", std::uint64_t seed = 1) {
    const fs::path folder = temporary_.path() / run;
    auto store =
        fs::exists(folder) ? store::RunStore::Open(folder) : store::RunStore::Create(folder, {});
    if (!store) {
      return store.error();
    }
    ToyProposer proposer;
    const auto chosen = MakePolicy(policy).value();
    auto result =
        RunSearch({task, **store, assessor, proposer, *chosen, clock, observer}, {seed_source, {}},
                  {.evaluations = evaluations, .time = std::chrono::minutes(1), .seed = seed},
                  stop.get_token());
    nodes = (*store)->Nodes().value();
    return result;
  }

  [[nodiscard]] std::vector<std::string> Sources() const {
    std::vector<std::string> sources;
    for (const auto& node : nodes) {
      sources.push_back(node.source);
    }
    return sources;
  }

  Task task;
  ToyAssessor assessor;
  SystemClock clock;
  Silent observer;
  std::string seed_source = "0,0";
  std::stop_source stop;
  std::vector<store::NodeRecord> nodes;

 private:
  TemporaryFolder temporary_;
};

TEST_F(SearchTest, FindsAMuchFasterKernelThanTheSeed) {
  const auto result = Search("r", 40);
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->evaluated, 40U);
  EXPECT_EQ(result->stopped, Stopped::kEvaluations);
  EXPECT_LE(result->best.time_us, 1000.0 / 20.0);
  EXPECT_EQ(result->best.verdict, "ok");
  EXPECT_EQ(observer.last.evaluated, 40U);
  EXPECT_EQ(observer.last.best_us, result->best.time_us);
}

TEST_F(SearchTest, EveryPolicyRunsAndWrongKernelsNeverWin) {
  for (const std::string_view policy : PolicyNames()) {
    assessor.seen.clear();
    const auto result = Search(std::string(policy), 60, policy);
    ASSERT_TRUE(result.ok()) << policy;
    EXPECT_EQ(result->best.verdict, "ok");
    EXPECT_LT(result->best.time_us, result->root.time_us) << policy;
    for (const auto& node : nodes) {
      const Point parent = ParsePoint(
          nodes[static_cast<std::size_t>(std::max<std::int64_t>(node.parent, 1)) - 1].source);
      EXPECT_FALSE(node.parent != 0 && parent.a == 2 && parent.b > 0)
          << policy << ": a child was made of a wrong kernel";
    }
  }
}

TEST_F(SearchTest, SameSeedSameRun) {
  ASSERT_TRUE(Search("one", 30).ok());
  const auto first = Sources();
  assessor.seen.clear();
  ASSERT_TRUE(Search("two", 30).ok());
  EXPECT_EQ(Sources(), first);
}

TEST_F(SearchTest, StoppedAndResumedEqualsUninterrupted) {
  ASSERT_TRUE(Search("whole", 25).ok());
  const auto whole = Sources();
  for (int at = 1; at < 25; at += 3) {
    const std::string run = "cut" + std::to_string(at);
    assessor.seen.clear();
    assessor.assessed = 0;
    std::stop_source cut;
    stop = cut;
    assessor.source = &cut;
    assessor.stop_at = at;
    auto stopped = Search(run, 25);
    ASSERT_TRUE(stopped.ok()) << stopped.error().message;
    EXPECT_EQ(stopped->stopped, Stopped::kRequested);
    assessor.source = nullptr;
    stop = std::stop_source();
    const auto resumed = Search(run, 25);
    ASSERT_TRUE(resumed.ok());
    EXPECT_EQ(Sources(), whole) << "cut at " << at;
    EXPECT_EQ(resumed->evaluated, 25U);
  }
}

TEST_F(SearchTest, EndsWhenThereIsNothingLeft) {
  const auto result = Search("r", 1000);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->stopped, Stopped::kExhausted);
  EXPECT_EQ(result->best.source, "7,7");
  EXPECT_LE(result->evaluated, 64U);
}

TEST_F(SearchTest, AWrongSeedIsSaidBeforeAnySearch) {
  seed_source = "2,1";
  const auto result = Search("r", 40);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(result.error().message, ::testing::HasSubstr("wrong_result"));
  EXPECT_EQ(assessor.assessed, 1);
}

TEST_F(SearchTest, TimeLimitStops) {
  struct Jumping : Clock {
    [[nodiscard]] std::chrono::nanoseconds Now() const override {
      return std::chrono::seconds(ticks++);
    }

    [[nodiscard]] std::int64_t UnixSeconds() const override { return 0; }

    mutable int ticks = 0;
  };

  const Jumping jumping;
  const fs::path folder = fs::temp_directory_path();
  auto temporary = TemporaryFolder::Create("kp-search").value();
  auto store = store::RunStore::Create(temporary.path() / "r", {}).value();
  ToyProposer proposer;
  const auto policy = MakePolicy("mcts").value();
  const auto result =
      RunSearch({task, *store, assessor, proposer, *policy, jumping, observer}, {"0,0", {}},
                {.evaluations = 1000, .time = std::chrono::seconds(50)}, {});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->stopped, Stopped::kTime);
  EXPECT_LT(result->evaluated, 60U);
}

TEST_F(SearchTest, InfrastructureErrorsAreNotTheKernelsFault) {
  assessor.infrastructure_breaks = true;
  const auto result = Search("r", 40);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().message, ::testing::HasSubstr("infrastructure_error"));
}

TEST(Tree, InfrastructureErrorsDoNotCountAsVisits) {
  Tree tree;
  tree.Add({.id = 1, .correct = true, .time_us = 10});
  tree.Add({.id = 2, .parent = 1, .correct = false, .counts = false});
  tree.Add({.id = 3, .parent = 1, .correct = false});
  EXPECT_EQ(tree.Statistics(1).visits, 2U);
  EXPECT_EQ(tree.Best(), 1);
}

TEST(Tree, SlowNodesStayOpen) {
  Tree tree;
  tree.Add({.id = 1, .correct = true, .time_us = 10});
  tree.Add({.id = 2, .parent = 1, .correct = true, .time_us = 100, .log_speedup = std::log(0.1)});
  tree.SetUntried(2, {{7, "x", 0.5}});
  EXPECT_FALSE(tree.Closed(2));
  EXPECT_FALSE(tree.Closed(1));
  Rng rng(1);
  const auto choice = MakePolicy("mcts").value()->Choose(tree, rng);
  ASSERT_TRUE(choice.has_value());
  EXPECT_EQ(choice->parent, 2);
  tree.RemoveUntried(2, 7);
  EXPECT_TRUE(tree.Closed(1));
  EXPECT_FALSE(MakePolicy("mcts").value()->Choose(tree, rng).has_value());
}

TEST(ActionRecord, WeighsByWhatWasWon) {
  Tree tree;
  tree.Add({.id = 1, .correct = true, .time_us = 10});
  tree.Add({.id = 2,
            .parent = 1,
            .action = "good(1)",
            .correct = true,
            .time_us = 5,
            .log_speedup = std::log(2.0)});
  tree.Add({.id = 3, .parent = 1, .action = "bad(1)", .correct = true, .time_us = 10});
  const ActionRecord record(tree);
  EXPECT_NEAR(record.Weight("good(2)"), 2.0 * 2.0 / 3.0, 1e-12);
  EXPECT_NEAR(record.Weight("bad(9)"), 2.0 * 1.0 / 3.0, 1e-12);
  EXPECT_NEAR(record.Weight("new"), 1.0, 1e-12);
}

TEST(Policy, UnknownNameListsTheChoices) {
  const auto policy = MakePolicy("mtcs");
  ASSERT_FALSE(policy.ok());
  EXPECT_THAT(policy.error().message, ::testing::HasSubstr("mcts, greedy, beam, random"));
}

}  // namespace
}  // namespace kernelpro::search
