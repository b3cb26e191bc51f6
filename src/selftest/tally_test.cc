// SPDX-License-Identifier: Apache-2.0
#include "selftest/tally.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace kernelpro::selftest {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

FixtureResult Made(Verdict got, Verdict twin) {
  FixtureResult result;
  result.name = "no_op";
  result.attack = "does nothing";
  result.expected = {Verdict::kWrongResult, Verdict::kUnwrittenOutput};
  result.got = got;
  result.reason = got == Verdict::kOk ? "" : "the reason";
  result.twin = twin;
  result.twin_reason = twin == Verdict::kOk ? "" : "the twin's reason";
  result.ms = 12.5;
  return result;
}

FixtureResult NotPossible() {
  FixtureResult result = Made(Verdict::kInfrastructureError, Verdict::kInfrastructureError);
  result.possible = false;
  return result;
}

TEST(Tally, AnyExpectedVerdictIsRightAndNoOther) {
  EXPECT_TRUE(Made(Verdict::kWrongResult, Verdict::kOk).HostileRight());
  EXPECT_TRUE(Made(Verdict::kUnwrittenOutput, Verdict::kOk).HostileRight());
  EXPECT_FALSE(Made(Verdict::kOk, Verdict::kOk).HostileRight());
  EXPECT_FALSE(Made(Verdict::kInfrastructureError, Verdict::kOk).HostileRight());
}

TEST(Tally, OneThatPassesSpoilsTheWhole) {
  const FixtureResult good = Made(Verdict::kWrongResult, Verdict::kOk);
  const Tally all = Count({good, good, NotPossible()});
  EXPECT_EQ(all.total, 2U);
  EXPECT_EQ(all.not_possible, 1U);
  EXPECT_TRUE(all.AllRight());
  EXPECT_EQ(Summary(all),
            "2 of 2 hostile fixtures got their verdict, 2 of 2 twins pass (1 not possible here)");
  const Tally passed = Count({good, Made(Verdict::kOk, Verdict::kOk)});
  EXPECT_FALSE(passed.AllRight());
  EXPECT_EQ(Summary(passed), "1 of 2 hostile fixtures got their verdict, 2 of 2 twins pass");
  EXPECT_FALSE(Count({good, Made(Verdict::kWrongResult, Verdict::kTimeout)}).AllRight());
}

TEST(Tally, NothingRunIsNoSuccess) {
  EXPECT_FALSE(Count({}).AllRight());
  EXPECT_FALSE(Count({NotPossible()}).AllRight());
}

TEST(Table, ReasonsStandBelowWhatIsWrongOnly) {
  EXPECT_THAT(TableRow(Made(Verdict::kWrongResult, Verdict::kOk), 10), Not(HasSubstr("reason")));
  const std::string bad = TableRow(Made(Verdict::kRace, Verdict::kTimeout), 10);
  EXPECT_THAT(bad, HasSubstr("BAD"));
  EXPECT_THAT(bad, HasSubstr("hostile: the reason"));
  EXPECT_THAT(bad, HasSubstr("twin: the twin's reason"));
  EXPECT_THAT(TableRow(Made(Verdict::kOk, Verdict::kOk), 10), HasSubstr("hostile: passed"));
  EXPECT_THAT(TableRow(NotPossible(), 10), HasSubstr("not possible here"));
}

TEST(Json, HasTheDocumentedForm) {
  const auto json =
      ResultsJson("emulator:h200", {Made(Verdict::kWrongResult, Verdict::kOk), NotPossible()});
  EXPECT_EQ(json["device"], "emulator:h200");
  EXPECT_EQ(json["total"], 1);
  EXPECT_EQ(json["hostile_right"], 1);
  EXPECT_EQ(json["twins_right"], 1);
  const auto& first = json["fixtures"][0];
  EXPECT_EQ(first["expected"][1], "unwritten_output");
  EXPECT_EQ(first["got"], "wrong_result");
  EXPECT_EQ(first["reason"], "the reason");
  EXPECT_EQ(first["twin"], "ok");
  EXPECT_EQ(first["ms"], 12.5);
  EXPECT_TRUE(json["fixtures"][1]["got"].is_null());
  EXPECT_EQ(json["fixtures"][1]["reason"], "not possible here");
}

}  // namespace
}  // namespace kernelpro::selftest
