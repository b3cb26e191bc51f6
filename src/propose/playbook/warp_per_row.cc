// SPDX-License-Identifier: Apache-2.0
//
// One thread per row, walking the row:          one warp per row, lanes side by side:
//
//   row = blockIdx.x * blockDim.x + threadIdx.x   row = blockIdx.x * (blockDim.x / 32) +
//   threadIdx.x / 32 for (c = 0; c < cols; ++c)                    for (c = lane; c < cols; c +=
//   32)
//     m = fmaxf(m, x[row * cols + c]);              m = fmaxf(m, x[row * cols + c]);
//                                                 xor-shuffle m over the warp
//   y[row] = m;                                   if (lane == 0) y[row] = m;
//
// Every lane computes what stands outside the loops; after a shuffle all lanes hold the same bits,
// so conditions there stay uniform over the warp.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "propose/playbook/edits.h"
#include "propose/playbook/launch_edits.h"
#include "propose/playbook/loop_effects.h"
#include "propose/playbook/rewrite.h"

namespace kernelpro::playbook {
namespace {

constexpr long long kWarp = 32;

class WarpConversion {
 public:
  WarpConversion(const SourceModel& model, const Node& kernel) : model_(model), kernel_(kernel) {}

  /// False with a reason in obstacle().
  bool Convert() { return FindRow() && CheckLaunches() && Statement(*Body(kernel_)) && Finish(); }

  [[nodiscard]] const std::string& obstacle() const { return obstacle_; }

  [[nodiscard]] std::string source() const { return edits_.Apply(model_.text()); }

  [[nodiscard]] std::string lines() const { return LineList(lines_); }

  [[nodiscard]] const std::string& row() const { return row_->name; }

 private:
  bool Fails(std::string why) {
    if (obstacle_.empty()) {
      obstacle_ = std::move(why);
    }
    return false;
  }

  /// The variable that is the global thread index, and the edits that make it the warp's.
  bool FindRow() {
    if (FindCooperation(kernel_) != nullptr || !FindShared().empty()) {
      return Fails("threads already work together (shared memory, barrier or shuffle)");
    }
    for (const Node* variable : FindAll(kernel_, NodeKind::kVariable)) {
      const Node* value = Initializer(*variable);
      if (value != nullptr && IsGlobalIndex(IndexOf(*value, model_), 'x', kernel_, model_)) {
        if (row_ != nullptr) {
          return Fails(fmt::format("`{}` and `{}` both are the global thread index", row_->name,
                                   variable->name));
        }
        row_ = variable;
      }
    }
    if (row_ == nullptr) {
      return Fails("no variable is blockIdx.x * blockDim.x + threadIdx.x");
    }
    return EditIndex();
  }

  [[nodiscard]] std::string FindShared() const {
    std::string name;
    Walk(kernel_, [&](const Node& n) {
      if (n.Is(NodeKind::kVariable) && n.is_shared) {
        name = n.name;
      }
      return true;
    });
    return name;
  }

  bool EditIndex() {
    const Node& value = *Initializer(*row_);
    bool scaled = false;
    Walk(kernel_, [&](const Node& n) {
      if (!n.Is(NodeKind::kBuiltin)) {
        return true;
      }
      if (n.name == "threadIdx.x") {
        const Node* holder = n.parent;
        const bool own = Contains(value, n);
        const bool helper = holder->Is(NodeKind::kVariable) && OnlyUsedIn(*holder, value);
        if (!own && !helper) {
          Fails(fmt::format("threadIdx.x is used beyond the row index, at line {}", n.line));
        }
        edits_.Replace(n, "threadIdx.x / 32");
      } else if (n.name == "blockIdx.x" && Contains(value, n)) {
        scaled = ScaleFactor(n);
      } else if (n.name == "blockDim.x" && !Contains(value, n) && !InRowStride(n)) {
        Fails(fmt::format("blockDim.x is used beyond the row index, at line {}", n.line));
      } else if (n.name == "blockDim.x" && !Contains(value, n)) {
        edits_.Replace(n, "(blockDim.x / 32)");
      } else if (n.name.starts_with("threadIdx") || n.name == "blockIdx.x" ||
                 (n.name.starts_with("blockDim") && n.name != "blockDim.x")) {
        Fails(fmt::format("{} is used at line {}", n.name, n.line));
      }
      return true;
    });
    if (!scaled) {
      return Fails(fmt::format("`{}` is not written as block index times block size plus thread",
                               row_->name));
    }
    return obstacle_.empty();
  }

  [[nodiscard]] bool OnlyUsedIn(const Node& variable, const Node& scope) const {
    const auto uses = ReferencesTo(variable, kernel_);
    return std::ranges::all_of(uses, [&](const Node* use) { return Contains(scope, *use); });
  }

  /// row += gridDim.x * blockDim.x in the head of the loop over rows.
  [[nodiscard]] bool InRowStride(const Node& n) const {
    for (const Node* up = &n; up != nullptr; up = up->parent) {
      if (up->Is(NodeKind::kAssign, "+=") && up->child(0).decl == row_) {
        return IndexOf(up->child(1), model_) ==
               Polynomial::Atom("gridDim.x") * Polynomial::Atom("blockDim.x");
      }
    }
    return false;
  }

  /// blockIdx.x * E becomes blockIdx.x * (E / 32).
  bool ScaleFactor(const Node& block_index) {
    const Node* inner = &block_index;
    while (inner->parent->Is(NodeKind::kCast)) {
      inner = inner->parent;
    }
    const Node& product = *inner->parent;
    if (!product.Is(NodeKind::kBinary, "*")) {
      return false;
    }
    const Node& factor = product.child(&product.child(0) == inner ? 1 : 0);
    edits_.Replace(factor, fmt::format("({} / 32)", model_.Text(factor)));
    return true;
  }

  bool CheckLaunches() {
    const std::vector<const Node*> launches = model_.LaunchesOf(kernel_);
    if (launches.empty()) {
      return Fails("its launch is not in this file");
    }
    for (const Node* launch : launches) {
      const auto block = BlockShape(*launch, model_);
      if (!block || (*block)[0] % kWarp != 0 || (*block)[1] * (*block)[2] != 1) {
        return Fails(fmt::format(
            "the block size of the launch at line {} is not a constant multiple of 32 in x alone",
            launch->line));
      }
      if (PassesPointerTwice(model_, *launch)) {
        return Fails(fmt::format("the launch at line {} passes one buffer twice", launch->line));
      }
      ScaleGridX(model_, *launch, "32", edits_);
    }
    return true;
  }

  bool Statement(const Node& statement) {
    switch (statement.kind) {
      case NodeKind::kCompound:
        return std::ranges::all_of(statement.children,
                                   [&](const auto& child) { return Statement(*child); });
      case NodeKind::kIf:
        return PureCondition(statement.child(0)) && Statement(statement.child(1)) &&
               Statement(statement.child(2));
      case NodeKind::kFor:
        return statement.child(0).Is(NodeKind::kDeclaration) && &statement.child(0).child(0) == row_
                   ? Statement(statement.child(3))
                   : Loop(statement);
      case NodeKind::kWhile:
      case NodeKind::kDo:
        return Fails(fmt::format("the loop at line {} is not of the form for (i = a; i < b; ++i)",
                                 statement.line));
      default:
        return Simple(statement);
    }
  }

  bool PureCondition(const Node& condition) {
    return AccessesIn(condition, model_).empty() ||
           Fails(fmt::format("the condition at line {} reads memory", condition.line));
  }

  bool Simple(const Node& statement) {
    bool writes = false;
    for (const Access& access : AccessesIn(statement, model_)) {
      if (!access.written) {
        continue;
      }
      if (!IsGlobalMemory(access)) {
        return Fails(fmt::format("line {} writes memory that is not a tensor", statement.line));
      }
      writes = true;
      stored_.insert(access.base);
    }
    for (const Node* inner : FindAll(statement, NodeKind::kCall)) {
      const bool may_write = std::ranges::any_of(inner->children, [](const auto& argument) {
        return IsPointer(argument->type) && !argument->type.starts_with("const ");
      });
      if (may_write) {
        return Fails(fmt::format("`{}` at line {} gets a pointer and may write through it",
                                 inner->name, inner->line));
      }
    }
    const bool call = statement.Is(NodeKind::kCall);
    if (call || (writes && !statement.Is(NodeKind::kAssign))) {
      return Fails(fmt::format("the statement at line {} has effects that cannot be followed",
                               statement.line));
    }
    if (!writes) {
      return true;
    }
    const std::string indent = model_.IndentOf(statement.begin);
    const bool braces = !statement.parent->Is(NodeKind::kCompound);
    edits_.Insert(statement.begin,
                  fmt::format("{}if ({} == 0) {{\n{}  ", braces ? "{ " : "", lane_, indent));
    edits_.Insert(model_.StatementEnd(statement),
                  fmt::format("\n{}}}{}", indent, braces ? " }" : "") + SyncFor(statement));
    return true;
  }

  /// A barrier over the warp where other lanes read what was just written.
  std::string SyncFor(const Node& statement) {
    for (const Access& access : AccessesIn(statement, model_)) {
      if (!access.written) {
        continue;
      }
      for (const Access& other : AccessesIn(kernel_, model_)) {
        const bool elsewhere = !Contains(statement, *other.node);
        if (other.read && elsewhere && (other.base == access.base || other.base == nullptr)) {
          return "\n" + model_.IndentOf(statement.begin) + "__syncwarp();";
        }
      }
    }
    return {};
  }

  bool Loop(const Node& statement) {
    const auto loop = AsCountedLoop(statement);
    if (!loop) {
      return Fails(fmt::format("the loop at line {} is not of the form for (i = a; i < b; ++i)",
                               statement.line));
    }
    const LoopEffects effects = EffectsOf(*loop, model_);
    if (!WalksRow(*loop, effects)) {  // Without writes every lane may well run it as it is.
      return !effects.Writes() ||
             Fails(fmt::format("the loop at line {} does not walk along a row", statement.line));
    }
    if (!effects.obstacle.empty()) {
      return Fails(effects.obstacle);
    }
    for (const Access& access : effects.accesses) {
      if (access.written && !IsGlobalMemory(access)) {
        return Fails(
            fmt::format("the loop at line {} fills `{}`, of which every lane would have "
                        "a part",
                        statement.line, access.base->name));
      }
    }
    for (const Reduction& reduction : effects.reductions) {
      if (!CanShuffle(reduction.variable->type)) {
        return Fails(fmt::format("`{}` has type {}, which cannot be shuffled",
                                 reduction.variable->name, reduction.variable->type));
      }
      if (!StartsNeutral(reduction, statement, model_)) {
        return Fails(fmt::format(
            "`{}` does not provably start at {} before line {}", reduction.variable->name,
            reduction.op == Reduction::Op::kSum ? "zero" : "one", statement.line));
      }
    }
    StrideLoop(*loop, effects);
    return true;
  }

  /// Neighbouring iterations touch neighbouring elements, neighbouring threads do not.
  [[nodiscard]] bool WalksRow(const CountedLoop& loop, const LoopEffects& effects) const {
    return loop.step == nullptr && std::ranges::any_of(effects.accesses, [&](const Access& access) {
             const auto along = access.index.Coefficient(AtomOf(*loop.variable));
             const bool by_row =
                 access.index.Mentions("threadIdx.x") || access.index.Mentions(AtomOf(*row_));
             return IsGlobalMemory(access) && along && along->IsOne() && by_row;
           });
  }

  /// m = in[0]; for (c = 1; ...) m = fmaxf(m, in[c]): beginning with element 0 again changes
  /// nothing, and the lanes then start at an aligned address.
  [[nodiscard]] bool StartsOneLater(const CountedLoop& loop, const LoopEffects& effects) const {
    const auto statements = Statements(*loop.body);
    if (model_.Text(*loop.start) != "1" || effects.Writes() || effects.reductions.size() != 1 ||
        statements.size() != 1 || !statements[0]->Is(NodeKind::kAssign, "=") ||
        effects.reductions[0].function.empty()) {
      return false;
    }
    const Node& variable = *effects.reductions[0].variable;
    const Node& call = statements[0]->child(1);
    const Node& operand = call.child(call.child(0).decl == &variable ? 1 : 0);
    const Node* first = Initializer(variable);
    return first != nullptr &&
           Substituted(model_, operand, *loop.variable, "0") == model_.Text(*first);
  }

  void StrideLoop(const CountedLoop& loop, const LoopEffects& effects) {
    const std::string start(StartsOneLater(loop, effects) ? "0" : model_.Text(*loop.start));
    edits_.Replace(*loop.start, start == "0" ? lane_ : start + " + " + lane_);
    edits_.Replace(*loop.increment, loop.variable->name + " += 32");
    lines_.push_back(loop.loop->line);
    const std::string indent = model_.IndentOf(loop.loop->begin);
    std::string after = SyncFor(*loop.loop);
    if (!effects.reductions.empty()) {
      after += fmt::format("\n{0}for (int offset = 16; offset > 0; offset /= 2) {{\n", indent);
      for (const Reduction& reduction : effects.reductions) {
        const std::string other = model_.FreshName(reduction.variable->name + "_other");
        after += fmt::format(
            "{0}  const {1} {2} = __shfl_xor_sync(0xffffffffu, {3}, offset);\n{0}  {4}\n", indent,
            reduction.variable->type, other, reduction.variable->name, reduction.Combine(other));
      }
      after += indent + "}";
    }
    const bool braces = !after.empty() && !loop.loop->parent->Is(NodeKind::kCompound);
    if (braces) {
      edits_.Insert(loop.loop->begin, "{ ");
      after += " }";
    }
    edits_.Insert(model_.StatementEnd(*loop.loop), after);
  }

  bool Finish() {
    if (lines_.empty()) {
      return Fails(fmt::format("no loop walks along the row of `{}`", row_->name));
    }
    const Node& body = *Body(kernel_);
    const std::string indent = body.children.empty() ? "  " : model_.IndentOf(body.child(0).begin);
    edits_.Insert(body.begin + 1,
                  fmt::format("\n{}const int {} = threadIdx.x % 32;", indent, lane_));
    return true;
  }

  const SourceModel& model_;
  const Node& kernel_;
  const Node* row_ = nullptr;
  std::string lane_ = model_.FreshName("lane");
  std::set<const Node*> stored_;
  std::vector<std::uint32_t> lines_;
  std::string obstacle_;
  Edits edits_;
};

class WarpPerRow final : public Rewrite {
 public:
  [[nodiscard]] std::string_view id() const override { return "warp_per_row"; }

  [[nodiscard]] std::vector<std::string_view> answers() const override {
    return {"mem.coalesce_ld", "mem.coalesce_st"};
  }

  void Apply(const SourceModel& model, const ProposalRequest& request,
             Outcome& outcome) const override {
    for (const Node* kernel : model.kernels()) {
      std::string action = fmt::format("warp_per_row({})", kernel->name);
      WarpConversion conversion(model, *kernel);
      if (!conversion.Convert()) {
        outcome.Decline(std::move(action), conversion.obstacle());
        continue;
      }
      outcome.proposals.push_back(
          Propose(request, kernel->name, std::move(action), conversion.source(),
                  fmt::format("one warp instead of one thread works on each `{}` of {}, so that "
                              "the 32 lanes read 32 neighbouring elements ({})",
                              conversion.row(), kernel->name, conversion.lines()),
                  0.6));
    }
  }
};

}  // namespace

std::unique_ptr<Rewrite> MakeWarpPerRow() {
  return std::make_unique<WarpPerRow>();
}

}  // namespace kernelpro::playbook
