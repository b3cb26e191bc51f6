// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/text.h"
#include "diagnose/rules/formula.h"

namespace kernelpro::diagnose {

/// Recursive descent; a depth above kDeepest is refused.
class FormulaParser {
 public:
  explicit FormulaParser(std::string_view text) : text_(text) { formula_.text_ = text; }

  Result<Formula> Run() {
    if (text_.size() > kLongest) {
      return Fail(ErrorCode::kParse, fmt::format("a formula of more than {} characters", kLongest));
    }
    KP_ASSIGN_OR_RETURN(formula_.root_, Choice());
    Skip();
    if (at_ != text_.size()) {
      return Expected("an operator");
    }
    return std::move(formula_);
  }

 private:
  using Op = Formula::Op;
  using Index = Result<std::uint32_t>;
  static constexpr std::size_t kLongest = 4096;
  static constexpr int kDeepest = 64;

  struct Binary {
    std::string_view word;
    Op op;
  };

  struct Function {
    std::string_view name;
    Op op;
    std::size_t least, most;  ///< arguments
  };

  static constexpr std::array<Function, 11> kFunctions = {{{"min", Op::kMin, 1, 16},
                                                           {"max", Op::kMax, 1, 16},
                                                           {"abs", Op::kAbs, 1, 1},
                                                           {"sqrt", Op::kSqrt, 1, 1},
                                                           {"log2", Op::kLog2, 1, 1},
                                                           {"floor", Op::kFloor, 1, 1},
                                                           {"ceil", Op::kCeil, 1, 1},
                                                           {"clamp", Op::kClamp, 3, 3},
                                                           {"ramp", Op::kRamp, 3, 3},
                                                           {"stall", Op::kStall, 1, 1},
                                                           {"occ", Op::kOcc, 2, 2}}};
  static constexpr std::array<std::string_view, 10> kResources = {
      "dram", "l2", "l1", "lsu", "tensor", "fma", "alu", "fp64", "xu", "issue"};

  [[nodiscard]] Error Expected(std::string_view what) const {
    return Fail(ErrorCode::kParse, fmt::format("column {}: expected {} in \"{}\"", at_ + 1, what,
                                               Printable(text_, 200)));
  }

  void Skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) {
      ++at_;
    }
  }

  bool Take(std::string_view word) {
    Skip();
    if (!text_.substr(at_).starts_with(word)) {
      return false;
    }
    at_ += word.size();
    return true;
  }

  std::uint32_t Add(Op op, std::vector<std::uint32_t> children, double number = 0) {
    Formula::Node node;
    node.op = op;
    node.number = number;
    node.children = std::move(children);
    formula_.nodes_.push_back(std::move(node));
    return static_cast<std::uint32_t>(formula_.nodes_.size() - 1);
  }

  Index Choice() {
    if (++depth_ > kDeepest) {
      return Fail(ErrorCode::kParse, fmt::format("nested deeper than {}", kDeepest));
    }
    KP_ASSIGN_OR_RETURN(std::uint32_t value, Level(0));
    while (Take("??")) {
      KP_ASSIGN_OR_RETURN(const std::uint32_t otherwise, Level(0));
      value = Add(Op::kElse, {value, otherwise});
    }
    Skip();
    if (at_ < text_.size() && text_[at_] == '?' && !text_.substr(at_).starts_with("??")) {
      ++at_;
      KP_ASSIGN_OR_RETURN(const std::uint32_t yes, Choice());
      if (!Take(":")) {
        return Expected("':'");
      }
      KP_ASSIGN_OR_RETURN(const std::uint32_t no, Choice());
      value = Add(Op::kChoose, {value, yes, no});
    }
    --depth_;
    return value;
  }

  /// Binary operators of one precedence, left to right; longer words stand before their prefixes.
  [[nodiscard]] static const std::vector<Binary>& Operators(std::size_t level) {
    static const std::vector<std::vector<Binary>> kLevels = {
        {{"||", Op::kOr}},
        {{"&&", Op::kAnd}},
        {{"<=", Op::kLessEqual},
         {">=", Op::kGreaterEqual},
         {"==", Op::kEqual},
         {"!=", Op::kNotEqual},
         {"<", Op::kLess},
         {">", Op::kGreater}},
        {{"+", Op::kAdd}, {"-", Op::kSubtract}},
        {{"*", Op::kMultiply}, {"/", Op::kDivide}},
    };
    static const std::vector<Binary> kNone;
    return level < kLevels.size() ? kLevels[level] : kNone;
  }

  Index Level(std::size_t level) {
    const std::vector<Binary>& operators = Operators(level);
    if (operators.empty()) {
      return Unary();
    }
    KP_ASSIGN_OR_RETURN(std::uint32_t left, Level(level + 1));
    while (true) {
      const auto found =
          std::ranges::find_if(operators, [&](const Binary& b) { return Take(b.word); });
      if (found == operators.end()) {
        return left;
      }
      KP_ASSIGN_OR_RETURN(const std::uint32_t right, Level(level + 1));
      left = Add(found->op, {left, right});
    }
  }

  Index Unary() {
    if (++depth_ > kDeepest) {
      return Fail(ErrorCode::kParse, fmt::format("nested deeper than {}", kDeepest));
    }
    Skip();
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    if (c == '-' || c == '!') {
      ++at_;
      KP_ASSIGN_OR_RETURN(const std::uint32_t operand, Unary());
      --depth_;
      return Add(c == '-' ? Op::kNegate : Op::kNot, {operand});
    }
    KP_ASSIGN_OR_RETURN(const std::uint32_t value, Primary());
    --depth_;
    return value;
  }

  [[nodiscard]] std::string_view Word() {
    Skip();
    const std::size_t start = at_;
    while (at_ < text_.size() && (IsWordCharacter(text_[at_]) || text_[at_] == '.')) {
      ++at_;
    }
    return text_.substr(start, at_ - start);
  }

  static bool IsWordCharacter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }

  Index Primary() {
    if (Take("(")) {
      KP_ASSIGN_OR_RETURN(const std::uint32_t inner, Choice());
      if (!Take(")")) {
        return Expected("')'");
      }
      return inner;
    }
    const std::size_t start = at_;
    const std::string_view word = Word();
    if (word.empty()) {
      return Expected("a number, a name or '('");
    }
    if ((word[0] >= '0' && word[0] <= '9') || word[0] == '.') {
      double number = 0;
      if (!ParseDouble(word, &number)) {
        at_ = start;
        return Expected("a number");
      }
      return Add(Op::kNumber, {}, number);
    }
    if (Take("(")) {
      return Call(word);
    }
    return Name(Op::kName, word);
  }

  std::uint32_t Name(Op op, std::string_view word) {
    const auto found = std::ranges::find(formula_.names_, word);
    const auto index = static_cast<std::uint32_t>(found - formula_.names_.begin());
    if (found == formula_.names_.end()) {
      formula_.names_.emplace_back(word);
    }
    const std::uint32_t node = Add(op, {});
    formula_.nodes_[node].name = index;
    return node;
  }

  Index Call(std::string_view word) {
    if (word == "has") {
      const std::string_view name = Word();
      if (name.empty() || !Take(")")) {
        return Expected("a name and ')'");
      }
      return Name(Op::kHas, name);
    }
    if (word == "rewrite") {
      return Take(")") ? Index(Add(Op::kRewrite, {})) : Index(Expected("')'"));
    }
    if (word == "cut") {
      return CutCall();
    }
    const auto function = std::ranges::find(kFunctions, word, &Function::name);
    if (function == kFunctions.end()) {
      return Fail(ErrorCode::kParse,
                  fmt::format("column {}: there is no function '{}'", at_, Printable(word, 40)));
    }
    std::vector<std::uint32_t> arguments;
    do {
      KP_ASSIGN_OR_RETURN(const std::uint32_t argument, Choice());
      arguments.push_back(argument);
    } while (Take(","));
    if (!Take(")")) {
      return Expected("',' or ')'");
    }
    if (arguments.size() < function->least || arguments.size() > function->most) {
      return Fail(ErrorCode::kParse, fmt::format("column {}: {}() takes {} arguments, not {}", at_,
                                                 word, function->least, arguments.size()));
    }
    return Add(function->op, std::move(arguments));
  }

  /// cut(l1 = 0.5, issue = w)
  Index CutCall() {
    Formula::Node node;
    node.op = Op::kCut;
    do {
      const std::string_view word = Word();
      const auto resource = std::ranges::find(kResources, word);
      if (resource == kResources.end() || !Take("=")) {
        return Expected("RESOURCE = SHARE (dram l2 l1 lsu tensor fma alu fp64 xu issue)");
      }
      KP_ASSIGN_OR_RETURN(const std::uint32_t share, Choice());
      node.children.push_back(share);
      node.resources.push_back(static_cast<std::uint8_t>(resource - kResources.begin()));
    } while (Take(","));
    if (!Take(")")) {
      return Expected("',' or ')'");
    }
    formula_.nodes_.push_back(std::move(node));
    return static_cast<std::uint32_t>(formula_.nodes_.size() - 1);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  Formula formula_;
};

Result<Formula> Formula::Parse(std::string_view text) {
  return FormulaParser(text).Run();
}

}  // namespace kernelpro::diagnose
