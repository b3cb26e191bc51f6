// SPDX-License-Identifier: Apache-2.0
//
// expf(v) -> __expf(v), logf, sinf, cosf, powf alike
// a / b   -> __fdividef(a, b) for two floats
//
// The hardware's approximations: a few units in the last place, and no denormals. Only where the
// task's tolerance leaves room for that.
#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>

#include "propose/playbook/analysis.h"
#include "propose/playbook/edits.h"
#include "propose/playbook/rewrite.h"

namespace kernelpro::playbook {
namespace {

constexpr double kSmallestTolerance = 1e-5;

const std::map<std::string, std::string, std::less<>>& FastNames() {
  static const std::map<std::string, std::string, std::less<>> kNames = {
      {"expf", "__expf"}, {"exp10f", "__exp10f"}, {"logf", "__logf"}, {"log2f", "__log2f"},
      {"sinf", "__sinf"}, {"cosf", "__cosf"},     {"tanf", "__tanf"}, {"powf", "__powf"}};
  return kNames;
}

class FastMath final : public Rewrite {
 public:
  [[nodiscard]] std::string_view id() const override { return "fast_math_intrinsics"; }

  [[nodiscard]] std::vector<std::string_view> answers() const override {
    return {"cmp.sfu", "cmp.issue", "cmp.precision"};
  }

  void Apply(const SourceModel& model, const ProposalRequest& request,
             Outcome& outcome) const override {
    if (request.task.tolerance.relative < kSmallestTolerance ||
        request.task.policy.lowest_precision == "fp64") {
      outcome.Decline("fast_math_intrinsics",
                      fmt::format("the task's relative tolerance {:g} is below {:g}, the error of "
                                  "the approximations",
                                  request.task.tolerance.relative, kSmallestTolerance));
      return;
    }
    for (const Node* kernel : model.kernels()) {
      Kernel(model, request, *kernel, outcome);
    }
  }

 private:
  void Kernel(const SourceModel& model, const ProposalRequest& request, const Node& kernel,
              Outcome& outcome) const {
    std::string action = fmt::format("fast_math_intrinsics({})", kernel.name);
    Edits edits;
    int calls = 0;
    int divisions = 0;
    Walk(kernel, [&](const Node& n) {
      if (n.Is(NodeKind::kCall)) {
        const auto name = FastNames().find(n.name);
        const Token& token = model.tokens()[model.TokenAt(n.begin)];
        if (name != FastNames().end() && model.Text(token) == n.name) {
          edits.Replace(token.begin, token.end, name->second);
          ++calls;
        }
      } else if (IsFloatDivision(n) && !n.in_macro) {
        divisions += Divide(model, n, edits) ? 1 : 0;
      }
      return true;
    });
    if (edits.empty()) {
      outcome.Decline(std::move(action), "no single-precision function or division to replace");
      return;
    }
    outcome.proposals.push_back(
        Propose(request, kernel.name, std::move(action), edits.Apply(model.text()),
                fmt::format("{} function call(s) and {} division(s) of {} use the hardware's fp32 "
                            "approximations, within the task's relative tolerance of {:g}",
                            calls, divisions, kernel.name, request.task.tolerance.relative),
                0.3));
  }

  static bool IsFloatDivision(const Node& n) {
    const auto is_float = [](const Node& e) { return ElementType(e.type) == "float"; };
    return n.Is(NodeKind::kBinary, "/") && n.type == "float" && is_float(n.child(0)) &&
           is_float(n.child(1)) && !n.child(1).Is(NodeKind::kFloat);
  }

  /// a / b to __fdividef(a, b) by four insertions, so that edits inside a and b stay possible.
  static bool Divide(const SourceModel& model, const Node& n, Edits& edits) {
    for (std::size_t i = model.TokenAt(n.child(0).end); i < model.tokens().size(); ++i) {
      const Token& token = model.tokens()[i];
      if (token.begin >= n.child(1).begin) {
        return false;
      }
      if (model.Text(token) == "/") {
        edits.Insert(n.begin, "__fdividef(");
        edits.Replace(model.tokens()[i - 1].end, token.end, ",");
        edits.Insert(n.end, ")");
        return true;
      }
    }
    return false;
  }
};

}  // namespace

std::unique_ptr<Rewrite> MakeFastMath() {
  return std::make_unique<FastMath>();
}

}  // namespace kernelpro::playbook
