// SPDX-License-Identifier: Apache-2.0
#include "selftest/fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/file.h"

namespace kernelpro::selftest {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kWhole = R"(task = "scale_add"
attack = "does nothing"
expected = ["wrong_result", "policy_violation"]
expected_emulator = ["unwritten_output"]
devices = ["emulator", "cuda"]
flags = ["-use_fast_math"]
twin_flags = ["-O2"]
quick = true
)";

std::string Edited(const std::string& from, const std::string& to) {
  std::string text = kWhole;
  text.replace(text.find(from), from.size(), to);
  return text;
}

TEST(ParseFixture, ReadsEveryKey) {
  const auto fixture = ParseFixture(kWhole, "fixture.toml");
  ASSERT_TRUE(fixture.ok()) << fixture.error().message;
  EXPECT_EQ(fixture->task, "scale_add");
  EXPECT_EQ(fixture->attack, "does nothing");
  EXPECT_THAT(fixture->ExpectedOn(false),
              ElementsAre(Verdict::kWrongResult, Verdict::kPolicyViolation));
  EXPECT_THAT(fixture->ExpectedOn(true), ElementsAre(Verdict::kUnwrittenOutput));
  EXPECT_THAT(fixture->flags, ElementsAre("-use_fast_math"));
  EXPECT_THAT(fixture->twin_flags, ElementsAre("-O2"));
  EXPECT_TRUE(fixture->quick);
}

TEST(ParseFixture, OptionalKeysMayBeAbsent) {
  const auto fixture = ParseFixture(
      "task = \"t\"\nattack = \"a\"\nexpected = [\"race\"]\ndevices = [\"cuda\"]\n", "f");
  ASSERT_TRUE(fixture.ok()) << fixture.error().message;
  EXPECT_FALSE(fixture->PossibleOn(true));
  EXPECT_TRUE(fixture->PossibleOn(false));
  EXPECT_THAT(fixture->ExpectedOn(true), ElementsAre(Verdict::kRace));
  EXPECT_THAT(fixture->flags, IsEmpty());
  EXPECT_FALSE(fixture->quick);
}

struct Bad {
  const char* from;
  const char* to;
  const char* message;
};

class BadFixture : public ::testing::TestWithParam<Bad> {};

TEST_P(BadFixture, IsRefusedWithFileAndLine) {
  const auto fixture = ParseFixture(Edited(GetParam().from, GetParam().to), "a/fixture.toml");
  ASSERT_FALSE(fixture.ok());
  EXPECT_THAT(fixture.error().message, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Each, BadFixture,
    ::testing::Values(Bad{"task =", "tusk =", "a/fixture.toml:1: unknown key \"tusk\""},
                      Bad{"\"scale_add\"", "\"../scale_add\"", "a/fixture.toml:1: "},
                      Bad{"\"wrong_result\"", "\"wrong\"", "a/fixture.toml:3: \"expected\""},
                      Bad{"\"wrong_result\"", "\"ok\"", "a/fixture.toml:3: \"expected\""},
                      Bad{"\"unwritten_output\"", "", "a/fixture.toml:4: \"expected_emulator\""},
                      Bad{"\"cuda\"", "\"tpu\"", "a/fixture.toml:5: unknown device \"tpu\""},
                      Bad{"devices = [\"emulator\", \"cuda\"]", "", "\"devices\" is missing"},
                      Bad{"[\"-O2\"]", "\"-O2\"", "a/fixture.toml:7: "},
                      Bad{"quick = true", "quick = 1", "a/fixture.toml:8: "},
                      Bad{"quick = true", "quick = ", "a/fixture.toml:8: "}));

class SuiteFolder : public ::testing::Test {
 protected:
  SuiteFolder() : folder_(TemporaryFolder::Create("kp-suite").value()) {}

  void Put(const std::string& file, const std::string& text) const {
    ASSERT_TRUE(WriteFileAtomically(folder_.path() / file, text).ok());
  }

  void PutFixture(const std::string& name, const std::string& toml) const {
    Put("fixtures/" + name + "/fixture.toml", toml);
    Put("fixtures/" + name + "/hostile.cu", "");
    Put("fixtures/" + name + "/twin.cu", "");
    Put("tasks/scale_add/task.toml", "");
  }

  TemporaryFolder folder_;
};

TEST_F(SuiteFolder, FixturesComeByName) {
  PutFixture("second", kWhole);
  PutFixture("first", Edited("quick = true", ""));
  const auto fixtures = LoadFixtures(folder_.path());
  ASSERT_TRUE(fixtures.ok()) << fixtures.error().message;
  ASSERT_EQ(fixtures->size(), 2U);
  EXPECT_EQ((*fixtures)[0].name, "first");
  EXPECT_EQ((*fixtures)[1].folder, folder_.path() / "fixtures" / "second");
  EXPECT_EQ(Select(*fixtures, "", false).size(), 2U);
  EXPECT_EQ(Select(*fixtures, "", true).size(), 1U);
  EXPECT_EQ(Select(*fixtures, "f*", false).size(), 1U);
  EXPECT_THAT(Select(*fixtures, "f*", true), IsEmpty());
}

TEST_F(SuiteFolder, WhatIsMissingIsNamed) {
  EXPECT_EQ(LoadFixtures(folder_.path()).error().code, ErrorCode::kNotFound);
  PutFixture("first", kWhole);
  std::filesystem::remove(folder_.path() / "fixtures/first/twin.cu");
  const auto no_twin = LoadFixtures(folder_.path());
  ASSERT_FALSE(no_twin.ok());
  EXPECT_THAT(no_twin.error().message, HasSubstr("twin.cu"));
  PutFixture("first", Edited("scale_add", "no_such_task"));
  const auto no_task = LoadFixtures(folder_.path());
  ASSERT_FALSE(no_task.ok());
  EXPECT_THAT(no_task.error().message, HasSubstr("no_such_task"));
}

TEST(RealSuite, IsWholeAndLargeEnough) {
  const auto suite = FindSuite(KP_SOURCE_DIR "/tests/exploits");
  ASSERT_TRUE(suite.ok());
  const auto fixtures = LoadFixtures(*suite);
  ASSERT_TRUE(fixtures.ok()) << fixtures.error().message;
  EXPECT_GE(fixtures->size(), 70U);
  EXPECT_GE(Select(*fixtures, "", true).size(), 20U);
  for (const Fixture& fixture : *fixtures) {
    EXPECT_TRUE(!fixture.quick || fixture.on_emulator) << fixture.name;
    EXPECT_FALSE(fixture.attack.empty()) << fixture.name;
    EXPECT_NE(ReadFile(fixture.folder / "hostile.cu").value(),
              ReadFile(fixture.folder / "twin.cu").value())
        << fixture.name;
  }
}

}  // namespace
}  // namespace kernelpro::selftest
