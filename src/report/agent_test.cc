// SPDX-License-Identifier: Apache-2.0
#include "report/agent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "search/record.h"
#include "search/testing/toy_run.h"

namespace kernelpro::report {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// Says what the real one does about its checks, and lets kernels write their own reasons.
class Referee : public search::testing::PathAssessor {
 public:
  Result<search::Assessment> Assess(const Candidate& candidate,
                                    const std::stop_token& stop) override {
    auto a = PathAssessor::Assess(candidate, stop);
    a->evaluation.checks = {{"13x131", false, 3, {{.tensor = "y", .worst_ratio = 0.25}}},
                            {"secret_shape", true, 3, {{.tensor = "y", .worst_ratio = 0.5}}}};
    if (!a->evaluation.reason.empty()) {
      a->evaluation.reason = "first\x1b[2J line\n" + a->evaluation.reason + "\x07";
    }
    for (KernelProfile& kernel : a->profile.kernels) {
      kernel.metrics["launch__registers_per_thread"].value = a->evaluation.time_us;
    }
    return a;
  }
};

class AgentTest : public search::testing::ToyRunTest {
 protected:
  AgentTest() {
    task.name = "rows";
    task.description = "Softmax of rows.";
    task.axes = {"M"};
    task.workloads = {{"big", Workload::Kind::kTimed, 1, {{"M", 4096}}},
                      {"odd", Workload::Kind::kChecked, 1, {{"M", 13}}},
                      {"secret_shape", Workload::Kind::kHidden, 1, {{"M", 7654321}}}};
    store = OpenRun("r");
    policy = search::MakePolicy("greedy").value();
    store::NodeRecord root;
    root.action = "seed";
    root.source = "s.t100";
    root.content = search::ContentKey({root.source, {}});
    EXPECT_TRUE(store->AddNode(root, std::nullopt).ok());
    run = std::make_unique<search::AgentRun>(*store, *policy, 1);
    EXPECT_TRUE(run->Load().ok());
    EXPECT_TRUE(run->Evaluate(1, referee, {}).ok());
  }

  store::NodeId Submit(store::NodeId parent, const std::string& source, bool judge = true,
                       const std::string& finding = "") {
    search::Submission s;
    s.parent = parent;
    s.candidate.source = source;
    s.action = "make_" + search::testing::LastPiece(source);
    s.reason = "it helps";
    s.finding = finding;
    const auto id = run->Submit(s);
    EXPECT_TRUE(id.ok());
    EXPECT_TRUE(!judge || run->Evaluate(*id, referee, {}).ok());
    return *id;
  }

  [[nodiscard]] AgentAnswer Next() const {
    return NextAnswer(*run, run->Next().value(), run->Memory().value(), task, "toy gpu", "RUN");
  }

  [[nodiscard]] AgentAnswer Status() const {
    return StatusAnswer(run->state(), store->Measurements().value(), "rows", "toy", "RUN");
  }

  /// One object in one line, nothing that could take over a terminal, nothing that is hidden.
  static void ExpectClean(const AgentAnswer& answer) {
    EXPECT_TRUE(Json::parse(answer.json, nullptr, false).is_object()) << answer.json;
    EXPECT_EQ(answer.json.find('\n'), std::string::npos);
    for (const std::string* text : {&answer.text, &answer.json}) {
      EXPECT_THAT(*text, AllOf(Not(HasSubstr("secret_shape")), Not(HasSubstr("7654321")),
                               Not(HasSubstr("\x1b")), Not(HasSubstr("\x07")),
                               Not(HasSubstr("\\u001b")), Not(HasSubstr("\\u0007"))));
    }
  }

  Referee referee;
  std::unique_ptr<store::RunStore> store;
  std::unique_ptr<search::Policy> policy;
  std::unique_ptr<search::AgentRun> run;
};

TEST_F(AgentTest, NextSaysWhatAnAgentNeeds) {
  Submit(1, "s.t100.t50", true, "slow.t100");
  Submit(2, "s.t100.t50.t80");
  Submit(1, "s.t100.t70", false);
  ASSERT_TRUE(run->Note({Lesson::Kind::kFact, "rows are short", 1}).ok());
  const AgentAnswer answer = Next();
  ExpectClean(answer);
  EXPECT_THAT(answer.text, StartsWith("task       Softmax of rows.\n"));
  for (const char* part :
       {"timed on   M=4096\n", "checked on M=13; and on shapes that stay hidden\n",
        "device     toy gpu\n",
        "parent     node 2 (make_t50) of node 1: ok, 50.0 us modelled, 2.00x over the seed\n",
        "best       node 2 (make_t50)", "waiting    1 submitted kernels have no result yet\n",
        "registers a thread 50 (was 100)", "findings by id: slow.t50 (Slow s.t100.t50)\n",
        "tried from here\n  node 3 (make_t80) of node 2: ok, 80.0 us modelled, 1.25x over the "
        "seed, "
        "0.62x over node 2\n",
        "learnt in this run\n", "  [fact] rows are short\n",
        "kernelpro agent submit RUN FILE.cu --parent 2 ",
        "--- source of node 2\ns.t100.t50\n--- kernelpro_task.h\n", "struct TaskArgs"}) {
    EXPECT_THAT(answer.text, HasSubstr(part));
  }
  EXPECT_THAT(answer.text, Not(HasSubstr("This kernel is wrong")));
  const Json json = Json::parse(answer.json);
  EXPECT_EQ(json["run"], "RUN");
  EXPECT_EQ(json["parent"]["node"], 2);
  EXPECT_EQ(json["parent"]["speedup_over_seed"], 2.0);
  EXPECT_EQ(json["repair"], false);
  EXPECT_EQ(json["waiting"], 1);
  EXPECT_EQ(json["source"], "s.t100.t50");
  EXPECT_EQ(json["findings"][0]["id"], "slow.t50");
  EXPECT_EQ(json["tried"].size(), 1U);
  EXPECT_EQ(json["tried"][0]["speedup_over_parent"], 0.625);
  EXPECT_EQ(json["best"]["node"], 2);
  EXPECT_EQ(json["memory"].size(), 3U);
  EXPECT_THAT(json["header"].get<std::string>(), HasSubstr("kernelpro_run"));
}

TEST_F(AgentTest, NextOfAWrongKernelSpeaksOfNothingElse) {
  Submit(1, "s.w");
  const AgentAnswer answer = Next();
  ExpectClean(answer);
  EXPECT_THAT(answer.text,
              AllOf(HasSubstr("This kernel is wrong. Mend it, and change nothing else:\nfirst?[2J "
                              "line\nreason of s.w?\n"),
                    Not(HasSubstr("findings by id")), Not(HasSubstr("figures\n"))));
  const Json json = Json::parse(answer.json);
  EXPECT_EQ(json["repair"], true);
  EXPECT_EQ(json["feedback"], "first?[2J line\nreason of s.w?");
  EXPECT_TRUE(json["findings"].empty());
  EXPECT_EQ(json["parent"]["verdict"], "wrong_result");
  EXPECT_TRUE(json["parent"]["time_us"].is_null());
}

TEST_F(AgentTest, SubmitSaysWhatCameOfIt) {
  const store::NodeId id = Submit(1, "s.t100.t50", true, "slow.t100");
  const AgentAnswer answer = SubmitAnswer(*run, id, "RUN");
  ExpectClean(answer);
  for (const char* part :
       {"node 2 (make_t50) of node 1: ok, 50.0 us modelled, 2.00x over the seed\n",
        "checked 13x131, hidden: worst error 0.5 of what is allowed\n", "best so far: node 2",
        "LAST", "registers a thread 50 (was 100)", "findings by id: slow.t50",
        "next: kernelpro agent next RUN\n"}) {
    EXPECT_THAT(answer.text, HasSubstr(part));
  }
  const Json json = Json::parse(answer.json);
  EXPECT_EQ(json["node"], 2);
  EXPECT_EQ(json["verdict"], "ok");
  EXPECT_EQ(json["time_us"], 50.0);
  EXPECT_EQ(json["provenance"], "modelled");
  EXPECT_EQ(json["finding"], "slow.t100");
  EXPECT_THAT(json["feedback"].get<std::string>(), HasSubstr("LAST"));
  EXPECT_EQ(json["best"]["node"], 2);
}

TEST_F(AgentTest, SubmitTellsWaitingWrongAndUnjudgedApart) {
  const AgentAnswer waiting = SubmitAnswer(*run, Submit(1, "s.t9", false), "RUN");
  ExpectClean(waiting);
  EXPECT_THAT(waiting.text, AllOf(HasSubstr("waits for a result"),
                                  HasSubstr("kernelpro agent evaluate RUN --pending")));
  EXPECT_TRUE(Json::parse(waiting.json)["verdict"].is_null());

  const AgentAnswer wrong = SubmitAnswer(*run, Submit(1, "s.w"), "RUN");
  ExpectClean(wrong);
  EXPECT_THAT(wrong.text, AllOf(StartsWith("node 3 (make_w) of node 1: wrong_result: first?[2J "
                                           "line\n"),
                                HasSubstr("\nfirst?[2J line\nreason of s.w?\n"),
                                Not(HasSubstr("may well be right"))));
  EXPECT_EQ(Json::parse(wrong.json)["verdict_reason"], "first?[2J line\nreason of s.w?");

  const AgentAnswer unjudged = SubmitAnswer(*run, Submit(1, "s.u"), "RUN");
  ExpectClean(unjudged);
  EXPECT_THAT(unjudged.text, AllOf(HasSubstr("may well be right"), HasSubstr("--device cuda")));
}

TEST_F(AgentTest, StatusShowsTheTreeAndTheWayToTheBest) {
  Submit(1, "s.t50");
  Submit(2, "s.t50.t80");
  Submit(1, "s.w");
  Submit(2, "s.t50.t25");
  Submit(1, "s.t99", false);
  const AgentAnswer answer = Status();
  ExpectClean(answer);
  EXPECT_EQ(answer.text,
            "rows on toy: 5 evaluated, 1 waiting\n"
            "best node 5 (make_t25) of node 2: ok, 25.0 us modelled, 4.00x over the seed, 2.00x "
            "over node 2\n"
            "* node 1 (seed): ok, 100 us modelled\n"
            "*   node 2 (make_t50) of node 1: ok, 50.0 us modelled, 2.00x over the seed\n"
            "      node 3 (make_t80) of node 2: ok, 80.0 us modelled, 1.25x over the seed, 0.62x "
            "over node 2\n"
            "*     node 5 (make_t25) of node 2: ok, 25.0 us modelled, 4.00x over the seed, 2.00x "
            "over node 2\n"
            "    node 4 (make_w) of node 1: wrong_result: first?[2J line\n"
            "    node 6 (make_t99) of node 1: waits for a result\n"
            "(* leads to the best)\n");
  const Json json = Json::parse(answer.json);
  EXPECT_EQ(json["task"], "rows");
  EXPECT_EQ(json["device"], "toy");
  EXPECT_EQ(json["evaluated"], 5);
  EXPECT_EQ(json["waiting"], 1);
  EXPECT_EQ(json["verdicts"]["ok"], 4);
  EXPECT_EQ(json["verdicts"]["wrong_result"], 1);
  EXPECT_EQ(json["nodes"].size(), 6U);
  EXPECT_EQ(json["best"]["node"], 5);
  EXPECT_TRUE(json["measurements"].empty());
}

TEST_F(AgentTest, OtherDevicesHaveARankingOfTheirOwn) {
  Submit(1, "s.t50");
  Submit(1, "s.t40");
  const auto set = [&](store::NodeId node, const std::string& device, double time_us,
                       const std::string& verdict = "ok", const std::string& reason = "") {
    ASSERT_TRUE(store
                    ->SetMeasurement({.node = node,
                                      .device = device,
                                      .gpu = "GPU of " + device,
                                      .verdict = verdict,
                                      .verdict_reason = reason,
                                      .time_us = time_us,
                                      .provenance = "measured",
                                      .evaluation = "{}"})
                    .ok());
  };
  set(1, "cuda:0", 30);
  set(2, "cuda:0", 20);
  set(3, "cuda:0", 0, "race", "two\x1b writers");
  set(2, "cuda:1", 10);
  const AgentAnswer answer = Status();
  ExpectClean(answer);
  EXPECT_THAT(answer.text, HasSubstr("judged elsewhere"));
  const std::string text = MeasurementsText(run->state(), store->Measurements().value());
  EXPECT_THAT(text,
              AllOf(StartsWith("on cuda:0 (GPU of cuda:0)\n"),
                    HasSubstr("20.0 us measured  1.50x of the seed there\n"),
                    HasSubstr("race: two? writers\n"), HasSubstr("on cuda:1 (GPU of cuda:1)\n"),
                    HasSubstr("10.0 us measured\n")))
      << "no seed was judged on cuda:1, so there is no speedup";
  const Json json = Json::parse(answer.json);
  ASSERT_EQ(json["measurements"].size(), 4U);
  EXPECT_TRUE(json["measurements"][2]["time_us"].is_null());
  EXPECT_EQ(json["best"]["node"], 3) << "the run's own ranking stays";
  EXPECT_EQ(MeasurementsText(run->state(), {}), "");
}

TEST(MemoryAnswer, ListsLessons) {
  const AgentAnswer answer = MemoryAnswer({{Lesson::Kind::kDeadEnd, "padding", 3}});
  EXPECT_EQ(answer.text, "  [dead_end] padding\n");
  EXPECT_EQ(Json::parse(answer.json),
            Json::parse(R"({"lessons":[{"kind":"dead_end","text":"padding","node":3}]})"));
  EXPECT_THAT(MemoryAnswer({}).text, HasSubstr("Nothing"));
}

}  // namespace
}  // namespace kernelpro::report
