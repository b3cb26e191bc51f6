// SPDX-License-Identifier: Apache-2.0
//
// sum = 0;                                         block of 256 threads on a 64 x 64 tile of c:
// for (i = 0; i < k; ++i)                            for every 16 columns of a (rows of b):
//   sum += a[row * k + i] * b[i * n + col];   ->       both slices into shared memory
// c[row * n + col] = sum;                               every thread: 4 x 4 sums in registers
//                                                     store 4 x 4 results
//
// Every result is still the sum over i in ascending order. The loads and the store keep the user's
// index expressions: the new loops define variables of the same names.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "propose/playbook/edits.h"
#include "propose/playbook/launch_edits.h"
#include "propose/playbook/loop_effects.h"
#include "propose/playbook/rewrite.h"

namespace kernelpro::playbook {
namespace {

std::string PlainType(std::string_view type) {
  return std::string(type.starts_with("const ") ? type.substr(6) : type);
}

class MatmulTiling {
 public:
  MatmulTiling(const SourceModel& model, const Node& kernel) : model_(model), kernel_(kernel) {}

  bool Convert() {
    if (FindCooperation(kernel_) != nullptr) {
      return Fails("threads already work together");
    }
    return FindStatements(*Body(kernel_), true) && FindProduct() && FindRoles() && FindBounds() &&
           FindLaunch() && Emit();
  }

  [[nodiscard]] const std::string& obstacle() const { return obstacle_; }

  [[nodiscard]] std::string source() const { return edits_.Apply(model_.text()); }

  [[nodiscard]] std::uint32_t line() const { return loop_->loop->line; }

 private:
  bool Fails(std::string why) {
    if (obstacle_.empty()) {
      obstacle_ = std::move(why);
    }
    return false;
  }

  /// Two index variables, a guard, an accumulator, the loop, the store.
  bool FindStatements(const Node& compound, bool outermost) {
    for (const Node* statement : Statements(compound)) {
      bool known = true;
      if (statement->Is(NodeKind::kDeclaration) && statement->children.size() == 1) {
        known = Declaration(statement->child(0));
      } else if (statement->Is(NodeKind::kIf) && guard_ == nullptr && outermost &&
                 statement->child(2).Is(NodeKind::kEmpty)) {
        guard_ = &statement->child(0);
        const auto then = Statements(statement->child(1));
        returns_ = then.size() == 1 && then[0]->Is(NodeKind::kReturn);
        known = returns_ || FindStatements(statement->child(1), false);
      } else if (statement->Is(NodeKind::kFor) && !loop_) {
        loop_ = AsCountedLoop(*statement);
        known = loop_.has_value();
      } else if (statement->Is(NodeKind::kAssign) && loop_ && store_ == nullptr) {
        store_ = statement;
      } else {
        known = false;
      }
      if (!known) {
        return Fails(
            fmt::format("line {} is no part of index, guard, sum loop and store", statement->line));
      }
    }
    return !outermost || (loop_ && store_ != nullptr && guard_ != nullptr && sum_ != nullptr) ||
           Fails("not a guarded sum of products over one loop");
  }

  bool Declaration(const Node& variable) {
    const Node* value = Initializer(variable);
    if (value == nullptr || variable.is_shared) {
      return false;
    }
    const Polynomial index = IndexOf(*value, model_);
    if (index.Mentions("threadIdx.x") && index.Mentions("threadIdx.y")) {
      return false;
    }
    for (const char dimension : {'x', 'y'}) {
      const std::string thread = fmt::format("threadIdx.{}", dimension);
      if (!index.Mentions(thread)) {
        continue;
      }
      const bool global = IsGlobalIndex(index, dimension, kernel_, model_);
      indices_.push_back(&variable);
      return global && indices_.size() <= 2;
    }
    const bool accumulator = sum_ == nullptr && !IsReadOnly(variable);
    sum_ = accumulator ? &variable : sum_;
    return accumulator;
  }

  bool FindProduct() {
    const LoopEffects effects = EffectsOf(*loop_, model_);
    if (!effects.obstacle.empty()) {
      return Fails(effects.obstacle);
    }
    const bool sums = effects.reductions.size() == 1 &&
                      effects.reductions[0].op == Reduction::Op::kSum &&
                      effects.reductions[0].variable == sum_ && loop_->step == nullptr &&
                      ConstantValue(*loop_->start, model_) == 0 && effects.accesses.size() == 2 &&
                      Statements(*loop_->body).size() == 1;
    if (!sums || !StartsNeutral(effects.reductions[0], *loop_->loop, model_)) {
      return Fails(fmt::format("the loop at line {} is not one sum of products from zero",
                               loop_->loop->line));
    }
    const Node& statement = *Statements(*loop_->body)[0];
    if (!statement.Is(NodeKind::kAssign)) {
      return Fails(fmt::format("line {} is not an assignment", statement.line));
    }
    const Node* value = &statement.child(1);
    const Node* left = nullptr;
    const Node* right = nullptr;
    if (statement.op == "=" && value->Is(NodeKind::kBinary, "+")) {
      value = &value->child(value->child(0).decl == sum_ ? 1 : 0);
    }
    if (value->Is(NodeKind::kBinary, "*") ||
        (value->Is(NodeKind::kCall) && (value->name == "fmaf" || value->name == "fma"))) {
      left = &value->child(0);
      right = &value->child(1);
    }
    const bool loads = left != nullptr && left == effects.accesses[0].node &&
                       right == effects.accesses[1].node && IsGlobalMemory(effects.accesses[0]) &&
                       IsGlobalMemory(effects.accesses[1]);
    const bool plain = loads && ElementType(effects.accesses[0].base->type) == sum_->type &&
                       ElementType(effects.accesses[1].base->type) == sum_->type;
    if (!plain || statement.op == "-=") {
      return Fails(
          fmt::format("line {} does not add the product of two tensor elements", statement.line));
    }
    a_ = effects.accesses[0];
    b_ = effects.accesses[1];
    return true;
  }

  /// row: the index of the left factor; col: that of the right one.
  bool FindRoles() {
    if (indices_.size() != 2) {
      return Fails("no pair of global thread indices in x and in y");
    }
    const std::vector<Access> stores = AccessesIn(*store_, model_);
    if (stores.size() != 1 || !stores[0].written || !IsGlobalMemory(stores[0])) {
      return Fails(fmt::format("line {} does not store to one tensor element", store_->line));
    }
    const auto uses = [&](const Access& access, const Node* variable) {
      return !ReferencesTo(*variable, *access.node).empty();
    };
    row_ = indices_[0];
    col_ = indices_[1];
    const auto fits = [&] {
      return uses(a_, row_) && !uses(a_, col_) && uses(b_, col_) && !uses(b_, row_);
    };
    if (!fits()) {
      std::swap(row_, col_);
    }
    if (!fits()) {
      return Fails(
          fmt::format("the factors at line {} do not belong to one index each", a_.node->line));
    }
    // The index along which results lie side by side has to be the right factor's.
    if (!UnitStride(stores[0], *col_)) {
      std::swap(a_, b_);
      std::swap(row_, col_);
    }
    if (!UnitStride(stores[0], *col_)) {
      return Fails(fmt::format("line {} does not store side by side along `{}` or `{}`",
                               store_->line, row_->name, col_->name));
    }
    return OnlyKnownNames(*a_.node) && OnlyKnownNames(*b_.node) && OnlyKnownNames(*store_) &&
           OnlyKnownNames(*guard_) && OnlyKnownNames(*loop_->bound);
  }

  [[nodiscard]] bool UnitStride(const Access& access, const Node& variable) const {
    const std::string thread = IndexOf(*Initializer(variable), model_).Mentions("threadIdx.x")
                                   ? "threadIdx.x"
                                   : "threadIdx.y";
    const auto factor = access.index.Coefficient(thread);
    return factor && factor->IsOne();
  }

  bool OnlyKnownNames(const Node& part) {
    bool known = true;
    Walk(part, [&](const Node& n) {
      if (n.Is(NodeKind::kReference) && n.decl != nullptr && Contains(kernel_, *n.decl)) {
        known = known && (n.decl->Is(NodeKind::kParameter) || n.decl == row_ || n.decl == col_ ||
                          n.decl == sum_ || n.decl == loop_->variable);
      }
      known = known && !n.Is(NodeKind::kBuiltin);
      return true;
    });
    return known || Fails(fmt::format("line {} uses further variables of the kernel", part.line));
  }

  bool FindBounds() {
    row_bound_ = BoundOf(*guard_, *row_);
    col_bound_ = BoundOf(*guard_, *col_);
    return (row_bound_ != nullptr && col_bound_ != nullptr) ||
           Fails(fmt::format("the guard at line {} does not bound both `{}` and `{}`", guard_->line,
                             row_->name, col_->name));
  }

  [[nodiscard]] const Node* BoundOf(const Node& condition, const Node& variable) const {
    if (condition.Is(NodeKind::kBinary, returns_ ? "||" : "&&")) {
      const Node* left = BoundOf(condition.child(0), variable);
      return left != nullptr ? left : BoundOf(condition.child(1), variable);
    }
    const bool bounds = condition.Is(NodeKind::kBinary, returns_ ? ">=" : "<") &&
                        condition.child(0).decl == &variable;
    return bounds ? &condition.child(1) : nullptr;
  }

  bool FindLaunch() {
    const auto launches = model_.LaunchesOf(kernel_);
    if (launches.size() != 1 || PassesPointerTwice(model_, *launches[0])) {
      return Fails("it is not launched exactly once with different buffers");
    }
    launch_ = launches[0];
    rows_ = HostExpression(model_, kernel_, *launch_, *row_bound_);
    cols_ = HostExpression(model_, kernel_, *launch_, *col_bound_);
    const auto parts = LaunchComponents(*launch_, 0);
    const bool flat =
        parts.size() == 2 || (parts.size() == 3 && ConstantValue(*parts[2], model_) == 1);
    return (!rows_.empty() && !cols_.empty() && flat) ||
           Fails(fmt::format("the grid of the launch at line {} cannot be written anew",
                             launch_->line));
  }

  /// Fills one slice in shared memory. `fast` is the index that lies side by side in memory.
  [[nodiscard]] std::string Slice(const Access& access, const Node& own, const Node* bound,
                                  const std::string& own_size, const std::string& own_start,
                                  const std::string& tile) const {
    const auto factor = access.index.Coefficient(AtomOf(*loop_->variable));
    const bool along_k = factor && factor->IsOne();
    const std::string e = names_[0];
    const std::string fast = along_k ? names_[1] : own_size;
    const std::string local_k = fmt::format("{} {} {}", e, along_k ? "%" : "/", fast);
    const std::string local_own = fmt::format("{} {} {}", e, along_k ? "/" : "%", fast);
    return fmt::format(
        "    for (int {0} = {1}; {0} < {2} * {3}; {0} += {4}) {{\n"
        "      const {5} {6} = {7} + {8};\n"
        "      const {9} {10} = {11} + {12};\n"
        "      {13}[{12}][{8}] = {6} < {14} && {10} < {15} ? {16} : {17}(0);\n"
        "    }}\n",
        e, names_[2], own_size, names_[1], names_[3], PlainType(own.type), own.name, own_start,
        local_own, loop_->variable->type, loop_->variable->name, names_[4], local_k, tile,
        Parenthesized(model_.Text(*bound)), Parenthesized(model_.Text(*loop_->bound)),
        model_.Text(*access.node), sum_->type);
  }

  void FindNames() {
    for (const char* wish : {"e", "kTileK", "thread", "kTileThreads", "k_start", "kTileM", "kTileN",
                             "kThreadM", "kThreadN", "tile_a", "tile_b", "row_start", "col_start",
                             "sums", "a_part", "b_part", "slice", "i_sum", "j_sum"}) {
      names_.push_back(model_.FreshName(wish));
    }
  }

  [[nodiscard]] std::string Constants() const {
    return fmt::format(
        "constexpr int {0} = 64;  // tile of results per block\nconstexpr int {1} = 64;\n"
        "constexpr int {2} = 16;  // depth of one slice\n"
        "constexpr int {3} = 4;  // results per thread\nconstexpr int {4} = 4;\n"
        "constexpr int {5} = ({0} / {3}) * ({1} / {4});\n\n",
        names_[5], names_[6], names_[1], names_[7], names_[8], names_[3]);
  }

  [[nodiscard]] std::string Products() const {
    return fmt::format(
        "    for (int {0} = 0; {0} < {1}; ++{0}) {{\n"
        "      {2} {3}[{4}];\n      {2} {5}[{6}];\n"
        "#pragma unroll\n      for (int {7} = 0; {7} < {4}; ++{7}) {{\n"
        "        {3}[{7}] = {8}[{0}][{9} / ({10} / {6}) * {4} + {7}];\n      }}\n"
        "#pragma unroll\n      for (int {11} = 0; {11} < {6}; ++{11}) {{\n"
        "        {5}[{11}] = {12}[{0}][{9} % ({10} / {6}) + {11} * ({10} / {6})];\n      }}\n"
        "#pragma unroll\n      for (int {7} = 0; {7} < {4}; ++{7}) {{\n"
        "#pragma unroll\n        for (int {11} = 0; {11} < {6}; ++{11}) {{\n"
        "          {13}[{7}][{11}] += {3}[{7}] * {5}[{11}];\n        }}\n      }}\n    }}\n",
        names_[16], names_[1], sum_->type, names_[14], names_[7], names_[15], names_[8], names_[17],
        names_[9], names_[2], names_[6], names_[18], names_[10], names_[13]);
  }

  [[nodiscard]] std::string Stores() const {
    const std::string condition(model_.Text(*guard_));
    return fmt::format(
        "#pragma unroll\n  for (int {0} = 0; {0} < {1}; ++{0}) {{\n"
        "#pragma unroll\n    for (int {2} = 0; {2} < {3}; ++{2}) {{\n"
        "      const {4} {5} = {6} + {7} / ({8} / {3}) * {1} + {0};\n"
        "      const {9} {10} = {11} + {7} % ({8} / {3}) + {2} * ({8} / {3});\n"
        "      if ({12}) {{\n        const {13} {14} = {15}[{0}][{2}];\n        {16};\n"
        "      }}\n    }}\n  }}\n",
        names_[17], names_[7], names_[18], names_[8], PlainType(row_->type), row_->name, names_[11],
        names_[2], names_[6], PlainType(col_->type), col_->name, names_[12],
        returns_ ? "!(" + condition + ")" : condition, sum_->type, sum_->name, names_[13],
        model_.Text(*store_));
  }

  bool Emit() {
    FindNames();
    edits_.Insert(BeforeFunction(model_, kernel_), Constants());
    std::string body = fmt::format(
        "{{\n  __shared__ {0} {1}[{2}][{3} + 1];\n  __shared__ {0} {4}[{2}][{5} + 1];\n"
        "  const int {6} = threadIdx.x;\n"
        "  const {7} {8} = blockIdx.y * {3};\n  const {9} {10} = blockIdx.x * {5};\n"
        "  {0} {11}[{12}][{13}] = {{}};\n",
        sum_->type, names_[9], names_[1], names_[5], names_[10], names_[6], names_[2],
        PlainType(row_->type), names_[11], PlainType(col_->type), names_[12], names_[13], names_[7],
        names_[8]);
    body += fmt::format("  for ({0} {1} = 0; {1} < {2}; {1} += {3}) {{\n", loop_->variable->type,
                        names_[4], model_.Text(*loop_->bound), names_[1]);
    body += Slice(a_, *row_, row_bound_, names_[5], names_[11], names_[9]);
    body += Slice(b_, *col_, col_bound_, names_[6], names_[12], names_[10]);
    body += "    __syncthreads();\n" + Products() + "    __syncthreads();\n  }\n" + Stores() + "}";
    edits_.Replace(*Body(kernel_), body);
    ReplaceShape(model_, *launch_, 0,
                 fmt::format("({0} + {2} - 1) / {2}, ({1} + {3} - 1) / {3}", Parenthesized(cols_),
                             Parenthesized(rows_), names_[6], names_[5]),
                 edits_);
    ReplaceShape(model_, *launch_, 1, names_[3], edits_);
    return true;
  }

  const SourceModel& model_;
  const Node& kernel_;
  std::vector<const Node*> indices_;
  const Node* guard_ = nullptr;
  bool returns_ = false;
  const Node* sum_ = nullptr;
  std::optional<CountedLoop> loop_;
  const Node* store_ = nullptr;
  Access a_;
  Access b_;
  const Node* row_ = nullptr;
  const Node* col_ = nullptr;
  const Node* row_bound_ = nullptr;
  const Node* col_bound_ = nullptr;
  const Node* launch_ = nullptr;
  std::string rows_;
  std::string cols_;
  std::vector<std::string> names_;
  std::string obstacle_;
  Edits edits_;
};

class TileMatmul final : public Rewrite {
 public:
  [[nodiscard]] std::string_view id() const override { return "tile_matmul"; }

  [[nodiscard]] std::vector<std::string_view> answers() const override {
    return {"mem.l1_reuse", "mem.redundant", "cmp.issue",    "mem.coalesce_ld",
            "mem.l2_reuse", "lat.throttle",  "mem.dram_roof"};
  }

  void Apply(const SourceModel& model, const ProposalRequest& request,
             Outcome& outcome) const override {
    for (const Node* kernel : model.kernels()) {
      std::string action = fmt::format("tile_matmul({})", kernel->name);
      MatmulTiling tiling(model, *kernel);
      if (!tiling.Convert()) {
        outcome.Decline(std::move(action), tiling.obstacle());
        continue;
      }
      outcome.proposals.push_back(
          Propose(request, kernel->name, std::move(action), tiling.source(),
                  fmt::format("the sum at line {} of {} is computed for a 64 x 64 tile per block "
                              "from slices in shared memory, 4 x 4 results per thread: each "
                              "element is loaded 64 times less often",
                              tiling.line(), kernel->name),
                  0.6));
    }
  }
};

}  // namespace

std::unique_ptr<Rewrite> MakeTileMatmul() {
  return std::make_unique<TileMatmul>();
}

}  // namespace kernelpro::playbook
