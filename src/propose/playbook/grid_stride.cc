// SPDX-License-Identifier: Apache-2.0
//
// i = blockIdx.x * blockDim.x + threadIdx.x;     for (i = ...; i < n; i += gridDim.x * blockDim.x)
// { if (i < n) { y[i] = f(x[i]); }             ->    y[i] = f(x[i]); K<<<blocks, ...>>> }
//                                                K<<<min(blocks, kMaxBlocks), ...>>>
//
// Fewer blocks with more work each; and a loop is what vector_access and unroll can work on.
#include <fmt/format.h>

#include <string>
#include <utility>

#include "propose/playbook/edits.h"
#include "propose/playbook/launch_edits.h"
#include "propose/playbook/loop_effects.h"
#include "propose/playbook/rewrite.h"

namespace kernelpro::playbook {
namespace {

/// Eight blocks of 256 threads fill one of the 132 multiprocessors of an H200.
constexpr int kMaxBlocks = 132 * 8;

class Striding {
 public:
  Striding(const SourceModel& model, const Node& kernel) : model_(model), kernel_(kernel) {}

  bool Convert() {
    const auto statements = Statements(*Body(kernel_));
    if (FindCooperation(kernel_) != nullptr) {
      return Fails("threads already work together");
    }
    for (std::size_t i = 0; i < statements.size(); ++i) {
      const Node& statement = *statements[i];
      const bool guard = index_ != nullptr && statement.Is(NodeKind::kIf);
      if (guard) {
        return Guard(statements, i) && CheckIndex() && Launches() && Emit();
      }
      if (!statement.Is(NodeKind::kDeclaration) || !Declaration(statement)) {
        break;
      }
    }
    return Fails(obstacle_.empty() ? "no element index with a guard right after it" : obstacle_);
  }

  [[nodiscard]] const std::string& obstacle() const { return obstacle_; }

  [[nodiscard]] std::string source() const { return edits_.Apply(model_.text()); }

 private:
  bool Fails(std::string why) {
    obstacle_ = std::move(why);
    return false;
  }

  bool Declaration(const Node& statement) {
    const Node& variable = statement.child(0);
    const Node* value = Initializer(variable);
    if (value == nullptr || statement.children.size() != 1) {
      return Fails(fmt::format("line {} is more than one initialized variable", statement.line));
    }
    if (IsGlobalIndex(IndexOf(*value, model_), 'x', kernel_, model_)) {
      index_ = &variable;
      declaration_ = &statement;
    }
    return true;
  }

  bool Guard(const std::vector<const Node*>& statements, std::size_t at) {
    const Node& guard = *statements[at];
    const auto then = Statements(guard.child(1));
    const bool returns = then.size() == 1 && then[0]->Is(NodeKind::kReturn);
    const Node& condition = guard.child(0);
    if (!guard.child(2).Is(NodeKind::kEmpty) ||
        !condition.Is(NodeKind::kBinary, returns ? ">=" : "<") ||
        condition.child(0).decl != index_) {
      return Fails(fmt::format("the guard at line {} is not `{} < n`", guard.line, index_->name));
    }
    bound_ = &condition.child(1);
    if (statements[at - 1] != declaration_ && !returns) {
      return Fails(fmt::format("there are declarations between `{}` and its guard", index_->name));
    }
    if (returns) {
      if (at + 1 >= statements.size() || statements[at - 1] != declaration_) {
        return Fails("nothing follows the guard directly");
      }
      begin_ = statements[at + 1]->begin;
      end_ = model_.StatementEnd(*statements.back());
    } else {
      if (at + 1 != statements.size()) {
        return Fails(fmt::format("line {} follows the guarded part", statements[at + 1]->line));
      }
      const Node& body = guard.child(1);
      const bool braces = body.Is(NodeKind::kCompound);
      begin_ = braces ? then.front()->begin : body.begin;
      end_ = model_.StatementEnd(*then.back());
    }
    replace_end_ = returns ? end_ : model_.StatementEnd(guard);
    return true;
  }

  /// Nothing but the index may tell threads apart, and no thread may leave early.
  bool CheckIndex() {
    bool fine = true;
    Walk(kernel_, [&](const Node& n) {
      const bool inside = n.begin >= begin_ && n.end <= end_;
      if (n.Is(NodeKind::kBuiltin) && inside) {
        fine = Fails(fmt::format("{} is used at line {}", n.name, n.line));
      }
      if (n.Is(NodeKind::kReturn) && inside) {
        fine = Fails(fmt::format("line {} returns early", n.line));
      }
      if (n.Is(NodeKind::kReference) && n.decl == index_ && !n.loaded) {
        fine = Fails(fmt::format("`{}` is changed at line {}", n.name, n.line));
      }
      return fine;
    });
    return fine;
  }

  bool Launches() {
    const auto launches = model_.LaunchesOf(kernel_);
    if (launches.empty()) {
      return Fails("its launch is not in this file");
    }
    limit_ = model_.FreshName("kMaxBlocks");
    for (const Node* launch : launches) {
      const Node& grid = launch->child(0);
      if (grid.type.find("dim3") != std::string::npos) {
        return Fails(fmt::format("the grid of the launch at line {} is a dim3", launch->line));
      }
      const std::string text = Parenthesized(model_.Text(grid));
      edits_.Replace(grid, fmt::format("{0} < {1} ? {0} : {1}", text, limit_));
    }
    return true;
  }

  bool Emit() {
    edits_.Insert(BeforeFunction(model_, kernel_),
                  fmt::format("constexpr int {} = {};\n\n", limit_, kMaxBlocks));
    const std::string type =
        index_->type.starts_with("const ") ? index_->type.substr(6) : index_->type;
    const std::string indent = model_.IndentOf(declaration_->begin);
    const std::string inner = std::string(model_.text().substr(begin_, end_ - begin_));
    edits_.Replace(declaration_->begin, replace_end_,
                   fmt::format("for ({0} {1} = {2}; {1} < {3}; {1} += gridDim.x * blockDim.x) {{\n"
                               "{4}  {5}\n{4}}}",
                               type, index_->name, model_.Text(*Initializer(*index_)),
                               model_.Text(*bound_), indent, inner));
    return true;
  }

  const SourceModel& model_;
  const Node& kernel_;
  const Node* index_ = nullptr;
  const Node* declaration_ = nullptr;
  const Node* bound_ = nullptr;
  std::uint32_t begin_ = 0;
  std::uint32_t end_ = 0;
  std::uint32_t replace_end_ = 0;
  std::string limit_;
  std::string obstacle_;
  Edits edits_;
};

class GridStride final : public Rewrite {
 public:
  [[nodiscard]] std::string_view id() const override { return "grid_stride"; }

  [[nodiscard]] std::vector<std::string_view> answers() const override {
    return {"par.cta_rate", "mem.width", "mem.inflight", "cmp.issue"};
  }

  void Apply(const SourceModel& model, const ProposalRequest& request,
             Outcome& outcome) const override {
    for (const Node* kernel : model.kernels()) {
      std::string action = fmt::format("grid_stride({})", kernel->name);
      Striding striding(model, *kernel);
      if (!striding.Convert()) {
        outcome.Decline(std::move(action), striding.obstacle());
        continue;
      }
      outcome.proposals.push_back(
          Propose(request, kernel->name, std::move(action), striding.source(),
                  fmt::format("at most {} blocks of {} walk over all elements instead of one "
                              "element per thread",
                              kMaxBlocks, kernel->name),
                  0.25));
    }
  }
};

}  // namespace

std::unique_ptr<Rewrite> MakeGridStride() {
  return std::make_unique<GridStride>();
}

}  // namespace kernelpro::playbook
