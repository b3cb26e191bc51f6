// SPDX-License-Identifier: Apache-2.0
//
// c = global x, r = global y;                 block of 32 x 8 threads on a tile of 32 x 32:
// if (r < rows && c < cols)                     tile[j][threadIdx.x] = x[r * cols + c];   (side by
// side)
//   y[c * rows + r] = x[r * cols + c];      ->  __syncthreads();
//                                               y[c * rows + r] = tile[threadIdx.x][j];   (side by
//                                               side)
//
// Works for any value that one thread computes from its (x, y) and stores once, when one of load
// and store runs along x and the other along y.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
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

constexpr int kTile = 32;
constexpr int kRows = 8;

std::string PlainType(std::string_view type) {
  return std::string(type.starts_with("const ") ? type.substr(6) : type);
}

class Tiling {
 public:
  Tiling(const SourceModel& model, const Node& kernel) : model_(model), kernel_(kernel) {}

  bool Convert() {
    const auto variables = FindAll(kernel_, NodeKind::kVariable);
    if (FindCooperation(kernel_) != nullptr ||
        std::ranges::any_of(variables, [](const Node* variable) { return variable->is_shared; })) {
      return Fails("threads already work together (shared memory, barrier or shuffle)");
    }
    return FindStatements(*Body(kernel_), true) && FindSides() && FindLaunch() && Emit();
  }

  [[nodiscard]] const std::string& obstacle() const { return obstacle_; }

  [[nodiscard]] std::string source() const { return edits_.Apply(model_.text()); }

  [[nodiscard]] int line() const { return static_cast<int>(store_->line); }

 private:
  bool Fails(std::string why) {
    obstacle_ = std::move(why);
    return false;
  }

  /// Index variables, other locals, at most one guard, exactly one store.
  bool FindStatements(const Node& compound, bool outermost) {
    for (const Node* statement : Statements(compound)) {
      if (statement->Is(NodeKind::kDeclaration)) {
        if (!Declaration(*statement)) {
          return false;
        }
      } else if (statement->Is(NodeKind::kIf) && guard_ == nullptr && outermost) {
        guard_ = &statement->child(0);
        const std::vector<const Node*> then = Statements(statement->child(1));
        returns_ = then.size() == 1 && then[0]->Is(NodeKind::kReturn);
        if (!statement->child(2).Is(NodeKind::kEmpty) ||
            (!returns_ && !FindStatements(statement->child(1), false))) {
          return obstacle_.empty() ? Fails("the guard has an else branch") : false;
        }
      } else if (statement->Is(NodeKind::kAssign, "=") && store_ == nullptr) {
        store_ = statement;
      } else {
        return Fails(
            fmt::format("line {} is more than one guarded store of one value", statement->line));
      }
    }
    return !outermost || store_ != nullptr || Fails("the kernel stores nothing");
  }

  bool Declaration(const Node& statement) {
    for (const auto& child : statement.children) {
      const Node& variable = *child;
      const Node* value = Initializer(variable);
      if (value == nullptr || !IsReadOnly(variable) || variable.is_shared) {
        return Fails(fmt::format("`{}` at line {} is not a constant of the thread", variable.name,
                                 variable.line));
      }
      if (IsIndex(*value, 'x') && x_ == nullptr) {
        x_ = &variable;
      } else if (IsIndex(*value, 'y') && y_ == nullptr) {
        y_ = &variable;
      } else {
        locals_.push_back(&variable);
      }
    }
    return true;
  }

  [[nodiscard]] bool IsIndex(const Node& value, char dimension) const {
    return IsGlobalIndex(IndexOf(value, model_), dimension, kernel_, model_);
  }

  /// The value must be loaded along one of x and y and stored along the other.
  bool FindSides() {
    if (x_ == nullptr || y_ == nullptr) {
      return Fails("no pair of variables is the global thread index in x and in y");
    }
    if (const Node* builtin = DirectBuiltin()) {
      return Fails(fmt::format("{} is used at line {} beyond the indices `{}` and `{}`",
                               builtin->name, builtin->line, x_->name, y_->name));
    }
    const std::vector<Access> stores = AccessesIn(store_->child(0), model_);
    if (stores.size() != 1 || !IsGlobalMemory(stores[0])) {
      return Fails(fmt::format("line {} does not store to a tensor", store_->line));
    }
    const bool store_along_x = Along(stores[0], "threadIdx.x");
    const bool store_along_y = Along(stores[0], "threadIdx.y");
    int loads_x = 0;
    int loads_y = 0;
    for (const Access& access : AccessesIn(kernel_, model_)) {
      if (access.written) {
        continue;
      }
      if (!IsGlobalMemory(access) || access.base == stores[0].base) {
        return Fails(fmt::format("line {} reads something else than an input", access.node->line));
      }
      loads_x += Along(access, "threadIdx.x") ? 1 : 0;
      loads_y += Along(access, "threadIdx.y") ? 1 : 0;
    }
    store_transposed_ = store_along_y && !store_along_x && loads_x > 0 && loads_y == 0;
    const bool load_transposed = store_along_x && !store_along_y && loads_y > 0 && loads_x == 0;
    if (!store_transposed_ && !load_transposed) {
      return Fails("load and store already run along the same thread dimension");
    }
    return true;
  }

  /// A use of the thread that does not go through the two indices: those get new values, it would
  /// not.
  [[nodiscard]] const Node* DirectBuiltin() const {
    std::vector<const Node*> parts = {store_};
    if (guard_ != nullptr) {
      parts.push_back(guard_);
    }
    for (const Node* local : NeededBy(parts)) {
      parts.push_back(local);
    }
    for (const Node* part : parts) {
      for (const Node* builtin : FindAll(*part, NodeKind::kBuiltin)) {
        if (builtin->name != "blockIdx.z" && builtin->name != "gridDim.z") {
          return builtin;
        }
      }
    }
    return nullptr;
  }

  static bool Along(const Access& access, const std::string& thread) {
    const auto factor = access.index.Coefficient(thread);
    return factor && factor->IsOne();
  }

  bool FindLaunch() {
    const auto launches = model_.LaunchesOf(kernel_);
    if (launches.size() != 1) {
      return Fails(
          fmt::format("it is launched at {} places of this file; one is needed", launches.size()));
    }
    launch_ = launches[0];
    if (PassesPointerTwice(model_, *launch_)) {
      return Fails("the launch passes one buffer twice");
    }
    const auto block = BlockShape(*launch_, model_);
    if (guard_ == nullptr) {
      if (!block || (*block)[0] != (*block)[1] || (*block)[2] != 1) {
        return Fails("without a guard the tile must be the block, and the block is not square");
      }
      side_ = (*block)[0];
      return true;
    }
    const Node* x_bound = BoundOf(*guard_, *x_);
    const Node* y_bound = BoundOf(*guard_, *y_);
    if (x_bound == nullptr || y_bound == nullptr) {
      return Fails(fmt::format("the guard at line {} does not bound both `{}` and `{}`",
                               guard_->line, x_->name, y_->name));
    }
    x_extent_ = HostExpression(model_, kernel_, *launch_, *x_bound);
    y_extent_ = HostExpression(model_, kernel_, *launch_, *y_bound);
    const auto parts = LaunchComponents(*launch_, 0);
    if (x_extent_.empty() || y_extent_.empty() || parts.size() < 2) {
      return Fails(
          fmt::format("the grid of the launch at line {} cannot be written anew", launch_->line));
    }
    z_ = parts.size() == 3 ? ", " + std::string(model_.Text(*parts[2])) : "";
    return true;
  }

  /// N of `v < N` (or of `v >= N` in a guard that returns), among terms joined by && (||).
  [[nodiscard]] const Node* BoundOf(const Node& condition, const Node& variable) const {
    if (condition.Is(NodeKind::kBinary, returns_ ? "||" : "&&")) {
      const Node* left = BoundOf(condition.child(0), variable);
      return left != nullptr ? left : BoundOf(condition.child(1), variable);
    }
    const bool bounds = condition.Is(NodeKind::kBinary, returns_ ? ">=" : "<") &&
                        condition.child(0).decl == &variable;
    return bounds ? &condition.child(1) : nullptr;
  }

  /// Locals that something needs, directly or through other locals.
  [[nodiscard]] std::set<const Node*> NeededBy(std::vector<const Node*> open) const {
    std::set<const Node*> needed;
    while (!open.empty()) {
      const Node* part = open.back();
      open.pop_back();
      for (const Node* local : locals_) {
        if (!ReferencesTo(*local, *part).empty() && needed.insert(local).second) {
          open.push_back(Initializer(*local));
        }
      }
    }
    return needed;
  }

  /// Declarations in source order.
  [[nodiscard]] std::string Declarations(const std::set<const Node*>& needed,
                                         const std::string& indent) const {
    std::string text;
    for (const Node* local : locals_) {
      if (needed.contains(local)) {
        text += fmt::format("{}const {} {} = {};\n", indent, PlainType(local->type), local->name,
                            model_.Text(*Initializer(*local)));
      }
    }
    return text;
  }

  [[nodiscard]] std::string Phase(bool transposed, const std::string& statement,
                                  const Node& part) const {
    const std::string across = "threadIdx.x";
    std::string text = fmt::format("  for (int {0} = threadIdx.y; {0} < {1}; {0} += {2}) {{\n",
                                   line_, tile_size_, tile_rows_);
    text += fmt::format("    const {} {} = {} + {};\n", PlainType(x_->type), x_->name, x_start_,
                        transposed ? line_ : across);
    text += fmt::format("    const {} {} = {} + {};\n", PlainType(y_->type), y_->name, y_start_,
                        transposed ? across : line_);
    std::set<const Node*> needed = NeededBy({&part});
    if (guard_ == nullptr) {
      return text + Declarations(needed, "    ") + fmt::format("    {}\n  }}\n", statement);
    }
    // What only the value needs may read memory: it stays behind the guard.
    const std::set<const Node*> by_guard = NeededBy({guard_});
    std::erase_if(needed, [&](const Node* local) { return by_guard.contains(local); });
    const std::string condition(model_.Text(*guard_));
    text += Declarations(by_guard, "    ");
    text += fmt::format("    if ({}) {{\n{}      {}\n    }}\n",
                        returns_ ? "!(" + condition + ")" : condition,
                        Declarations(needed, "      "), statement);
    return text + "  }\n";
  }

  bool Emit() {
    tile_size_ = model_.FreshName("kTileSize");
    tile_rows_ = guard_ == nullptr ? tile_size_ : model_.FreshName("kTileRows");
    const Node& target = store_->child(0);
    const Node& value = store_->child(1);
    std::string constants =
        fmt::format("constexpr int {} = {};\n", tile_size_, guard_ == nullptr ? side_ : kTile);
    if (guard_ != nullptr) {
      constants += fmt::format("constexpr int {} = {};\n", tile_rows_, kRows);
    }
    edits_.Insert(BeforeFunction(model_, kernel_), constants + "\n");
    std::string body = fmt::format(
        "{{\n  __shared__ {0} {4}[{1}][{1} + 1];  // one more: a column must not lie in one bank\n"
        "  const {2} {5} = blockIdx.x * {1};\n  const {3} {6} = blockIdx.y * {1};\n",
        PlainType(target.type), tile_size_, PlainType(x_->type), PlainType(y_->type), tile_,
        x_start_, y_start_);
    body +=
        Phase(!store_transposed_,
              fmt::format("{}[{}][threadIdx.x] = {};", tile_, line_, model_.Text(value)), value);
    body += "  __syncthreads();\n";
    body +=
        Phase(store_transposed_,
              fmt::format("{} = {}[threadIdx.x][{}];", model_.Text(target), tile_, line_), target);
    body += "}";
    edits_.Replace(*Body(kernel_), body);
    if (guard_ != nullptr) {
      ReplaceShape(model_, *launch_, 0,
                   fmt::format("({0} + {2} - 1) / {2}, ({1} + {2} - 1) / {2}{3}",
                               Parenthesized(x_extent_), Parenthesized(y_extent_), tile_size_, z_),
                   edits_);
      ReplaceShape(model_, *launch_, 1, fmt::format("{}, {}", tile_size_, tile_rows_), edits_);
    }
    return true;
  }

  const SourceModel& model_;
  const Node& kernel_;
  const Node* x_ = nullptr;
  const Node* y_ = nullptr;
  std::vector<const Node*> locals_;
  const Node* guard_ = nullptr;
  bool returns_ = false;
  const Node* store_ = nullptr;
  bool store_transposed_ = false;
  const Node* launch_ = nullptr;
  long long side_ = 0;
  std::string x_extent_;
  std::string y_extent_;
  std::string z_;
  std::string tile_ = model_.FreshName("tile");
  std::string line_ = model_.FreshName("j");
  std::string x_start_ = model_.FreshName("tile_x");
  std::string y_start_ = model_.FreshName("tile_y");
  std::string tile_size_;
  std::string tile_rows_;
  std::string obstacle_;
  Edits edits_;
};

class TileThroughShared final : public Rewrite {
 public:
  [[nodiscard]] std::string_view id() const override { return "tile_through_shared"; }

  [[nodiscard]] std::vector<std::string_view> answers() const override {
    return {"mem.coalesce_st", "mem.coalesce_ld"};
  }

  void Apply(const SourceModel& model, const ProposalRequest& request,
             Outcome& outcome) const override {
    for (const Node* kernel : model.kernels()) {
      std::string action = fmt::format("tile_through_shared({})", kernel->name);
      Tiling tiling(model, *kernel);
      if (!tiling.Convert()) {
        outcome.Decline(std::move(action), tiling.obstacle());
        continue;
      }
      outcome.proposals.push_back(
          Propose(request, kernel->name, std::move(action), tiling.source(),
                  fmt::format("the value stored at line {} passes through a padded tile in shared "
                              "memory, so that both its load and its store are side by side along "
                              "a warp",
                              tiling.line()),
                  0.6));
    }
  }
};

}  // namespace

std::unique_ptr<Rewrite> MakeTileThroughShared() {
  return std::make_unique<TileThroughShared>();
}

}  // namespace kernelpro::playbook
