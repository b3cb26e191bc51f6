// SPDX-License-Identifier: Apache-2.0
#include "search/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "search/outcome.h"

namespace kernelpro::search {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

store::NodeRecord Node(store::NodeId id, store::NodeId parent, double time_us,
                       const std::string& verdict = "ok") {
  store::NodeRecord node;
  node.id = id;
  node.parent = parent;
  node.action = "act" + std::to_string(id);
  node.done = true;
  node.verdict = verdict;
  node.time_us = time_us;
  node.provenance = "modelled";
  return node;
}

std::vector<std::string> Texts(const std::vector<Lesson>& lessons) {
  std::vector<std::string> texts;
  for (const Lesson& lesson : lessons) {
    texts.push_back(std::string(Name(lesson.kind)) + ": " + lesson.text);
  }
  return texts;
}

TEST(Memory, EveryResultIsALesson) {
  std::vector<store::NodeRecord> nodes = {Node(1, 0, 100), Node(2, 1, 50),
                                          Node(3, 1, 80),  Node(4, 2, 50.5),
                                          Node(5, 2, 75),  Node(6, 2, 0, "race"),
                                          Node(7, 6, 49),  Node(8, 1, 0, "infrastructure_error"),
                                          Node(9, 2, 0),   Node(10, 3, 0, "unsupported")};
  nodes[2].finding = "mem.reuse";
  nodes[5].verdict_reason = "two writers\nof y[3]\x1b";
  nodes[8].done = false;
  nodes[8].verdict = "";
  EXPECT_THAT(Texts(Remember(nodes, {})),
              ElementsAre("win: node 2, act2: the best so far, 2.000x of node 1 (50 us modelled)",
                          "win: node 3, act3 (for mem.reuse): faster, 1.250x of node 1 (80 us "
                          "modelled)",
                          "dead_end: node 4, act4: no difference, 0.990x of node 2 (50.5 us "
                          "modelled)",
                          "dead_end: node 5, act5: slower, 0.667x of node 2 (75 us modelled)",
                          "error: node 6, act6: race: two writers",
                          "win: node 7, act7: right, after 6 was race; 49 us modelled",
                          "error: node 10, act10: unsupported: "));
}

TEST(Memory, ALittleFasterThanAllIsTheBestSoFarAndThanTheParentOnlyIsNoWin) {
  // 1% faster than its parent both times; once that is a record, once it is not.
  const std::vector<store::NodeRecord> nodes = {Node(1, 0, 100), Node(2, 1, 99), Node(3, 1, 110),
                                                Node(4, 3, 109)};
  const auto lessons = Remember(nodes, {});
  EXPECT_THAT(lessons[0].text, HasSubstr("the best so far"));
  EXPECT_EQ(lessons[0].kind, Lesson::Kind::kWin);
  EXPECT_THAT(lessons[2].text, HasSubstr("no difference"));
  EXPECT_EQ(lessons[2].kind, Lesson::Kind::kDeadEnd);
}

TEST(Memory, OldestFirstAndNothingTwice) {
  const std::vector<store::NodeRecord> nodes = {Node(1, 0, 100), Node(2, 1, 50), Node(3, 1, 40)};
  const auto lessons = Remember(nodes, {{1, 2, "fact", "about two"},
                                        {2, 1, "error", "about one"},
                                        {3, 3, "dead_end", "about two"},
                                        {4, 3, "who knows", "about three"}});
  EXPECT_THAT(Texts(lessons),
              ElementsAre("error: about one", StartsWith("win: node 2"), "fact: about two",
                          StartsWith("win: node 3"), "fact: about three"));
  EXPECT_EQ(lessons[2].node, 2);
}

TEST(Memory, IsSearchedByWords) {
  const std::vector<Lesson> lessons = {
      {Lesson::Kind::kFact, "shared memory has 32 banks", 1},
      {Lesson::Kind::kDeadEnd, "padding shared memory did not help", 2},
      {Lesson::Kind::kWin, "tile_64x64 helped", 3},
      {Lesson::Kind::kError, "forgot a barrier in Shared memory", 4}};
  EXPECT_THAT(
      Texts(SearchMemory(lessons, "SHARED banks", 9)),
      ElementsAre("fact: shared memory has 32 banks", "error: forgot a barrier in Shared memory",
                  "dead_end: padding shared memory did not help"))
      << "most words first, then the youngest";
  EXPECT_EQ(SearchMemory(lessons, "shared", 2).size(), 2U);
  EXPECT_THAT(Texts(SearchMemory(lessons, "tile_64x64!", 9)),
              ElementsAre("win: tile_64x64 helped"));
  EXPECT_THAT(Texts(SearchMemory(lessons, "dead_end", 9)),
              ElementsAre(StartsWith("dead_end: padding")));
  EXPECT_TRUE(SearchMemory(lessons, "cluster", 9).empty());
  EXPECT_THAT(Texts(SearchMemory(lessons, " ", 2)),
              ElementsAre(StartsWith("error: forgot"), StartsWith("win: tile")))
      << "all, youngest first";
}

class OutcomeTest : public ::testing::Test {
 protected:
  OutcomeTest() {
    parent.diagnosis = R"({"findings":[{"id":"mem.reuse","title":"No reuse","bound":0.5}]})";
    node.finding = "mem.reuse";
    assessment.evaluation.verdict = Verdict::kOk;
    assessment.evaluation.time_us = 60;
    assessment.feedback = "as it was";
    assessment.profile.kernels.resize(1);
    assessment.profile.kernels[0].name = "K";
  }

  std::string Feedback() {
    AddOutcome(node, with_parent ? &parent : nullptr, &assessment);
    return assessment.feedback;
  }

  store::NodeRecord parent = Node(1, 0, 100), node = Node(2, 1, 60);
  Assessment assessment;
  bool with_parent = true;
};

TEST_F(OutcomeTest, IsSaidOfAFindingOfTheParent) {
  const std::string feedback = Feedback();
  EXPECT_THAT(feedback, HasSubstr("LAST"));
  EXPECT_THAT(feedback, HasSubstr("No reuse"));
}

TEST_F(OutcomeTest, IsNotSaidOtherwise) {
  node.finding = "mem.other";
  EXPECT_EQ(Feedback(), "as it was");
  node.finding = "";
  EXPECT_EQ(Feedback(), "as it was");
  node.finding = "mem.reuse";
  with_parent = false;
  EXPECT_EQ(Feedback(), "as it was");
  with_parent = true;
  parent.time_us = 0;
  EXPECT_EQ(Feedback(), "as it was") << "there is nothing to compare with";
  parent.time_us = 100;
  assessment.evaluation.verdict = Verdict::kRace;
  EXPECT_EQ(Feedback(), "as it was");
  assessment.evaluation.verdict = Verdict::kOk;
  for (const char* broken : {"", "{}", "[]", "{\"findings\":[]}", "{\"findings\":["}) {
    parent.diagnosis = broken;
    EXPECT_EQ(Feedback(), "as it was") << broken;
  }
}

}  // namespace
}  // namespace kernelpro::search
