// SPDX-License-Identifier: Apache-2.0
//
// 1.0 / sqrt(v + 1e-5)          ->  1.0f / sqrtf(v + 1e-5f)
// double d = x[i] - mean;       ->  float d = x[i] - mean;
// pow(x[i] - mean, 2)           ->  Square(x[i] - mean), with Square a device function of its own
//
// A literal without a suffix is a double, and one double operand turns a whole expression into
// double-precision instructions. Only for tasks without float64 tensors.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/text.h"
#include "propose/playbook/analysis.h"
#include "propose/playbook/edits.h"
#include "propose/playbook/rewrite.h"

namespace kernelpro::playbook {
namespace {

/// C names of the double versions.
const std::map<std::string, std::string, std::less<>>& FloatNames() {
  static const std::map<std::string, std::string, std::less<>> kNames = {
      {"sqrt", "sqrtf"}, {"rsqrt", "rsqrtf"}, {"exp", "expf"},    {"exp2", "exp2f"},
      {"log", "logf"},   {"log2", "log2f"},   {"tanh", "tanhf"},  {"fabs", "fabsf"},
      {"fmax", "fmaxf"}, {"fmin", "fminf"},   {"pow", "powf"},    {"erf", "erff"},
      {"sin", "sinf"},   {"cos", "cosf"},     {"fma", "fmaf"},    {"floor", "floorf"},
      {"ceil", "ceilf"}, {"rint", "rintf"},   {"exp10", "exp10f"}};
  return kNames;
}

bool RunsOnDevice(const Node& function) {
  return (function.is_kernel || function.is_device) && Body(function) != nullptr;
}

class Narrowing {
 public:
  Narrowing(const SourceModel& model, bool declarations)
      : model_(model), declarations_(declarations) {}

  bool Convert() {
    for (const Node* function : FindAll(model_.root(), NodeKind::kFunction)) {
      if (RunsOnDevice(*function) && !Function(*function)) {
        return false;
      }
    }
    return literals_ + names_ + types_ > 0 || Fails("device code has no double-precision text");
  }

  [[nodiscard]] const std::string& obstacle() const { return obstacle_; }

  [[nodiscard]] std::string source() const { return edits_.Apply(model_.text()); }

  [[nodiscard]] bool HasDeclarations() const { return types_ > 0; }

  [[nodiscard]] std::string Summary() const {
    return fmt::format(
        "{} literal(s), {} function name(s) and {} declaration(s) of device code become single "
        "precision",
        literals_, names_, types_);
  }

 private:
  bool Fails(std::string why) {
    obstacle_ = std::move(why);
    return false;
  }

  bool Function(const Node& function) {
    for (const Node* parameter : Parameters(function)) {
      if (declarations_ && parameter->type.find("double") != std::string::npos &&
          IsPointer(parameter->type)) {
        return Fails(fmt::format("`{}` at line {} points to doubles in memory", parameter->name,
                                 parameter->line));
      }
    }
    bool fine = true;
    Walk(function, [&](const Node& n) {
      if (n.Is(NodeKind::kFloat) && n.type == "double" && !n.in_macro && !dropped_.contains(&n)) {
        fine = fine && Literal(n);
      } else if (n.Is(NodeKind::kCall)) {
        Call(n);
      }
      return fine;
    });
    if (declarations_) {
      Types(function);
    }
    return fine;
  }

  bool Literal(const Node& n) {
    double value = 0;
    const std::string_view text = model_.Text(n);
    if (!ParseDouble(text.ends_with('.') ? text.substr(0, text.size() - 1) : text, &value)) {
      return true;
    }
    const double size = std::abs(value);
    const auto smallest = static_cast<double>(std::numeric_limits<float>::min());
    const auto largest = static_cast<double>(std::numeric_limits<float>::max());
    if (size > largest || (size != 0 && size < smallest)) {
      return Fails(fmt::format("{} at line {} does not fit into a float", text, n.line));
    }
    edits_.Insert(n.end, "f");
    ++literals_;
    return true;
  }

  void Call(const Node& n) {
    if (IsSquare(n)) {
      return Square(n);
    }
    const auto name = FloatNames().find(n.name);
    const Token& token = model_.tokens()[model_.TokenAt(n.begin)];
    if (name != FloatNames().end() && model_.Text(token) == n.name) {
      edits_.Replace(token.begin, token.end, name->second);
      ++names_;
    }
  }

  /// pow(anything, 2): also as a float a call of dozens of instructions.
  [[nodiscard]] bool IsSquare(const Node& n) const {
    if (n.name != "pow" || n.children.size() != 2 || n.in_macro ||
        model_.text().find("Square") != std::string::npos) {
      return false;
    }
    const std::string_view exponent = model_.Text(n.child(1));
    return exponent == "2" || exponent == "2.0" || exponent == "2.";
  }

  void Square(const Node& n) {
    const Token& token = model_.tokens()[model_.TokenAt(n.begin)];
    if (model_.Text(token) != "pow") {
      return;  // Qualified: std::pow.
    }
    edits_.Replace(token.begin, token.end, "Square");
    std::size_t comma = model_.TokenAt(n.child(1).begin);
    while (comma > 0 && model_.Text(model_.tokens()[comma]) != ",") {
      --comma;
    }
    edits_.Replace(model_.tokens()[comma].begin, n.end - 1, "");
    Walk(n.child(1), [this](const Node& inner) {
      dropped_.insert(&inner);
      return true;
    });
    if (!squares_) {
      const Node* const first = FindAll(model_.root(), NodeKind::kFunction).front();
      edits_.Insert(LineBegin(model_.text(), first->begin),
                    "__device__ inline float Square(float value) { return value * value; }\n\n");
    }
    squares_ = true;
    ++names_;
  }

  static std::uint32_t LineBegin(std::string_view text, std::uint32_t at) {
    const std::size_t end = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
    return end == std::string_view::npos ? 0 : static_cast<std::uint32_t>(end + 1);
  }

  void Types(const Node& function) {
    for (std::size_t i = model_.TokenAt(function.begin);
         i < model_.tokens().size() && model_.tokens()[i].end <= function.end; ++i) {
      const Token& token = model_.tokens()[i];
      if (token.kind == Token::Kind::kKeyword && model_.Text(token) == "double") {
        edits_.Replace(token.begin, token.end, "float");
        ++types_;
      }
    }
  }

  const SourceModel& model_;
  bool declarations_;
  int literals_ = 0;
  int names_ = 0;
  int types_ = 0;
  bool squares_ = false;
  std::set<const Node*> dropped_;
  std::string obstacle_;
  Edits edits_;
};

class FloatLiterals final : public Rewrite {
 public:
  [[nodiscard]] std::string_view id() const override { return "float_literals"; }

  [[nodiscard]] std::vector<std::string_view> answers() const override {
    return {"cmp.fp64", "cmp.convert", "cmp.precision"};
  }

  void Apply(const SourceModel& model, const ProposalRequest& request,
             Outcome& outcome) const override {
    const bool doubles = std::ranges::any_of(
        request.task.tensors, [](const TensorSpec& tensor) { return tensor.dtype == DType::kF64; });
    if (doubles || request.task.policy.lowest_precision == "fp64") {
      outcome.Decline("float_literals", "the task asks for double precision");
      return;
    }
    Narrowing everything(model, true);
    const bool all = everything.Convert();
    if (all) {
      outcome.proposals.push_back(
          Propose(request, "", "float_literals(all)", everything.source(),
                  fmt::format("{}; the tensors hold floats, and double-precision arithmetic has "
                              "half the rate or less",
                              everything.Summary()),
                  0.45));
    } else {
      outcome.Decline("float_literals(all)", everything.obstacle());
    }
    if (all && !everything.HasDeclarations()) {
      return;
    }
    Narrowing literals(model, false);
    if (literals.Convert()) {
      outcome.proposals.push_back(
          Propose(request, "", "float_literals(literals)", literals.source(),
                  fmt::format("{}; declared doubles stay", literals.Summary()), 0.3));
    } else if (all) {
      outcome.Decline("float_literals(literals)", literals.obstacle());
    }
  }
};

}  // namespace

std::unique_ptr<Rewrite> MakeFloatLiterals() {
  return std::make_unique<FloatLiterals>();
}

}  // namespace kernelpro::playbook
