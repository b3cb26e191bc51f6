// SPDX-License-Identifier: Apache-2.0
//
// for (int i = 0; i < k; ++i)   ->   #pragma unroll 4
//                                    for (int i = 0; i < k; ++i)
//
// Several iterations' loads are in flight before the first is used.
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "propose/playbook/analysis.h"
#include "propose/playbook/edits.h"
#include "propose/playbook/rewrite.h"

namespace kernelpro::playbook {
namespace {

bool IsInnermost(const Node& loop) {
  bool inner = true;
  Walk(loop, [&](const Node& n) {
    inner &= &n == &loop || !n.IsLoop();
    return inner;
  });
  return inner;
}

/// The line above is a pragma already.
bool HasPragma(const SourceModel& model, const Node& loop) {
  const std::size_t at = model.TokenAt(loop.begin);
  for (std::size_t i = at; i-- > 0;) {
    if (model.Text(model.tokens()[i]) == "#") {
      return i + 1 < at && model.Text(model.tokens()[i + 1]) == "pragma" &&
             model.tokens()[i].line + 1 >= loop.line;
    }
    if (model.tokens()[i].line + 1 < loop.line) {
      return false;
    }
  }
  return false;
}

class Unroll final : public Rewrite {
 public:
  [[nodiscard]] std::string_view id() const override { return "unroll"; }

  [[nodiscard]] std::vector<std::string_view> answers() const override {
    return {"lat.ilp", "mem.inflight", "lat.long_scoreboard", "cmp.issue", "cmp.int"};
  }

  void Apply(const SourceModel& model, const ProposalRequest& request,
             Outcome& outcome) const override {
    for (const Node* kernel : model.kernels()) {
      for (const int factor : {4, 8}) {
        Kernel(model, request, *kernel, factor, outcome);
      }
    }
  }

 private:
  void Kernel(const SourceModel& model, const ProposalRequest& request, const Node& kernel,
              int factor, Outcome& outcome) const {
    std::string action = fmt::format("unroll({},{})", kernel.name, factor);
    Edits edits;
    std::vector<std::uint32_t> lines;
    for (const Node* loop : FindAll(kernel, NodeKind::kFor)) {
      const auto counted = AsCountedLoop(*loop);
      const bool fits = counted && IsInnermost(*loop) && !HasPragma(model, *loop) &&
                        !ConstantValue(*counted->bound, model) &&
                        FindCooperation(*loop) == nullptr && loop->parent->Is(NodeKind::kCompound);
      if (!fits) {
        continue;
      }
      const auto line =
          static_cast<std::uint32_t>(loop->begin - model.IndentOf(loop->begin).size());
      if (line != 0 && model.text()[line - 1] != '\n') {
        continue;  // Something else stands in front of it.
      }
      edits.Insert(line, fmt::format("#pragma unroll {}\n", factor));
      lines.push_back(loop->line);
    }
    if (edits.empty()) {
      if (factor == 4) {
        outcome.Decline(fmt::format("unroll({})", kernel.name),
                        "no innermost counted loop of unknown length without a pragma");
      }
      return;
    }
    outcome.proposals.push_back(
        Propose(request, kernel.name, std::move(action), edits.Apply(model.text()),
                fmt::format("{} of {}: loops are unrolled {} times, so that more loads "
                            "are in flight at once",
                            LineList(lines), kernel.name, factor),
                0.2));
  }
};

}  // namespace

std::unique_ptr<Rewrite> MakeUnroll() {
  return std::make_unique<Unroll>();
}

}  // namespace kernelpro::playbook
