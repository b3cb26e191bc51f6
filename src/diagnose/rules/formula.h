// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "diagnose/bounds.h"

namespace kernelpro::diagnose {

/// What a formula's names and bound forms mean for one kernel.
struct FormulaScope {
  /// The value of a name; nothing when it is unknown.
  std::function<std::optional<double>(std::string_view)> value;
  Shares use;  ///< normalised utilisations, for cut(), stall(), occ() and rewrite()
};

/// An arithmetic expression over metrics, parsed once. Values are real numbers or missing.
///
///   ramp(1 - smsp__x.ratio / 32, 0.15, 0.75) * (share > 0.1 ? 1 : 0.5)
///
/// Names: letters, digits, '_' and '.', as in metric names. Operators, weakest first: `c ? a : b`,
/// `a ?? b` (b where a is missing), `||`, `&&`, comparisons, `+ -`, `* /`, `- !`. Functions: min,
/// max (of those present), abs, sqrt, log2, floor, ceil, clamp(x, a, b), ramp(x, a, b), has(name);
/// and the bound forms of bounds.h: cut(dram = w, l1 = w, ...), stall(s), occ(now, then),
/// rewrite().
///
/// A missing operand makes the result missing, and so do division by zero and any result that is
/// not finite. `&&` and `||` need only as much as decides them; a missing condition chooses neither
/// branch. Nothing recurses without a limit, so any text is safe to parse.
class Formula {
 public:
  /// kParse with the column where it went wrong.
  [[nodiscard]] static Result<Formula> Parse(std::string_view text);

  [[nodiscard]] std::optional<double> Evaluate(const FormulaScope& scope) const;

  /// Every name in it, in order of first use.
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  friend class FormulaParser;

  enum class Op : std::uint8_t {
    kNumber,
    kName,
    kHas,
    kNegate,
    kNot,
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kLess,
    kLessEqual,
    kGreater,
    kGreaterEqual,
    kEqual,
    kNotEqual,
    kAnd,
    kOr,
    kElse,  ///< ??
    kChoose,
    kMin,
    kMax,
    kAbs,
    kSqrt,
    kLog2,
    kFloor,
    kCeil,
    kClamp,
    kRamp,
    kCut,
    kStall,
    kOcc,
    kRewrite,
  };

  struct Node {
    Op op = Op::kNumber;
    double number = 0;
    std::uint32_t name = 0;
    std::vector<std::uint32_t> children;
    std::vector<std::uint8_t> resources;  ///< kCut: which share each child sets
  };

  [[nodiscard]] std::optional<double> Eval(std::uint32_t node, const FormulaScope& scope) const;
  [[nodiscard]] std::optional<double> Logic(const Node& node, const FormulaScope& scope) const;
  [[nodiscard]] std::optional<double> Extreme(const Node& node, const FormulaScope& scope) const;
  [[nodiscard]] std::optional<double> CutOf(const Node& node, const FormulaScope& scope) const;

  std::string text_;
  std::vector<Node> nodes_;
  std::uint32_t root_ = 0;
  std::vector<std::string> names_;
};

}  // namespace kernelpro::diagnose
