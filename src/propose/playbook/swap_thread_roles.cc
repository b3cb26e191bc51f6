// SPDX-License-Identifier: Apache-2.0
//
// row = blockIdx.x * blockDim.x + threadIdx.x      row = blockIdx.y * blockDim.y + threadIdx.y
// col = blockIdx.y * blockDim.y + threadIdx.y  ->  col = blockIdx.x * blockDim.x + threadIdx.x
// dim3 grid(by_row, by_col), block(bx, by)         dim3 grid(by_col, by_row), block(by, bx)
//
// A renaming of threads: every (x, y) does what (y, x) did. It can only be seen by code that asks
// which threads form a warp, and there is none when no warp intrinsic is used.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "propose/playbook/analysis.h"
#include "propose/playbook/edits.h"
#include "propose/playbook/rewrite.h"

namespace kernelpro::playbook {
namespace {

struct Sides {
  int good = 0;  ///< accesses whose neighbours in this thread dimension are neighbours in memory
  int bad = 0;   ///< accesses that are a longer way apart
};

Sides SidesOf(const SourceModel& model, const Node& kernel, const std::string& thread) {
  Sides sides;
  for (const Access& access : AccessesIn(kernel, model)) {
    if (!IsGlobalMemory(access)) {
      continue;
    }
    const auto factor = access.index.Coefficient(thread);
    if (!factor || (!factor->IsZero() && !factor->IsOne())) {
      ++sides.bad;
    } else if (factor->IsOne()) {
      ++sides.good;
    }
  }
  return sides;
}

/// Why the threads of this kernel cannot be renamed; empty when they can.
std::string Obstacle(const SourceModel& model, const Node& kernel) {
  if (!UsesBuiltin(kernel, "threadIdx.x") || !UsesBuiltin(kernel, "threadIdx.y")) {
    return "the kernel does not use both threadIdx.x and threadIdx.y";
  }
  const Node* call = FindCooperation(kernel);
  if (call != nullptr && call->name != "__syncthreads" && !call->name.starts_with("atomic")) {
    return fmt::format("{} at line {} depends on which threads form a warp", call->name,
                       call->line);
  }
  const auto launches = model.LaunchesOf(kernel);
  if (launches.empty()) {
    return "its launch is not in this file";
  }
  for (const Node* launch : launches) {
    for (const std::size_t which : {0U, 1U}) {
      if (LaunchComponents(*launch, which).size() < 2) {
        return fmt::format(
            "the {} of the launch at line {} is not a dim3 whose x and y can be seen",
            which == 0 ? "grid" : "block", launch->line);
      }
    }
    for (const Node* other : model.launches()) {
      const bool shared =
          other->name != kernel.name &&
          ((launch->child(0).decl != nullptr && launch->child(0).decl == other->child(0).decl) ||
           (launch->child(1).decl != nullptr && launch->child(1).decl == other->child(1).decl));
      if (shared) {
        return fmt::format("the launches at lines {} and {} share a dim3 variable", launch->line,
                           other->line);
      }
    }
    if (launch->child(0).decl != nullptr && launch->child(0).decl == launch->child(1).decl) {
      return fmt::format("grid and block of the launch at line {} are one variable", launch->line);
    }
  }
  return {};
}

class SwapThreadRoles final : public Rewrite {
 public:
  [[nodiscard]] std::string_view id() const override { return "swap_thread_roles"; }

  [[nodiscard]] std::vector<std::string_view> answers() const override {
    return {"mem.coalesce_ld", "mem.coalesce_st"};
  }

  void Apply(const SourceModel& model, const ProposalRequest& request,
             Outcome& outcome) const override {
    for (const Node* kernel : model.kernels()) {
      std::string action = fmt::format("swap_thread_roles({})", kernel->name);
      const std::string obstacle = Obstacle(model, *kernel);
      if (!obstacle.empty()) {
        outcome.Decline(std::move(action), obstacle);
        continue;
      }
      const Sides x = SidesOf(model, *kernel, "threadIdx.x");
      const Sides y = SidesOf(model, *kernel, "threadIdx.y");
      if (x.bad == 0 || y.good - y.bad <= x.good - x.bad) {
        outcome.Decline(std::move(action),
                        fmt::format("neighbours in threadIdx.y would not lie closer: {} accesses "
                                    "side by side and {} apart along x, {} and {} along y",
                                    x.good, x.bad, y.good, y.bad));
        continue;
      }
      outcome.proposals.push_back(Swap(model, request, *kernel, std::move(action), x, y));
    }
  }

 private:
  [[nodiscard]] Proposal Swap(const SourceModel& model, const ProposalRequest& request,
                              const Node& kernel, std::string action, Sides x, Sides y) const {
    Edits edits;
    Walk(kernel, [&](const Node& n) {
      if (n.Is(NodeKind::kBuiltin) && !n.name.ends_with(".z")) {
        const bool is_x = n.name.ends_with(".x");
        edits.Replace(n.end - 1, n.end, is_x ? "y" : "x");
      }
      return true;
    });
    std::vector<const Node*> done;
    for (const Node* launch : model.LaunchesOf(kernel)) {
      for (const std::size_t which : {0U, 1U}) {
        const auto parts = LaunchComponents(*launch, which);
        if (std::ranges::find(done, parts[0]) != done.end()) {
          continue;
        }
        done.push_back(parts[0]);
        const bool derived = which == 0 && launch->child(1).decl != nullptr;
        edits.Replace(*parts[0],
                      Exchanged(model, *parts[1], derived ? launch->child(1).decl : nullptr));
        edits.Replace(*parts[1],
                      Exchanged(model, *parts[0], derived ? launch->child(1).decl : nullptr));
      }
    }
    return Propose(request, kernel.name, std::move(action), edits.Apply(model.text()),
                   fmt::format("threadIdx.x and threadIdx.y of {} change places in the kernel and "
                               "in its launch: along a warp {} accesses lay side by side and {} "
                               "apart, now {} and {}",
                               kernel.name, x.good, x.bad, y.good, y.bad),
                   0.55);
  }

  /// The text of a grid component where block.x and block.y have changed places.
  static std::string Exchanged(const SourceModel& model, const Node& part, const Node* block) {
    Edits edits;
    Walk(part, [&](const Node& n) {
      const bool component = n.Is(NodeKind::kMember) && n.children.size() == 1 &&
                             n.child(0).decl == block && block != nullptr;
      if (component && (n.name == "x" || n.name == "y")) {
        edits.Replace(n.end - 1, n.end, n.name == "x" ? "y" : "x");
      }
      return true;
    });
    return edits.ApplyWithin(model.text(), part.begin, part.end);
  }
};

}  // namespace

std::unique_ptr<Rewrite> MakeSwapThreadRoles() {
  return std::make_unique<SwapThreadRoles>();
}

}  // namespace kernelpro::playbook
