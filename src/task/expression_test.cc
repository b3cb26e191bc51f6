// SPDX-License-Identifier: Apache-2.0
#include "task/expression.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace kernelpro {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const AxisValues kAxes = {{"rows", 7}, {"cols", 10}};

double Value(std::string_view text) {
  const auto value = EvaluateExpression(text, kAxes, "flops");
  EXPECT_TRUE(value.ok()) << text << ": " << (value.ok() ? "" : value.error().message);
  return value.ok() ? *value : std::nan("");
}

TEST(Expression, FollowsArithmetic) {
  EXPECT_EQ(Value("1 + 2 * 3"), 7);
  EXPECT_EQ(Value("(1 + 2) * 3"), 9);
  EXPECT_EQ(Value("2 - 3 - 4"), -5);
  EXPECT_EQ(Value("16 / 4 / 2"), 2);
  EXPECT_EQ(Value("7 / 2"), 3.5);
  EXPECT_EQ(Value("-7 % 4"), -3);
  EXPECT_EQ(Value("17 % 5 * 2"), 4);
  EXPECT_EQ(Value("--rows"), 7);
  EXPECT_EQ(Value("2 * -rows"), -14);
  EXPECT_EQ(Value("5*rows*cols"), 350);
  EXPECT_EQ(Value("min(rows, cols, 3)"), 3);
  EXPECT_EQ(Value("max(rows, cols)"), 10);
  EXPECT_EQ(Value("ceil_div(cols, 4)"), 3);
  EXPECT_EQ(Value("ceil_div(8, 4)"), 2);
  EXPECT_EQ(Value("1.5e3 + .5"), 1500.5);
}

TEST(Expression, SaysWhereItWentWrong) {
  const auto message = [](std::string_view text) {
    const auto value = EvaluateExpression(text, kAxes, "flops");
    return value.ok() ? std::string("no error") : value.error().message;
  };
  EXPECT_EQ(message("rows *"),
            "flops = \"rows *\": expected a number, an axis or \"(\" at column "
            "7, found the end");
  EXPECT_THAT(message(""), HasSubstr("found the end"));
  EXPECT_THAT(message("rows cols"), HasSubstr("column 6"));
  EXPECT_THAT(message("(rows"), HasSubstr("expected \")\""));
  EXPECT_THAT(message("depth"), HasSubstr("axis \"depth\" has no value"));
  EXPECT_THAT(message("pow(2, 3)"), HasSubstr("there are min, max, ceil_div"));
  EXPECT_THAT(message("ceil_div(1, 2, 3)"), HasSubstr("takes 2 values, 3 given"));
  EXPECT_THAT(message("min(1)"), HasSubstr("2 or more"));
  EXPECT_THAT(message("1 / (rows - 7)"), HasSubstr("division by zero"));
  EXPECT_THAT(message("rows % 0"), HasSubstr("division by zero"));
  EXPECT_THAT(message("1e300 * 1e300"), HasSubstr("too large"));
  EXPECT_THAT(message("1e999"), HasSubstr("number"));
  EXPECT_THAT(message("3rows"), HasSubstr("operator"));
  EXPECT_THAT(message("1.2.3"), HasSubstr("operator"));
  EXPECT_THAT(message(std::string_view("1\0", 2)), HasSubstr("column 2"));
}

TEST(Expression, LimitsDepthAndLength) {
  EXPECT_EQ(Value(std::string(60, '(') + "1" + std::string(60, ')')), 1);
  EXPECT_FALSE(EvaluateExpression(std::string(2000, '(') + "1", kAxes, "f").ok());
  EXPECT_EQ(Value(std::string(2000, '-') + "1"), 1) << "signs do not nest";
  EXPECT_FALSE(EvaluateExpression(std::string(5000, '1'), kAxes, "f").ok());
}

TEST(Expression, ListsItsAxes) {
  const auto parsed = Expression::Parse("cols * min(rows, cols) + depth");
  ASSERT_TRUE(parsed.ok());
  EXPECT_THAT(parsed->axes(), ElementsAre("cols", "rows", "depth"));
}

/// An expression made with its value, by the rules of arithmetic and without a parser.
struct Made {
  std::string text;
  double value = 0;
};

Made Make(int depth) {
  const int kind = *rc::gen::inRange(0, depth <= 0 ? 2 : 8);
  if (kind == 0) {
    const int number = *rc::gen::inRange(0, 1000);
    return {fmt::format("{}", number), static_cast<double>(number)};
  }
  if (kind == 1) {
    return *rc::gen::arbitrary<bool>() ? Made{"rows", 7} : Made{" cols ", 10};
  }
  const Made a = Make(depth - 1);
  const Made b = Make(depth - 1);
  switch (kind) {
    case 2:
      return {fmt::format("({} + {})", a.text, b.text), a.value + b.value};
    case 3:
      return {fmt::format("({}-{})", a.text, b.text), a.value - b.value};
    case 4:
      return {fmt::format("({} * {})", a.text, b.text), a.value * b.value};
    case 5:
      return {fmt::format("min({},{})", a.text, b.text), std::fmin(a.value, b.value)};
    case 6:
      return {fmt::format("max({}, {})", a.text, b.text), std::fmax(a.value, b.value)};
    default:
      return b.value == 0 ? a
                          : Made{fmt::format("ceil_div({}, {})", a.text, b.text),
                                 std::ceil(a.value / b.value)};
  }
}

TEST(Expression, AgreesWithTheValueItWasMadeWith) {
  EXPECT_TRUE(rc::check("value of a generated expression", [] {
    const Made made = Make(4);
    const auto value = EvaluateExpression(made.text, kAxes, "flops");
    if (std::isfinite(made.value)) {
      RC_ASSERT(value.ok());
      RC_ASSERT(*value == made.value);
    } else {
      RC_ASSERT(!value.ok());
    }
  }));
}

TEST(Expression, ChainsWithoutParenthesesGroupToTheLeft) {
  EXPECT_TRUE(rc::check("a op b op c with the usual precedence", [] {
    const int a = *rc::gen::inRange(1, 50);
    const int b = *rc::gen::inRange(1, 50);
    const int c = *rc::gen::inRange(1, 50);
    RC_ASSERT(Value(fmt::format("{}-{}-{}", a, b, c)) == a - b - c);
    RC_ASSERT(Value(fmt::format("{}+{}*{}", a, b, c)) == a + b * c);
    RC_ASSERT(Value(fmt::format("{}*{}%{}", a, b, c)) == (a * b) % c);
    RC_ASSERT(Value(fmt::format("-{}+{}", a, b)) == b - a);
  }));
}

TEST(Expression, AnyTextIsSafe) {
  EXPECT_TRUE(rc::check("characters that mean something to expressions", [] {
    const auto text = *rc::gen::container<std::string>(
        rc::gen::elementOf(std::string("()+-*/%,. 0123eEminaxceil_dvrows\n\0\x80", 36)));
    const auto value = EvaluateExpression(text, kAxes, "f");
    if (value.ok()) {
      RC_ASSERT(std::isfinite(*value));
    }
  }));
}

}  // namespace
}  // namespace kernelpro
