// SPDX-License-Identifier: Apache-2.0
#include "propose/playbook/tree_reduction.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace kernelpro::playbook {
namespace {

std::optional<Fold> FoldOf(std::string_view op, const std::string& function) {
  Fold fold;
  if (op == "+=" || op == "+") {
    fold.combine = "{0} += {1};";
    fold.neutral = "0";
  } else if (op == "*=" || op == "*") {
    fold.combine = "{0} *= {1};";
    fold.neutral = "1";
  } else if (function == "fmaxf" || function == "fmax" || function == "max" ||
             function == "fminf" || function == "fmin" || function == "min") {
    fold.combine = "{0} = " + function + "({0}, {1});";
    fold.keeps_start = true;
  } else {
    return std::nullopt;
  }
  return fold;
}

class TreeFinder {
 public:
  TreeFinder(const SourceModel& model, long long threads) : model_(model), threads_(threads) {}

  /// Nothing when the loop is no tree reduction over the block.
  std::optional<Tree> Match(const Node& loop) {
    if (!loop.Is(NodeKind::kFor) || !loop.child(0).Is(NodeKind::kDeclaration) ||
        !loop.child(3).Is(NodeKind::kCompound)) {
      return std::nullopt;
    }
    step_ = &loop.child(0).child(0);
    halving_ = IsHalving(loop);
    if (!halving_ && !IsDoubling(loop)) {
      return std::nullopt;
    }
    const Node* branch = nullptr;
    index_ = nullptr;
    bool barrier = false;
    for (const Node* statement : Statements(loop.child(3))) {
      if (statement->Is(NodeKind::kIf) && branch == nullptr) {
        branch = statement;
      } else if (statement->Is(NodeKind::kDeclaration) && branch == nullptr &&
                 statement->children.size() == 1) {
        index_ = &statement->child(0);
      } else if (IsCallOf(*statement, "__syncthreads")) {
        barrier = true;
      } else {
        return std::nullopt;
      }
    }
    if (branch == nullptr || !barrier || !branch->child(2).Is(NodeKind::kEmpty) ||
        !Guards(branch->child(0))) {
      return std::nullopt;
    }
    Tree tree;
    tree.loop = &loop;
    tree.thread = thread_;
    for (const Node* statement : Statements(branch->child(1))) {
      const auto fold = MatchFold(*statement);
      if (!fold) {
        return std::nullopt;
      }
      tree.folds.push_back(*fold);
    }
    return tree.folds.empty() ? std::nullopt : std::optional(tree);
  }

 private:
  [[nodiscard]] bool IsThreadCount(const Node& e, long long divisor) const {
    const auto value = ConstantValue(e, model_);
    return value ? *value * divisor == threads_
                 : divisor == 1 && IndexOf(e, model_) == Polynomial::Atom("blockDim.x");
  }

  [[nodiscard]] bool IsHalf(const Node& e) const {
    if (IsThreadCount(e, 2)) {
      return true;
    }
    const bool halved =
        e.Is(NodeKind::kBinary) && ((e.op == "/" && ConstantValue(e.child(1), model_) == 2) ||
                                    (e.op == ">>" && ConstantValue(e.child(1), model_) == 1));
    return halved && IsThreadCount(e.child(0), 1);
  }

  /// for (s = N / 2; s > 0; s >>= 1)
  [[nodiscard]] bool IsHalving(const Node& loop) const {
    const Node& condition = loop.child(1);
    const Node* start = Initializer(*step_);
    const bool down =
        (condition.Is(NodeKind::kBinary, ">") && ConstantValue(condition.child(1), model_) == 0) ||
        (condition.Is(NodeKind::kBinary, ">=") && ConstantValue(condition.child(1), model_) == 1);
    return start != nullptr && IsHalf(*start) && down && condition.child(0).decl == step_ &&
           Changes(loop.child(2), "/=", 2, ">>=", 1);
  }

  /// for (s = 1; s < N; s *= 2)
  [[nodiscard]] bool IsDoubling(const Node& loop) const {
    const Node& condition = loop.child(1);
    const Node* start = Initializer(*step_);
    return start != nullptr && ConstantValue(*start, model_) == 1 &&
           condition.Is(NodeKind::kBinary, "<") && condition.child(0).decl == step_ &&
           IsThreadCount(condition.child(1), 1) && Changes(loop.child(2), "*=", 2, "<<=", 1);
  }

  [[nodiscard]] bool Changes(const Node& e, std::string_view op, long long by,
                             std::string_view other, long long other_by) const {
    if (!e.Is(NodeKind::kAssign) || e.child(0).decl != step_) {
      return false;
    }
    const auto value = ConstantValue(e.child(1), model_);
    return (e.op == op && value == by) || (e.op == other && value == other_by);
  }

  [[nodiscard]] bool IsThread(const Node& e) {
    if (!(IndexOf(e, model_) == Polynomial::Atom("threadIdx.x"))) {
      return false;
    }
    thread_ = std::string(model_.Text(e));
    return true;
  }

  /// t < s | t % (2 * s) == 0 | index < N with index = 2 * s * t
  [[nodiscard]] bool Guards(const Node& condition) {
    if (!condition.Is(NodeKind::kBinary)) {
      return false;
    }
    if (condition.op == "&&") {  // ... && t + s < N: always true where the first holds
      const Node& extra = condition.child(1);
      const bool harmless = extra.Is(NodeKind::kBinary, "<") && IsThreadCount(extra.child(1), 1) &&
                            IndexOf(extra.child(0), model_) ==
                                Polynomial::Atom("threadIdx.x") + Polynomial::Atom(AtomOf(*step_));
      return harmless && Guards(condition.child(0));
    }
    if (halving_) {
      return index_ == nullptr && condition.op == "<" && condition.child(1).decl == step_ &&
             IsThread(condition.child(0));
    }
    const Polynomial twice = Polynomial::Constant(2) * Polynomial::Atom(AtomOf(*step_));
    if (index_ != nullptr) {
      thread_ = "threadIdx.x";
      return condition.op == "<" && condition.child(0).decl == index_ &&
             IsThreadCount(condition.child(1), 1) && Initializer(*index_) != nullptr &&
             IndexOf(*Initializer(*index_), model_) == twice * Polynomial::Atom("threadIdx.x");
    }
    const Node& rest = condition.child(0);
    return condition.op == "==" && ConstantValue(condition.child(1), model_) == 0 &&
           rest.Is(NodeKind::kBinary, "%") && IndexOf(rest.child(1), model_) == twice &&
           IsThread(rest.child(0));
  }

  std::optional<Fold> MatchFold(const Node& statement) const {
    if (!statement.Is(NodeKind::kAssign) || !statement.child(0).Is(NodeKind::kSubscript)) {
      return std::nullopt;
    }
    const Node& target = statement.child(0);
    const Node& value = statement.child(1);
    const Node* array = target.child(0).decl;
    const bool memory = array != nullptr && (array->is_shared || array->Is(NodeKind::kParameter));
    if (!memory || !IsOwnIndex(target.child(1))) {
      return std::nullopt;
    }
    std::optional<Fold> fold;
    if (statement.op != "=") {
      fold = IsOther(value, target) ? FoldOf(statement.op, "") : std::nullopt;
    } else if (value.children.size() == 2) {
      const bool pair = (Same(value.child(0), target) && IsOther(value.child(1), target)) ||
                        (Same(value.child(1), target) && IsOther(value.child(0), target));
      const bool call = value.Is(NodeKind::kCall);
      fold = pair ? FoldOf(call ? "" : value.op, call ? value.name : "") : std::nullopt;
    }
    if (fold) {
      fold->array = array;
    }
    return fold;
  }

  [[nodiscard]] bool IsOwnIndex(const Node& index) const {
    const Polynomial wanted = index_ != nullptr ? IndexOf(*Initializer(*index_), model_)
                                                : Polynomial::Atom("threadIdx.x");
    return IndexOf(index, model_) == wanted;
  }

  [[nodiscard]] bool Same(const Node& e, const Node& target) const {
    return e.Is(NodeKind::kSubscript) && e.child(0).decl == target.child(0).decl &&
           IndexOf(e.child(1), model_) == IndexOf(target.child(1), model_);
  }

  [[nodiscard]] bool IsOther(const Node& e, const Node& target) const {
    return e.Is(NodeKind::kSubscript) && e.child(0).decl == target.child(0).decl &&
           IndexOf(e.child(1), model_) ==
               IndexOf(target.child(1), model_) + Polynomial::Atom(AtomOf(*step_));
  }

  const SourceModel& model_;
  long long threads_;
  const Node* step_ = nullptr;
  const Node* index_ = nullptr;
  bool halving_ = false;
  std::string thread_ = "threadIdx.x";
};

/// Kernels that run `function`: itself, or all that call it. Empty when something else calls it.
std::vector<const Node*> KernelsRunning(const Node& function, const SourceModel& model) {
  if (function.is_kernel) {
    return {&function};
  }
  std::vector<const Node*> kernels;
  for (const Node* call : FindAll(model.root(), NodeKind::kCall)) {
    if (call->name != function.name) {
      continue;
    }
    const Node* caller = EnclosingFunction(*call);
    if (caller == nullptr || !caller->is_kernel) {
      return {};
    }
    if (std::ranges::find(kernels, caller) == kernels.end()) {
      kernels.push_back(caller);
    }
  }
  return kernels;
}

}  // namespace

bool HasBarrierLoop(const Node& function) {
  const auto loops = FindAll(function, NodeKind::kFor);
  return std::ranges::any_of(loops, [](const Node* loop) {
    const auto calls = FindAll(*loop, NodeKind::kCall);
    return std::ranges::any_of(calls,
                               [](const Node* call) { return IsCallOf(*call, "__syncthreads"); });
  });
}

bool IsCallOf(const Node& node, std::string_view name) {
  return node.Is(NodeKind::kCall) && node.name == name;
}

std::optional<Tree> MatchTree(const Node& loop, long long threads, const SourceModel& model) {
  return TreeFinder(model, threads).Match(loop);
}

std::optional<long long> ThreadsOf(const Node& function, const SourceModel& model,
                                   std::string& obstacle) {
  std::optional<long long> threads;
  for (const Node* kernel : KernelsRunning(function, model)) {
    for (const Node* launch : model.LaunchesOf(*kernel)) {
      const auto block = BlockShape(*launch, model);
      const bool fits = block && (*block)[1] * (*block)[2] == 1 && (*block)[0] >= 32 &&
                        std::has_single_bit(static_cast<unsigned long long>((*block)[0])) &&
                        (!threads || *threads == (*block)[0]);
      if (!fits) {
        obstacle = fmt::format(
            "the block of the launch at line {} is not a constant power of two of at least 32 "
            "threads in x alone",
            launch->line);
        return std::nullopt;
      }
      threads = (*block)[0];
    }
  }
  if (!threads) {
    obstacle = "no launch of it is in this file";
  }
  return threads;
}

std::vector<Feed> FeedsOf(const Tree& tree) {
  const std::vector<const Node*> siblings = Statements(*tree.loop->parent);
  const auto loop = std::ranges::find(siblings, tree.loop);
  auto at = static_cast<std::size_t>(loop - siblings.begin());
  std::vector<Feed> feeds;
  if (loop == siblings.end() || at < 2 || !IsCallOf(*siblings[at - 1], "__syncthreads")) {
    return feeds;
  }
  for (--at; at-- > 0 && feeds.size() < tree.folds.size();) {
    const Node& statement = *siblings[at];
    if (!statement.Is(NodeKind::kAssign, "=") || !statement.child(0).Is(NodeKind::kSubscript)) {
      break;
    }
    const Node* array = statement.child(0).child(0).decl;
    const bool known = std::ranges::any_of(
        tree.folds, [&](const Fold& candidate) { return candidate.array == array; });
    if (!known) {
      break;
    }
    feeds.push_back({&statement, array});
  }
  return feeds.size() == tree.folds.size() ? feeds : std::vector<Feed>();
}

}  // namespace kernelpro::playbook
