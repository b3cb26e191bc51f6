// SPDX-License-Identifier: Apache-2.0
// Rules as data: what a formula means with missing values, what a rule says, and what a wrong rule
// file is told.
#include "diagnose/rules/rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "base/rng.h"
#include "diagnose/diagnose.h"
#include "diagnose/rules/formula.h"
#include "diagnose/rules/template.h"
#include "diagnose/test_profiles.h"

namespace kernelpro {
namespace {

using diagnose::Formula;
using diagnose::FormulaScope;
using diagnose::ParseRule;
using diagnose::Template;
using ::testing::HasSubstr;
using testing::ProfileBuilder;

std::optional<double> Value(const std::string& text,
                            const std::map<std::string, double>& values = {}) {
  const Result<Formula> formula = Formula::Parse(text);
  EXPECT_TRUE(formula.ok()) << text << ": " << (formula.ok() ? "" : formula.error().message);
  if (!formula) {
    return std::nullopt;
  }
  FormulaScope scope;
  scope.use = {.dram = 0.5, .l1 = 0.9, .issue = 0.2};
  scope.value = [&](std::string_view name) -> std::optional<double> {
    const auto found = values.find(std::string(name));
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
  return formula->Evaluate(scope);
}

TEST(Formula, ComputesLikeArithmetic) {
  EXPECT_DOUBLE_EQ(*Value("1 + 2 * 3 - 4 / 8"), 6.5);
  EXPECT_DOUBLE_EQ(*Value("(1 + 2) * -3"), -9);
  EXPECT_DOUBLE_EQ(*Value("2 < 3 && 3 <= 3 || 0"), 1);
  EXPECT_DOUBLE_EQ(*Value("1 > 2 ? 10 : 2 > 1 ? 20 : 30"), 20);
  EXPECT_DOUBLE_EQ(*Value("max(1, 5, 3) - min(4, 2)"), 3);
  EXPECT_DOUBLE_EQ(*Value("ramp(0.5, 0, 2) + clamp(7, 0, 1) + ceil(1.2) + log2(8)"), 6.25);
  EXPECT_DOUBLE_EQ(*Value("!0 + abs(-2) + sqrt(9) + floor(1.9)"), 7);
  EXPECT_DOUBLE_EQ(*Value("a__b.sum / 4", {{"a__b.sum", 8}}), 2);
}

TEST(Formula, MissingValuesSpreadUntilSomebodyAsks) {
  EXPECT_FALSE(Value("x + 1"));
  EXPECT_FALSE(Value("x > 1 ? 1 : 2"));
  EXPECT_FALSE(Value("1 / 0"));
  EXPECT_FALSE(Value("log2(0 - 1)"));
  EXPECT_DOUBLE_EQ(*Value("x ?? 3"), 3);
  EXPECT_DOUBLE_EQ(*Value("1 / 0 ?? 2"), 2);
  EXPECT_DOUBLE_EQ(*Value("y ?? 2 * x ?? 7", {{"x", 3}}), 6);
  EXPECT_DOUBLE_EQ(*Value("(y ?? 2) * 3 > 5 ? 1 : 0"), 1);
  EXPECT_DOUBLE_EQ(*Value("max(x, 2)"), 2);
  EXPECT_DOUBLE_EQ(*Value("has(x)"), 0);
  EXPECT_DOUBLE_EQ(*Value("has(x)", {{"x", 0}}), 1);
  EXPECT_DOUBLE_EQ(*Value("0 && x"), 0);
  EXPECT_DOUBLE_EQ(*Value("x || 1"), 1);
  EXPECT_FALSE(Value("1 && x"));
}

TEST(Formula, BoundsAreThoseOfTheOtherTools) {
  EXPECT_DOUBLE_EQ(*Value("cut(l1 = 0.5)"), std::min(0.5, 1 - 0.5));
  EXPECT_DOUBLE_EQ(*Value("cut(l1 = 0.9)"), 0.5);  // DRAM stays at 0.5
  EXPECT_NEAR(*Value("stall(0.3)"), 0.1, 1e-12);   // L1 is busy 0.9
  EXPECT_DOUBLE_EQ(*Value("occ(0.5, 1)"), 1 - 0.9);
  EXPECT_FALSE(Value("cut(l1 = x)"));
}

TEST(Formula, WrongTextIsRefusedWithItsColumn) {
  for (const char* text : {"", "1 +", "(1", "foo(1)", "ramp(1, 2)", "cut(tape = 1)", "1 2", "a ? b",
                           "has()", "1..2", "cut()", "max()", "@"}) {
    EXPECT_FALSE(Formula::Parse(text).ok()) << text;
  }
  EXPECT_THAT(Formula::Parse("1 + @").error().message, HasSubstr("column 5"));
  EXPECT_FALSE(Formula::Parse(std::string(100, '(') + "1" + std::string(100, ')')).ok());
  EXPECT_FALSE(Formula::Parse(std::string(5000, '1')).ok());
}

TEST(Formula, AnyTextIsSafe) {
  Rng rng(7);
  const std::string alphabet = "ab(),.?:<>=!&|+-*/0123456789 _cutrampstallhas";
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (std::uint64_t n = rng.Below(40); n > 0; --n) {
      text += alphabet[rng.Below(alphabet.size())];
    }
    if (const Result<Formula> formula = Formula::Parse(text); formula.ok()) {
      FormulaScope scope;
      scope.value = [](std::string_view) { return std::optional(0.5); };
      const std::optional<double> value = formula->Evaluate(scope);
      EXPECT_TRUE(!value || std::isfinite(*value)) << text;
    }
  }
}

TEST(Template, FillsFiguresAndWords) {
  const Template::Values values = {
      [](std::string_view name) {
        return name == "a" ? std::optional(0.25) : std::optional<double>();
      },
      [](std::string_view name) {
        return name == "kernel" ? std::optional<std::string>("k") : std::nullopt;
      }};
  const auto fill = [&](const char* text) { return Template::Parse(text).value().Fill(values); };
  EXPECT_EQ(fill("{kernel}: {a:%} {a:2} {a:x} {b:1} {{a}}"), "k: 25 % 0.25 0.25x unknown {a}");
  EXPECT_FALSE(Template::Parse("{a").ok());
  EXPECT_FALSE(Template::Parse("{a:z}").ok());
  EXPECT_FALSE(Template::Parse("{}").ok());
}

constexpr const char* kRule = R"x(id = "my.rule"
title = "Too much of it"
source = "mine"
needs = ["sm__much.sum"]
severity = "ramp(much, 0, 10)"
bound = "cut(l1 = 0.5)"
seen = "{much:0} of it in {kernel}."
why = "Because."
do = ["Do less of it.", "Or none."]
check = "metric sm__much.sum should fall from {much:0}."
avoid = "Do not do more."
[let]
much = "sm__much.sum / 2"
[[case]]
when = "much > 8"
seen = "Far too much: {much:0}."
)x";

std::optional<Finding> Fire(const std::string& toml, double much) {
  const auto tool = ParseRule(toml, "my.toml");
  EXPECT_TRUE(tool.ok()) << (tool.ok() ? "" : tool.error().message);
  ProfileBuilder builder;
  builder.Set("sm__much.sum", much)
      .Set("l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed", 90);
  const Diagnosis d = Diagnose(builder.Profile(), testing::H200Hardware(), {tool.value().get()});
  return d.findings.empty() ? std::nullopt : std::optional(d.findings.front());
}

TEST(Rule, FiresWithItsFiguresAndIsSilentWithout) {
  const auto f = Fire(kRule, 12);
  ASSERT_TRUE(f.has_value());
  EXPECT_EQ(f->id, "my.rule");
  EXPECT_EQ(f->seen, "6 of it in kernel.");
  EXPECT_EQ(f->action, "Do less of it.");
  EXPECT_DOUBLE_EQ(f->severity, 0.6);
  EXPECT_DOUBLE_EQ(f->bound, 0.5);
  EXPECT_DOUBLE_EQ(f->evidence.at("much"), 6);
  EXPECT_FALSE(Fire(kRule, 1).has_value()) << "below the least severity";
}

TEST(Rule, ACaseOverridesWhatItNames) {
  const auto f = Fire(kRule, 18);
  ASSERT_TRUE(f.has_value());
  EXPECT_EQ(f->seen, "Far too much: 9.");
  EXPECT_EQ(f->why, "Because.");
}

std::string ErrorOf(std::string toml, const std::string& from, const std::string& to) {
  const std::size_t at = toml.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  toml.replace(at, from.size(), to);
  const auto tool = ParseRule(toml, "my.toml");
  EXPECT_FALSE(tool.ok()) << to;
  return tool.ok() ? "" : tool.error().message;
}

TEST(Rule, WrongFilesAreToldWhereAndWhatIsAllowed) {
  EXPECT_THAT(ErrorOf(kRule, "my.rule", "My Rule"), HasSubstr("my.toml:1"));
  EXPECT_THAT(ErrorOf(kRule, "title", "titel"), HasSubstr("my.toml:2"));
  EXPECT_THAT(ErrorOf(kRule, "\"ramp(much, 0, 10)\"", "\"ramp(muhc, 0, 10)\""), HasSubstr("muhc"));
  EXPECT_THAT(ErrorOf(kRule, "\"ramp(much, 0, 10)\"", "\"ramp(much\""), HasSubstr("my.toml:5"));
  EXPECT_THAT(ErrorOf(kRule, "{much:0} of it", "{moch:0} of it"), HasSubstr("moch"));
  EXPECT_THAT(ErrorOf(kRule, "why = \"Because.\"\n", ""), HasSubstr("\"why\""));
  EXPECT_THAT(ErrorOf(kRule, "when = \"much > 8\"\n", ""), HasSubstr("when"));
  EXPECT_THAT(ErrorOf(kRule, "source = \"mine\"\n", ""), HasSubstr("source"));
}

TEST(Rule, EveryBuiltInToolIsDocumented) {
  for (const auto& tool : BuiltInTools()) {
    const ToolDocument d = tool->document();
    EXPECT_FALSE(d.looks_for.empty()) << tool->id();
    EXPECT_FALSE(d.source.empty()) << tool->id();
    EXPECT_FALSE(d.severity.empty()) << tool->id();
    EXPECT_FALSE(d.bound.empty()) << tool->id();
    EXPECT_FALSE(d.fires.empty()) << tool->id();
    EXPECT_FALSE(d.silent.empty()) << tool->id();
  }
}

}  // namespace
}  // namespace kernelpro
