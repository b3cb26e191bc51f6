// SPDX-License-Identifier: Apache-2.0
#include "propose/llm/llm_proposer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "propose/llm/testing/fixture.h"

namespace kernelpro::agents::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST_F(LlmProposerTest, ImprovesARightParentByPlanAndCode) {
  client.Say(PlanJson()).Say(Fenced(Kernel()), "the-coder-2");
  const auto proposer = Make(NoResearch());
  EXPECT_TRUE(proposer->on_demand());
  const auto made = proposer->Propose(Right(), stop.get_token());
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_THAT(client.Purposes(), ElementsAre("planner", "coder"));
  ASSERT_THAT(made->proposals, SizeIs(1));
  const Proposal& proposal = made->proposals[0];
  EXPECT_EQ(proposal.candidate.source, Kernel());
  EXPECT_EQ(proposal.candidate.flags, parent.flags);
  EXPECT_EQ(proposal.action, "warp_per_row");
  EXPECT_EQ(proposal.finding, "mem.coalesce_ld");
  EXPECT_EQ(proposal.reason, "Then lanes read neighbouring addresses.");
  EXPECT_EQ(proposal.origin, "the-coder-2");
  // The model says 3x; its finding leaves 2x at most: 0.4 + 0.5 * (1 - 1/2).
  EXPECT_DOUBLE_EQ(proposal.prior, 0.65);
  EXPECT_THAT(made->declined, IsEmpty());
}

TEST_F(LlmProposerTest, EqualRequestsMakeEqualQuestions) {
  std::string before;
  for (int run = 0; run < 2; ++run) {
    client.requests.clear();
    client.Say(PlanJson()).Say(Fenced(Kernel()));
    const auto proposer = Make(NoResearch());
    ASSERT_TRUE(proposer->Propose(Right(), stop.get_token()));
    std::string wire;
    for (const auto& request : client.requests) {
      wire += Wire(request);
    }
    EXPECT_TRUE(run == 0 || wire == before);
    before = wire;
  }
}

TEST_F(LlmProposerTest, SystemTextIsTheSameForEveryAgentAndParent) {
  client.Say(PlanJson()).Say(Fenced(Kernel())).Say(Fenced(Kernel())).Say(Fenced(Kernel()));
  const auto proposer = Make(NoResearch());
  ASSERT_TRUE(proposer->Propose(Right(), stop.get_token()));
  ASSERT_TRUE(proposer->Propose(Wrong(), stop.get_token()));
  ProposalRequest root = Right();
  root.path = {seed_node};
  root.node = seed_node;
  ASSERT_TRUE(proposer->Propose(root, stop.get_token()));
  EXPECT_THAT(client.Purposes(), ElementsAre("planner", "coder", "repairer", "seed"));
  for (const auto& request : client.requests) {
    EXPECT_EQ(request.system, client.requests[0].system);
    EXPECT_THAT(request.system, HasSubstr("struct TaskArgs"));
    EXPECT_THAT(request.system, HasSubstr("cols = 1024"));
    EXPECT_THAT(request.messages, SizeIs(1));
  }
  // The size of the hidden workload.
  EXPECT_THAT(client.requests[0].system, Not(HasSubstr("1021")));
}

TEST_F(LlmProposerTest, ARepairHearsNothingOfPerformance) {
  // A caller that hands over what is known of another kernel's speed.
  const ProposalRequest request = Wrong();
  ProposalRequest careless{.task = task,
                           .parent = parent,
                           .diagnosis = diagnosis,
                           .profile = profile,
                           .node = request.node,
                           .feedback = feedback,
                           .path = request.path,
                           .best = request.best,
                           .seed_us = 812.5};
  careless.node.reason = "coalesced loads are faster";
  careless.tried = {{.node = 9,
                     .parent = 5,
                     .action = "repair_compile_error",
                     .verdict = "wrong_result",
                     .verdict_reason = "y[3] is 0.25 instead of 0.5",
                     .time_us = 777.5}};
  careless.memory = {{Lesson::Kind::kWin, "vector loads won twofold", 3},
                     {Lesson::Kind::kDeadEnd, "unrolling gained nothing", 3},
                     {Lesson::Kind::kFact, "DRAM peaks at 4.8 TB/s", 3},
                     {Lesson::Kind::kError, "rows is an int64_t", 9}};
  client.Say(Fenced(Kernel()));
  const auto made = Make({})->Propose(careless, stop.get_token());
  ASSERT_TRUE(made);
  ASSERT_THAT(client.Purposes(), ElementsAre("repairer"));
  const std::string wire = Wire(client.requests[0]);
  for (const char* telltale :
       {"Uncoalesced", "coalesced loads are faster", "mem.coalesce_ld", "dram__bytes", "812.5",
        "777.5", "vector loads", "unrolling gained", "4.8 TB/s", "Give each row", "cmp.sfu"}) {
    EXPECT_THAT(wire, Not(HasSubstr(telltale)));
  }
  EXPECT_THAT(wire, HasSubstr("identifier \"rwo\" is undefined"));
  EXPECT_THAT(wire, HasSubstr("y[3] is 0.25 instead of 0.5"));
  EXPECT_THAT(wire, HasSubstr("rows is an int64_t"));
  EXPECT_EQ(made->proposals.at(0).action, "repair_compile_error");
  EXPECT_EQ(made->proposals.at(0).origin, "test-model-1");
}

TEST_F(LlmProposerTest, AnImprovementHearsNoErrorText) {
  ProposalRequest request = Right();
  NodeBrief wrong{.node = 3,
                  .parent = 1,
                  .action = "unroll",
                  .verdict = "race",
                  .verdict_reason = "threads 3 and 4 write shared byte 128"};
  request.path = {seed_node, wrong, node};
  request.tried = {{.node = 8,
                    .parent = 5,
                    .action = "tile",
                    .verdict = "compile_error",
                    .verdict_reason = "error: too many shared bytes"}};
  request.memory = {{Lesson::Kind::kError, "tiles overflow", 8}};
  client.Say(PlanJson()).Say(Fenced(Kernel()));
  ASSERT_TRUE(Make(NoResearch())->Propose(request, stop.get_token()));
  ASSERT_THAT(client.Purposes(), ElementsAre("planner", "coder"));
  for (const auto& asked : client.requests) {
    EXPECT_THAT(Wire(asked), Not(HasSubstr("shared byte 128")));
    EXPECT_THAT(Wire(asked), Not(HasSubstr("too many shared bytes")));
  }
  EXPECT_THAT(Wire(client.requests[0]), HasSubstr("tile: failed (compile_error)"));
}

TEST_F(LlmProposerTest, SeedsComeFromTheTaskAloneAtEachTemperature) {
  LlmProposerOptions options = NoResearch();
  options.seed_temperatures = {0.2, 0.9};
  options.seed_rounds = 2;
  const auto proposer = Make(options);
  ProposalRequest root = Right();
  root.node = seed_node;
  root.path = {seed_node};
  const std::vector<double> expected = {0.2, 0.9, 0.2, 0.9};
  std::vector<std::string> prompts;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    client.Say(Fenced(Kernel(std::to_string(i))));
    const auto made = proposer->Propose(root, stop.get_token());
    ASSERT_TRUE(made);
    const llm::ChatRequest& asked = client.requests.back();
    EXPECT_EQ(asked.purpose, "seed");
    EXPECT_EQ(asked.temperature, expected[i]);
    EXPECT_THAT(Wire(asked), Not(HasSubstr("RowSoftmax")));  // The parent's source.
    EXPECT_THAT(Wire(asked), Not(HasSubstr("oalesced")));
    prompts.push_back(asked.messages[0].text);
    EXPECT_EQ(made->proposals.at(0).action,
              fmt::format("seed_{}(temperature={})", i + 1, expected[i]));
    root.tried.push_back({.node = static_cast<std::int64_t>(10 + i),
                          .parent = 1,
                          .action = made->proposals[0].action,
                          .verdict = "ok",
                          .time_us = 500});
  }
  EXPECT_NE(prompts[0], prompts[2]);  // Else a recorded answer would be given twice.
  client.Say(R"({"lessons": []})").Say(PlanJson()).Say(Fenced(Kernel("x")));
  client.requests.clear();
  ASSERT_TRUE(proposer->Propose(root, stop.get_token()));
  EXPECT_THAT(client.Purposes(), ElementsAre("note_taker", "planner", "coder"));
}

TEST_F(LlmProposerTest, ASeedThatCameToNothingIsNotAskedForAgain) {
  LlmProposerOptions options = NoResearch();
  options.seed_temperatures = {0.2, 0.9};
  const auto proposer = Make(options);
  ProposalRequest root = Right();
  root.node = seed_node;
  root.path = {seed_node};
  client.Say("Sorry.").Say("Sorry.").Say(Fenced(Kernel("second")));
  const auto nothing = proposer->Propose(root, stop.get_token());
  ASSERT_TRUE(nothing);
  root.declined = nothing->declined;
  const auto second = proposer->Propose(root, stop.get_token());
  ASSERT_TRUE(second);
  EXPECT_EQ(second->proposals.at(0).action, "seed_2(temperature=0.9)");
  // Answered with a kernel that the run has already: declined by the search, not by the proposer.
  root.declined.push_back({second->proposals[0].action, "the same kernel as node 1"});
  client.requests.clear();
  client.Say(PlanJson()).Say(Fenced(Kernel("x")));
  ASSERT_TRUE(proposer->Propose(root, stop.get_token()));
  EXPECT_THAT(client.Purposes(), ElementsAre("planner", "coder"));
}

TEST_F(LlmProposerTest, ModelsWithoutTemperaturesGetNone) {
  LlmProposerOptions options = NoResearch();
  options.temperatures = false;
  options.effort = "high";
  const auto proposer = Make(options);
  ProposalRequest root = Right();
  root.node = seed_node;
  root.path = {seed_node};
  client.Say(Fenced(Kernel())).Say(PlanJson()).Say(Fenced(Kernel()));
  const auto seed = proposer->Propose(root, stop.get_token());
  ASSERT_TRUE(seed);
  EXPECT_EQ(seed->proposals.at(0).action, "seed_1");
  ASSERT_TRUE(proposer->Propose(Right(), stop.get_token()));
  for (const auto& request : client.requests) {
    EXPECT_FALSE(request.temperature) << request.purpose;
    EXPECT_EQ(request.effort, "high");
  }
}

TEST_F(LlmProposerTest, AskingAgainQuotesTheProblemOnly) {
  client.Say(PlanJson()).Say("Sorry, I only have BANANAS.").Say(Fenced(Kernel()));
  const auto made = Make(NoResearch())->Propose(Right(), stop.get_token());
  ASSERT_TRUE(made);
  ASSERT_THAT(client.Purposes(), ElementsAre("planner", "coder", "coder"));
  const std::string first = client.requests[1].messages[0].text;
  const std::string second = client.requests[2].messages[0].text;
  EXPECT_THAT(second, StartsWith(first));  // The prefix stays in the server's cache.
  EXPECT_THAT(second.substr(first.size()), HasSubstr("holds no code block"));
  EXPECT_THAT(second, Not(HasSubstr("BANANAS")));
  EXPECT_THAT(made->proposals, SizeIs(1));
  ASSERT_THAT(made->declined, SizeIs(1));
  EXPECT_THAT(made->declined[0].why, StartsWith("first answer: "));
}

TEST_F(LlmProposerTest, TwoUselessAnswersAreDeclinedWithBothReasons) {
  client.Say(PlanJson())
      .Say("```cuda\nint x;\n```")
      .Stumble(llm::Problem::kTruncated, "The answer ended at 16384 tokens.");
  const auto made = Make(NoResearch())->Propose(Right(), stop.get_token());
  ASSERT_TRUE(made);
  EXPECT_THAT(made->proposals, IsEmpty());
  ASSERT_THAT(made->declined, SizeIs(1));
  EXPECT_EQ(made->declined[0].action, "warp_per_row");
  EXPECT_THAT(made->declined[0].why, HasSubstr("does not define kernelpro_run"));
  EXPECT_THAT(made->declined[0].why, HasSubstr("ended at 16384 tokens"));
  EXPECT_THAT(client.requests, SizeIs(3));
}

TEST_F(LlmProposerTest, RefusalsOfRepairerAndSeedWriterAreDeclined) {
  for (int i = 0; i < 4; ++i) {
    client.Stumble(llm::Problem::kRefused, "");
  }
  const auto proposer = Make({});
  const auto repair = proposer->Propose(Wrong(), stop.get_token());
  ASSERT_TRUE(repair);
  EXPECT_THAT(repair->proposals, IsEmpty());
  EXPECT_THAT(repair->declined.at(0).why, HasSubstr("refused"));
  ProposalRequest root = Right();
  root.node = seed_node;
  root.path = {seed_node};
  const auto seed = proposer->Propose(root, stop.get_token());
  ASSERT_TRUE(seed);
  EXPECT_THAT(seed->proposals, IsEmpty());
  EXPECT_EQ(seed->declined.at(0).action, "seed_1(temperature=0.2)");
}

TEST_F(LlmProposerTest, TheParentAgainIsNoProposal) {
  client.Say(PlanJson()).Say(Fenced(parent.source));
  const auto made = Make(NoResearch())->Propose(Right(), stop.get_token());
  ASSERT_TRUE(made);
  EXPECT_THAT(made->proposals, IsEmpty());
  EXPECT_THAT(made->declined.at(0).why, HasSubstr("unchanged"));
}

TEST_F(LlmProposerTest, ErrorsOfTheClientEndTheTurn) {
  for (const ErrorCode code : {ErrorCode::kBudget, ErrorCode::kInvalidArgument,
                               ErrorCode::kCancelled, ErrorCode::kUnavailable}) {
    client.Say(PlanJson()).FailWith(Fail(code, "no more money"));
    const auto made = Make(NoResearch())->Propose(Right(), stop.get_token());
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, code);
    EXPECT_THAT(made.error().message, HasSubstr("no more money"));
    EXPECT_THAT(client.answers, IsEmpty());
  }
}

TEST_F(LlmProposerTest, AStopIsHeededBetweenQuestions) {
  stop.request_stop();
  const auto made = Make({})->Propose(Right(), stop.get_token());
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kCancelled);
  EXPECT_THAT(client.requests, IsEmpty());
}

TEST_F(LlmProposerTest, AParentThatNobodyJudgedIsLeftAlone) {
  ProposalRequest request = Wrong();
  request.node.verdict = "infrastructure_error";
  const auto made = Make({})->Propose(request, stop.get_token());
  ASSERT_TRUE(made);
  EXPECT_THAT(made->proposals, IsEmpty());
  EXPECT_THAT(made->declined, SizeIs(1));
  EXPECT_THAT(client.requests, IsEmpty());
}

struct BadPlan {
  const char* answer;
  const char* why;
};

TEST_F(LlmProposerTest, UnusablePlansAreDeclinedBeforeTheCoderIsPaid) {
  const std::vector<BadPlan> plans = {
      {"I would use warps.", "not a JSON object"},
      {"[1, 2]", "not a JSON object"},
      {R"({"technique": "Use Warps!", "finding": "", "plan": "p", "why": "w", "expected_gain": 2})",
       "snake_case"},
      {R"({"technique": 7, "finding": "", "plan": "p", "why": "w", "expected_gain": 2})",
       "snake_case"},
      {R"({"technique": "a", "finding": "mem.bank", "plan": "p", "why": "w", "expected_gain": 2})",
       "not among those shown"},
      {R"({"technique": "a", "finding": "", "plan": " ", "why": "w", "expected_gain": 2})",
       "plan is empty"},
      {R"({"technique": "a", "finding": "", "plan": "p", "why": "w", "expected_gain": "much"})",
       "expected_gain"},
      {R"({"technique": "a", "finding": "", "plan": "p", "why": "w", "expected_gain": 1e999})", ""},
      {"", "empty"}};
  for (const BadPlan& plan : plans) {
    client.requests.clear();
    client.Say(plan.answer);
    const auto made = Make(NoResearch())->Propose(Right(), stop.get_token());
    ASSERT_TRUE(made) << plan.answer;
    EXPECT_THAT(made->proposals, IsEmpty());
    ASSERT_THAT(made->declined, SizeIs(1)) << plan.answer;
    EXPECT_EQ(made->declined[0].action, "planner");
    EXPECT_THAT(made->declined[0].why, HasSubstr(plan.why));
    EXPECT_THAT(client.requests, SizeIs(1));
  }
}

TEST_F(LlmProposerTest, PlansInAFenceAndWithLongTextAreTaken) {
  std::string words;
  for (int i = 0; i < 300; ++i) {
    words += "word" + std::to_string(i) + " ";
  }
  const nlohmann::json plan = {{"technique", "a_b2"}, {"finding", ""},        {"plan", words},
                               {"why", words},        {"expected_gain", 500}, {"differs", ""}};
  client.Say("```json\n" + plan.dump() + "\n```").Say(Fenced(Kernel()));
  const auto made = Make(NoResearch())->Propose(Right(), stop.get_token());
  ASSERT_TRUE(made);
  EXPECT_THAT(made->proposals.at(0).reason, HasSubstr("word39"));
  EXPECT_THAT(made->proposals.at(0).reason, Not(HasSubstr("word40")));
  EXPECT_THAT(Wire(client.requests[1]), HasSubstr("word119"));
  EXPECT_THAT(Wire(client.requests[1]), Not(HasSubstr("word120 ")));
}

TEST_F(LlmProposerTest, AFailedTechniqueIsRepeatedOnlyWithADifference) {
  ProposalRequest request = Right();
  request.tried = {{.node = 8,
                    .parent = 5,
                    .action = "warp_per_row",
                    .finding = "mem.coalesce_ld",
                    .verdict = "ok",
                    .time_us = 450}};
  request.memory = {{Lesson::Kind::kDeadEnd, "known", 8}};
  client.Say(PlanJson());
  const auto same = Make(NoResearch())->Propose(request, stop.get_token());
  ASSERT_TRUE(same);
  EXPECT_THAT(same->declined.at(0).why, HasSubstr("failed from here before"));

  client.Say(PlanJson("warp_per_row", "mem.coalesce_ld", "two rows a warp")).Say(Fenced(Kernel()));
  const auto other = Make(NoResearch())->Propose(request, stop.get_token());
  ASSERT_TRUE(other);
  EXPECT_THAT(other->proposals, SizeIs(1));
  EXPECT_THAT(Wire(client.requests.back()), HasSubstr("two rows a warp"));

  request.tried[0].time_us = 300;  // It had worked: the same may be done once more.
  client.Say(PlanJson()).Say(Fenced(Kernel()));
  const auto again = Make(NoResearch())->Propose(request, stop.get_token());
  ASSERT_TRUE(again);
  EXPECT_THAT(again->proposals, SizeIs(1));
}

TEST_F(LlmProposerTest, PromptsEqualTheGoldenFile) {
  client.Say(R"({"lessons": []})").Say(PlanJson()).Say(Fenced(Kernel())).Say(Fenced(Kernel()));
  ProposalRequest request = Right();
  request.tried = {{.node = 8,
                    .parent = 5,
                    .action = "unroll",
                    .reason = "fewer branches",
                    .finding = "cmp.sfu",
                    .verdict = "ok",
                    .time_us = 410}};
  request.memory = {{Lesson::Kind::kError, "rows is an int64_t", 2},
                    {Lesson::Kind::kWin, "one pass instead of two halves the traffic", 3}};
  const auto proposer = Make(NoResearch());
  ASSERT_TRUE(proposer->Propose(request, stop.get_token()));
  ASSERT_TRUE(proposer->Propose(Wrong(), stop.get_token()));
  std::string text;
  for (auto asked : client.requests) {
    text += fmt::format("======== {}\n", asked.purpose);
    if (asked.purpose != "note_taker") {
      asked.system = "(as above)";
    }
    text += Wire(asked);
  }
  const std::string path = std::string(KP_SOURCE_DIR) + "/tests/data/propose/prompts_softmax.txt";
  if (std::getenv("KERNELPRO_WRITE_GOLDEN") != nullptr) {
    std::ofstream(path) << text;
  }
  std::ifstream in(path);
  std::stringstream expected;
  expected << in.rdbuf();
  EXPECT_EQ(text, expected.str()) << "see " << path;
}

}  // namespace
}  // namespace kernelpro::agents::testing
