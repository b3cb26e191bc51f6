// SPDX-License-Identifier: Apache-2.0
//
// __shared__ float tile[32][32];   ->   __shared__ float tile[32][32 + 1];
//
// A column of a tile whose rows are a multiple of 32 words long lies in one bank; one more word per
// row spreads it over all 32.
#include <fmt/format.h>

#include <string>
#include <utility>

#include "propose/playbook/analysis.h"
#include "propose/playbook/edits.h"
#include "propose/playbook/rewrite.h"

namespace kernelpro::playbook {
namespace {

constexpr long long kBankBytes = 4;

class PadShared final : public Rewrite {
 public:
  [[nodiscard]] std::string_view id() const override { return "pad_shared"; }

  [[nodiscard]] std::vector<std::string_view> answers() const override { return {"smem.bank"}; }

  void Apply(const SourceModel& model, const ProposalRequest& request,
             Outcome& outcome) const override {
    for (const Node* kernel : model.kernels()) {
      for (const Node* variable : FindAll(*kernel, NodeKind::kVariable)) {
        if (variable->is_shared) {
          Pad(model, request, *kernel, *variable, outcome);
        }
      }
    }
  }

 private:
  void Pad(const SourceModel& model, const ProposalRequest& request, const Node& kernel,
           const Node& variable, Outcome& outcome) const {
    std::string action = fmt::format("pad_shared({},+1)", variable.name);
    if (variable.children.size() != 2 || variable.type.find("][") == std::string::npos) {
      outcome.Decline(std::move(action),
                      fmt::format("`{}` is not an array of two dimensions", variable.name));
      return;
    }
    const Node& columns = variable.child(1);
    const auto width = ConstantValue(columns, model);
    if (!width || (*width * kBankBytes) % 64 != 0) {
      outcome.Decline(std::move(action),
                      fmt::format("rows of `{}` are not a multiple of 16 elements; columns already "
                                  "spread over the banks",
                                  variable.name));
      return;
    }
    for (const Node* use : ReferencesTo(variable, kernel)) {
      const Node& row = *use->parent;
      const bool element = row.Is(NodeKind::kSubscript) && row.parent->Is(NodeKind::kSubscript) &&
                           &row.parent->child(0) == &row &&
                           !row.parent->parent->Is(NodeKind::kUnary, "&");
      if (!element) {
        outcome.Decline(
            std::move(action),
            fmt::format("`{}` is used as a whole or by address at line {}; its layout may matter "
                        "there",
                        variable.name, use->line));
        return;
      }
    }
    for (const Node* cast : FindAll(kernel, NodeKind::kCast)) {
      if (IsPointer(cast->type) && !ReferencesTo(variable, *cast).empty()) {
        outcome.Decline(std::move(action),
                        fmt::format("line {} reads `{}` through another type; a padded row would "
                                    "not be aligned for it",
                                    cast->line, variable.name));
        return;
      }
    }
    Edits edits;
    edits.Replace(columns, fmt::format("{} + 1", model.Text(columns)));
    outcome.proposals.push_back(
        Propose(request, kernel.name, std::move(action), edits.Apply(model.text()),
                fmt::format("rows of `{}` are one word longer, so that a column no longer lies in "
                            "one bank",
                            variable.name),
                0.3));
  }
};

}  // namespace

std::unique_ptr<Rewrite> MakePadShared() {
  return std::make_unique<PadShared>();
}

}  // namespace kernelpro::playbook
