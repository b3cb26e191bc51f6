// SPDX-License-Identifier: Apache-2.0
// What each mode really sends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "propose/llm/neutralise.h"
#include "propose/llm/performance_text.h"
#include "propose/llm/prompts.h"
#include "propose/llm/situation.h"
#include "propose/llm/testing/fixture.h"

namespace kernelpro::agents::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class ModesTest : public LlmProposerTest {
 protected:
  /// All that goes out for one improvement.
  std::string Sent(FeedbackMode mode) {
    LlmProposerOptions options;
    options.feedback = mode;
    client = {};
    const bool tools = mode == FeedbackMode::kTools;
    client.Say(PlanJson("warp_per_row", tools ? "mem.coalesce_ld" : ""));
    if (tools) {
      client.Say("Nothing of use.");
    }
    client.Say(Fenced(Kernel()));
    const auto made = Make(options)->Propose(Right(), stop.get_token());
    EXPECT_TRUE(made) << made.error().message;
    EXPECT_THAT(made->declined, IsEmpty());
    EXPECT_THAT(client.answers, IsEmpty());
    std::string wire;
    for (const auto& request : client.requests) {
      wire += Wire(request);
    }
    return wire;
  }
};

TEST_F(ModesTest, ToolsTellTheFindings) {
  const std::string sent = Sent(FeedbackMode::kTools);
  for (const char* part : {"Uncoalesced global loads", "Give each row to a warp", "mem.coalesce_ld",
                           "4.0 of 32 bytes", "400 us", "merge_loops for cmp.sfu"}) {
    EXPECT_THAT(sent, HasSubstr(part));
  }
  EXPECT_THAT(sent, Not(HasSubstr("dram__bytes_read")));
  EXPECT_THAT(sent, Not(HasSubstr("General advice")));
}

TEST_F(ModesTest, RawTellsTheCountersAndNothingElse) {
  const std::string sent = Sent(FeedbackMode::kRaw);
  EXPECT_THAT(sent, HasSubstr("\ndram__bytes_read.sum 1.23457e+08 byte\n"));
  EXPECT_THAT(sent, HasSubstr("\nsm__warps_active.avg 51.5 %\n"));
  for (const char* part :
       {"oalesce", "cmp.sfu", "Give each row", "General advice", "get_findings", "[tool "}) {
    EXPECT_THAT(sent, Not(HasSubstr(part)));
  }
}

TEST_F(ModesTest, NoneTellsTheTimeAlone) {
  const std::string sent = Sent(FeedbackMode::kNone);
  EXPECT_THAT(sent, HasSubstr("takes 400 us; the first kernel takes 800 us, the fastest one so far "
                              "320 us"));
  for (const char* part : {"oalesce", "cmp.sfu", "Give each row", "General advice", "dram__",
                           "What is known about its performance", "[tool "}) {
    EXPECT_THAT(sent, Not(HasSubstr(part)));
  }
}

TEST_F(ModesTest, PlaceboTellsTheSameOfEveryKernel) {
  const std::string sent = Sent(FeedbackMode::kPlacebo);
  EXPECT_THAT(sent, HasSubstr("General advice"));
  for (const char* part : {"mem.coalesce_ld", "cmp.sfu", "Give each row", "dram__", "[tool "}) {
    EXPECT_THAT(sent, Not(HasSubstr(part)));
  }
  const auto prompts = Prompts::Load("");
  ASSERT_TRUE(prompts);
  ProposalRequest other = Wrong();
  EXPECT_EQ(PerformanceText(FeedbackMode::kPlacebo, *prompts, Right()),
            PerformanceText(FeedbackMode::kPlacebo, *prompts, other));
  // As long as feedback is: 200 to 350 words (tools.md, rule 9).
  const std::string text = prompts->Render("placebo.md", {});
  EXPECT_EQ(FirstWords(text, 350), std::string(text.substr(0, text.size() - 1)));
  EXPECT_THAT(FirstWords(text, 200), HasSubstr("[cut]"));
}

TEST_F(ModesTest, NoTwoModesSendTheSame) {
  const std::set<std::string> sent = {Sent(FeedbackMode::kTools), Sent(FeedbackMode::kRaw),
                                      Sent(FeedbackMode::kNone), Sent(FeedbackMode::kPlacebo)};
  EXPECT_THAT(sent, SizeIs(4));
}

TEST_F(ModesTest, ReactiveShowsOnlyWhatIsAskedFor) {
  LlmProposerOptions options = NoResearch();
  options.orchestration = Orchestration::kReactive;
  client.Call({{.id = "1", .name = "get_findings", .arguments = R"({"ids": ["cmp.sfu"]})"}})
      .Say(PlanJson("fast_exp", "cmp.sfu"))
      .Say(Fenced(Kernel()));
  const auto made = Make(options)->Propose(Right(), stop.get_token());
  ASSERT_TRUE(made);
  ASSERT_THAT(client.Purposes(), ElementsAre("planner", "planner", "coder"));
  const std::string first = Wire(client.requests[0]);
  EXPECT_THAT(first, HasSubstr("get_findings"));
  EXPECT_THAT(first, HasSubstr("- mem.coalesce_ld: "));  // A tool's name, not that it fired.
  EXPECT_THAT(first, Not(HasSubstr("two expf per element")));
  EXPECT_THAT(first, Not(HasSubstr("Give each row to a warp")));
  EXPECT_THAT(first, Not(HasSubstr("4.0 of 32 bytes")));
  EXPECT_THAT(client.requests[0].schema, Not(HasSubstr("mem.coalesce_ld")));
  const std::string second = Wire(client.requests[1]);
  EXPECT_THAT(second, HasSubstr("two expf per element"));
  EXPECT_THAT(second, Not(HasSubstr("4.0 of 32 bytes")));
  EXPECT_EQ(made->proposals.at(0).finding, "cmp.sfu");
}

TEST_F(ModesTest, ReactivePlansCannotAnswerWhatWasNotSeen) {
  LlmProposerOptions options = NoResearch();
  options.orchestration = Orchestration::kReactive;
  client.Say(PlanJson("warp_per_row", "mem.coalesce_ld"));
  const auto made = Make(options)->Propose(Right(), stop.get_token());
  ASSERT_TRUE(made);
  EXPECT_THAT(made->declined.at(0).why, HasSubstr("not among those shown"));
}

TEST_F(ModesTest, ReactiveNeedsTools) {
  LlmProposerOptions options;
  options.orchestration = Orchestration::kReactive;
  options.feedback = FeedbackMode::kRaw;
  const auto made = MakeLlmProposer(client, options, nullptr, nullptr);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kInvalidArgument);
  options = {};
  options.temperature = 3;
  EXPECT_FALSE(MakeLlmProposer(client, options, nullptr, nullptr));
  options = {};
  options.max_tokens = 0;
  EXPECT_FALSE(MakeLlmProposer(client, options, nullptr, nullptr));
}

TEST_F(ModesTest, WordsOfTheOptions) {
  EXPECT_EQ(*ParseFeedbackMode("placebo"), FeedbackMode::kPlacebo);
  EXPECT_EQ(*ParseFeedbackMode("raw"), FeedbackMode::kRaw);
  EXPECT_EQ(*ParseOrchestration("reactive"), Orchestration::kReactive);
  EXPECT_THAT(ParseFeedbackMode("Tools").error().message, HasSubstr("tools, raw, none, placebo"));
  EXPECT_THAT(ParseOrchestration("").error().message, HasSubstr("proactive, reactive"));
}

TEST(FindingText, SaysWhyAToolIsSilent) {
  Diagnosis diagnosis;
  diagnosis.suppressed = {{"a.b", "k", "c.d", "the same bytes"}};
  diagnosis.not_run = {{"e.f", "k", {"x.y"}}};
  EXPECT_THAT(*FindingText(diagnosis, "a.b"), HasSubstr("explained by c.d"));
  EXPECT_THAT(*FindingText(diagnosis, "e.f"), HasSubstr("missing: x.y"));
  EXPECT_EQ(*FindingText(diagnosis, "mem.coalesce_ld"), "mem.coalesce_ld: found nothing");
  EXPECT_EQ(FindingText(diagnosis, "no.such").error().code, ErrorCode::kNotFound);
}

TEST(MemoryBlock, HoldsAtMostTwentyLinesAndNoneTwice) {
  using Kind = Lesson::Kind;
  std::vector<Lesson> memory;
  for (int i = 0; i < 60; ++i) {
    memory.push_back({Kind::kError, "mistake " + std::to_string(i), i});
    memory.push_back({Kind::kError, "The  same\nmistake.", i});
    memory.push_back({Kind::kError, "the same mistake", i});
    memory.push_back({Kind::kWin, "win " + std::to_string(i), i});
  }
  const std::string block = MemoryBlock(memory, {Kind::kError, Kind::kWin});
  const auto lines = std::ranges::count(block, '\n') - 1;
  EXPECT_EQ(lines, 20);
  EXPECT_THAT(block, HasSubstr("error: mistake 59\n"));
  EXPECT_THAT(block, Not(HasSubstr("mistake 0\n")));
  std::size_t same = 0;
  for (std::size_t at = block.find("same mistake"); at != std::string::npos;
       at = block.find("same mistake", at + 1)) {
    ++same;
  }
  EXPECT_EQ(same, 1U);
  EXPECT_THAT(block, Not(HasSubstr("win 54\n")));
  EXPECT_THAT(block, HasSubstr("win 55\n"));
  EXPECT_LT(block.find("mistake 58"), block.find("mistake 59"));
  EXPECT_THAT(MemoryBlock(memory, {Kind::kFact}), IsEmpty());
}

}  // namespace
}  // namespace kernelpro::agents::testing
