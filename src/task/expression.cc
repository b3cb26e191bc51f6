// SPDX-License-Identifier: Apache-2.0
#include "task/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/text.h"

namespace kernelpro {
namespace {

constexpr std::size_t kMaxLength = 4096;
constexpr int kMaxDepth = 64;

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

}  // namespace

/// Recursive descent that emits postfix steps:
///   sum = product {(+|-) product}   product = unary {(*|/|%) unary}   unary = [-|+] unary | atom
///   atom = number | axis | ( sum ) | min(sum, ...) | max(sum, ...) | ceil_div(sum, sum)
class ExpressionParser {
 public:
  explicit ExpressionParser(std::string_view text) : text_(text) {}

  Result<Expression> Run() {
    if (text_.size() > kMaxLength) {
      return Fail(ErrorCode::kParse, fmt::format("longer than {} characters", kMaxLength));
    }
    KP_RETURN_IF_ERROR(Sum(0));
    if (Peek() != '\0' || at_ < text_.size()) {
      return Unexpected("an operator");
    }
    return std::move(result_);
  }

 private:
  using Op = Expression::Op;

  /// Next character after blanks; '\0' at the end (a real NUL is caught by Run).
  char Peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) {
      ++at_;
    }
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  [[nodiscard]] Error Unexpected(std::string_view wanted) const {
    const std::string got =
        at_ < text_.size() ? "\"" + Printable(text_.substr(at_, 1), 8) + "\"" : "the end";
    return Fail(ErrorCode::kParse,
                fmt::format("expected {} at column {}, found {}", wanted, at_ + 1, got));
  }

  void Emit(Op op) { result_.steps_.push_back({.op = op, .number = 0, .axis = 0}); }

  Status Sum(int depth) {
    KP_RETURN_IF_ERROR(Product(depth));
    for (char c = Peek(); c == '+' || c == '-'; c = Peek()) {
      ++at_;
      KP_RETURN_IF_ERROR(Product(depth));
      Emit(c == '+' ? Op::kAdd : Op::kSubtract);
    }
    return Ok();
  }

  Status Product(int depth) {
    KP_RETURN_IF_ERROR(Unary(depth));
    for (char c = Peek(); c == '*' || c == '/' || c == '%'; c = Peek()) {
      ++at_;
      KP_RETURN_IF_ERROR(Unary(depth));
      Emit(c == '*' ? Op::kMultiply : c == '/' ? Op::kDivide : Op::kRemainder);
    }
    return Ok();
  }

  Status Unary(int depth) {
    bool negative = false;
    for (char c = Peek(); c == '+' || c == '-'; c = Peek()) {
      negative = negative != (c == '-');
      ++at_;
    }
    KP_RETURN_IF_ERROR(Atom(depth));
    if (negative) {
      Emit(Op::kNegate);
    }
    return Ok();
  }

  Status Atom(int depth) {
    if (depth >= kMaxDepth) {
      return Fail(ErrorCode::kParse,
                  fmt::format("more than {} nested parentheses at column {}", kMaxDepth, at_ + 1));
    }
    const char c = Peek();
    if (c == '(') {
      ++at_;
      KP_RETURN_IF_ERROR(Sum(depth + 1));
      return Expect(')');
    }
    if (IsDigit(c) || c == '.') {
      return Number();
    }
    if (IsLetter(c)) {
      return NameOrCall(depth);
    }
    return Unexpected("a number, an axis or \"(\"");
  }

  Status Expect(char wanted) {
    if (Peek() != wanted) {
      return Unexpected(fmt::format("\"{}\"", wanted));
    }
    ++at_;
    return Ok();
  }

  Status Number() {
    double value = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc()) {
      return Unexpected("a number");
    }
    at_ += static_cast<std::size_t>(end - begin);
    if (at_ < text_.size() && (IsLetter(text_[at_]) || text_[at_] == '.')) {
      return Unexpected("an operator after the number");
    }
    result_.steps_.push_back({.op = Op::kNumber, .number = value, .axis = 0});
    return Ok();
  }

  Status NameOrCall(int depth) {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (IsLetter(text_[at_]) || IsDigit(text_[at_]))) {
      ++at_;
    }
    const std::string name(text_.substr(begin, at_ - begin));
    if (Peek() == '(') {
      return Call(name, begin, depth);
    }
    auto& axes = result_.axes_;
    const auto found = std::ranges::find(axes, name);
    const auto index = static_cast<std::uint32_t>(found - axes.begin());
    if (found == axes.end()) {
      axes.push_back(name);
    }
    result_.steps_.push_back({.op = Op::kAxis, .number = 0, .axis = index});
    return Ok();
  }

  Status Call(const std::string& name, std::size_t begin, int depth) {
    const bool ceil_div = name == "ceil_div";
    if (!ceil_div && name != "min" && name != "max") {
      return Fail(ErrorCode::kParse,
                  fmt::format("unknown function \"{}\" at column {}; there are min, max, ceil_div",
                              name, begin + 1));
    }
    const Op op = ceil_div ? Op::kCeilDiv : name == "min" ? Op::kMin : Op::kMax;
    ++at_;
    int arguments = 0;
    do {
      if (arguments > 0) {
        ++at_;
      }
      KP_RETURN_IF_ERROR(Sum(depth + 1));
      ++arguments;
      if (arguments > 1) {
        Emit(op);
      }
    } while (Peek() == ',');
    KP_RETURN_IF_ERROR(Expect(')'));
    if (arguments < 2 || (ceil_div && arguments > 2)) {
      return Fail(ErrorCode::kParse,
                  fmt::format("{} at column {} takes {} values, {} given", name, begin + 1,
                              ceil_div ? "2" : "2 or more", arguments));
    }
    return Ok();
  }

  std::string_view text_;
  std::size_t at_ = 0;
  Expression result_;
};

Result<Expression> Expression::Parse(std::string_view text) {
  return ExpressionParser(text).Run();
}

Result<double> Expression::Apply(Op op, double a, double b) {
  const bool divides = op == Op::kDivide || op == Op::kRemainder || op == Op::kCeilDiv;
  if (divides && b == 0) {
    return Fail(ErrorCode::kInvalidArgument, "division by zero");
  }
  switch (op) {
    case Op::kAdd:
      return a + b;
    case Op::kSubtract:
      return a - b;
    case Op::kMultiply:
      return a * b;
    case Op::kDivide:
      return a / b;
    case Op::kRemainder:
      return std::fmod(a, b);
    case Op::kMin:
      return std::min(a, b);
    case Op::kMax:
      return std::max(a, b);
    case Op::kCeilDiv:
      return std::ceil(a / b);
    case Op::kNumber:
    case Op::kAxis:
    case Op::kNegate:
      break;
  }
  KP_CHECK(false) << "not a binary operation";
  return 0.0;
}

Result<double> Expression::Evaluate(const AxisValues& values) const {
  std::vector<double> stack;
  for (const Step& step : steps_) {
    if (step.op == Op::kNumber) {
      stack.push_back(step.number);
    } else if (step.op == Op::kAxis) {
      const auto found = values.find(axes_[step.axis]);
      if (found == values.end()) {
        return Fail(ErrorCode::kInvalidArgument,
                    fmt::format("axis \"{}\" has no value", axes_[step.axis]));
      }
      stack.push_back(static_cast<double>(found->second));
    } else if (step.op == Op::kNegate) {
      stack.back() = -stack.back();
    } else {
      const double b = stack.back();
      stack.pop_back();
      KP_ASSIGN_OR_RETURN(stack.back(), Apply(step.op, stack.back(), b));
    }
  }
  KP_CHECK(stack.size() == 1) << "unbalanced expression";
  if (!std::isfinite(stack.back())) {
    return Fail(ErrorCode::kInvalidArgument, "the value is too large for a number");
  }
  return stack.back();
}

Result<double> EvaluateExpression(std::string_view expression, const AxisValues& axes,
                                  std::string_view context) {
  const auto wrap = [&](Error error) {
    return std::move(error).Wrap(fmt::format("{} = \"{}\"", context, Printable(expression, 200)));
  };
  auto parsed = Expression::Parse(expression);
  if (!parsed) {
    return wrap(std::move(parsed).error());
  }
  auto value = parsed->Evaluate(axes);
  if (!value) {
    return wrap(std::move(value).error());
  }
  return value;
}

}  // namespace kernelpro
