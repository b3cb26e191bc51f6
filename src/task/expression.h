// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "task/task.h"

namespace kernelpro {

/// An arithmetic expression over axes, parsed once: + - * / % ( ), integers and decimals, min, max,
/// ceil_div. `/` divides real numbers ("7 / 2" is 3.5); `%` is the remainder with the sign of the
/// dividend. Nothing recurses without a limit, so any text is safe to parse.
class Expression {
 public:
  /// kParse, with the column where it went wrong.
  [[nodiscard]] static Result<Expression> Parse(std::string_view text);

  /// Axes that it names, in order of first use.
  [[nodiscard]] const std::vector<std::string>& axes() const { return axes_; }

  /// kInvalidArgument: an axis without a value, division by zero, or a result that is not finite.
  [[nodiscard]] Result<double> Evaluate(const AxisValues& values) const;

 private:
  friend class ExpressionParser;

  enum class Op : std::uint8_t {
    kNumber,
    kAxis,
    kNegate,
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kRemainder,
    kMin,
    kMax,
    kCeilDiv,
  };

  struct Step {
    Op op = Op::kNumber;
    double number = 0;
    std::uint32_t axis = 0;
  };

  /// The value of a binary operation; an Error for division by zero.
  [[nodiscard]] static Result<double> Apply(Op op, double a, double b);

  std::vector<Step> steps_;  ///< postfix order
  std::vector<std::string> axes_;
};

}  // namespace kernelpro
