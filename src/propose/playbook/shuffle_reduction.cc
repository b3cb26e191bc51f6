// SPDX-License-Identifier: Apache-2.0
//
//   sh[t] = v;                                          float sh_value = v;
//   __syncthreads();                                    xor-shuffle sh_value over the warp
//   for (int s = blockDim.x / 2; s > 0; s >>= 1) {      if (t % 32 == 0) sh[t / 32] = sh_value;
//     if (t < s) sh[t] += sh[t + s];                ->  __syncthreads();
//     __syncthreads();                                  first warp: shuffle the slots, sh[0] = ...
//   }                                                   __syncthreads();
//
// Also the interleaved forms: if (t % (2 * s) == 0), and index = 2 * s * t. As before, sh[0] holds
// the result for every thread afterwards; nothing else of sh may be looked at.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "propose/playbook/edits.h"
#include "propose/playbook/loop_effects.h"
#include "propose/playbook/rewrite.h"

namespace kernelpro::playbook {
namespace {

/// sh[i] op= sh[i + s]
struct Fold {
  const Node* array = nullptr;
  std::string combine;       ///< "{0} += {1};" with the value and the other
  bool keeps_start = false;  ///< max, min: any element is neutral
  std::string neutral;
};

struct Tree {
  const Node* loop = nullptr;
  std::vector<Fold> folds;
  std::string thread;  ///< how the code spells the thread index
};

bool IsNamed(const Node& call, std::string_view name) {
  return call.Is(NodeKind::kCall) && call.name == name;
}

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
  TreeFinder(const SourceModel& model, const Node& kernel, long long threads)
      : model_(model), kernel_(kernel), threads_(threads) {}

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
      } else if (IsNamed(*statement, "__syncthreads")) {
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
    if (array == nullptr || !array->is_shared || !IsOwnIndex(target.child(1))) {
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
  const Node& kernel_;
  long long threads_;
  const Node* step_ = nullptr;
  const Node* index_ = nullptr;
  bool halving_ = false;
  std::string thread_ = "threadIdx.x";
};

class ShuffleConversion {
 public:
  ShuffleConversion(const SourceModel& model, const Node& kernel)
      : model_(model), kernel_(kernel) {}

  bool Convert() {
    const auto threads = Threads();
    if (!threads) {
      return false;
    }
    TreeFinder finder(model_, kernel_, *threads);
    for (const Node* loop : FindAll(kernel_, NodeKind::kFor)) {
      if (const auto tree = finder.Match(*loop)) {
        trees_.push_back(*tree);
      }
    }
    if (trees_.empty()) {
      return Fails("no loop is a tree reduction over a shared array with a barrier in every step");
    }
    for (const Tree& tree : trees_) {
      for (const Fold& fold : tree.folds) {
        if (!CheckUses(*fold.array)) {
          return false;
        }
      }
    }
    for (const Tree& tree : trees_) {
      Replace(tree);
    }
    return true;
  }

  [[nodiscard]] const std::string& obstacle() const { return obstacle_; }

  [[nodiscard]] std::string source() const { return edits_.Apply(model_.text()); }

  [[nodiscard]] std::string lines() const {
    std::string text;
    for (const Tree& tree : trees_) {
      text += fmt::format("{}{}", text.empty() ? "" : ", ", tree.loop->line);
    }
    return text;
  }

 private:
  bool Fails(std::string why) {
    obstacle_ = std::move(why);
    return false;
  }

  std::optional<long long> Threads() {
    std::optional<long long> threads;
    for (const Node* launch : model_.LaunchesOf(kernel_)) {
      const auto block = BlockShape(*launch, model_);
      const bool fits = block && (*block)[1] * (*block)[2] == 1 && (*block)[0] >= 32 &&
                        std::has_single_bit(static_cast<unsigned long long>((*block)[0])) &&
                        (!threads || *threads == (*block)[0]);
      if (!fits) {
        Fails(
            fmt::format("the block of the launch at line {} is not a constant power of two of at "
                        "least 32 threads in x alone",
                        launch->line));
        return std::nullopt;
      }
      threads = (*block)[0];
    }
    if (!threads) {
      Fails("its launch is not in this file");
    }
    return threads;
  }

  bool InTree(const Node& node) const {
    return std::ranges::any_of(trees_,
                               [&](const Tree& tree) { return Contains(*tree.loop, node); });
  }

  /// Outside the loops only array[0] is read and array[t] is set.
  bool CheckUses(const Node& array) {
    if (!CanShuffle(ElementType(array.type)) || array.type.find("][") != std::string::npos) {
      return Fails(fmt::format("`{}` has type {}, whose elements cannot be shuffled", array.name,
                               array.type));
    }
    for (const Node* use : ReferencesTo(array, kernel_)) {
      if (InTree(*use)) {
        continue;
      }
      const Node& element = *use->parent;
      if (!element.Is(NodeKind::kSubscript) || &element.child(0) != use) {
        return Fails(fmt::format("`{}` is used as a whole at line {}", array.name, use->line));
      }
      const bool set = element.parent->Is(NodeKind::kAssign, "=") &&
                       &element.parent->child(0) == &element &&
                       IndexOf(element.child(1), model_) == Polynomial::Atom("threadIdx.x");
      const bool first = element.loaded && IndexOf(element.child(1), model_).IsZero();
      if (!set && !first) {
        return Fails(
            fmt::format("`{}` at line {} reads or writes something else than the result "
                        "in `{}[0]`",
                        model_.Text(element), element.line, array.name));
      }
    }
    return true;
  }

  /// array[t] = value; directly in front of the barrier in front of the loop.
  struct Feed {
    const Node* assign = nullptr;
    const Fold* fold = nullptr;
  };

  std::vector<Feed> FeedsOf(const Tree& tree, const Node** barrier) const {
    const std::vector<const Node*> siblings = Statements(*tree.loop->parent);
    auto at = std::ranges::find(siblings, tree.loop) - siblings.begin();
    std::vector<Feed> feeds;
    if (at < 2 || !IsNamed(*siblings[static_cast<std::size_t>(at - 1)], "__syncthreads")) {
      return feeds;
    }
    *barrier = siblings[static_cast<std::size_t>(at - 1)];
    for (at -= 2; at >= 0 && feeds.size() < tree.folds.size(); --at) {
      const Node& statement = *siblings[static_cast<std::size_t>(at)];
      if (!statement.Is(NodeKind::kAssign, "=") || !statement.child(0).Is(NodeKind::kSubscript)) {
        break;
      }
      const Node* array = statement.child(0).child(0).decl;
      const auto fold = std::ranges::find_if(
          tree.folds, [&](const Fold& candidate) { return candidate.array == array; });
      if (fold == tree.folds.end()) {
        break;
      }
      feeds.push_back({&statement, &*fold});
    }
    return feeds.size() == tree.folds.size() ? feeds : std::vector<Feed>();
  }

  /// The barrier orders only the arrays of this tree.
  bool OnlyFeeds(const Tree& tree) const {
    for (const Access& access : AccessesIn(kernel_, model_)) {
      const bool known = std::ranges::any_of(trees_, [&](const Tree& any) {
        return std::ranges::any_of(any.folds,
                                   [&](const Fold& fold) { return fold.array == access.base; });
      });
      if (access.written && !known && access.node->begin < tree.loop->begin) {
        return false;
      }
    }
    return true;
  }

  [[nodiscard]] std::string ValueName(const Fold& fold) const {
    return model_.FreshName(fold.array->name + "_value");
  }

  void Replace(const Tree& tree) {
    const std::string indent = model_.IndentOf(tree.loop->begin);
    const Node* barrier = nullptr;
    const std::vector<Feed> feeds = FeedsOf(tree, &barrier);
    const bool in_registers = !feeds.empty() && OnlyFeeds(tree);
    std::string text = "{\n";
    for (const Fold& fold : tree.folds) {
      std::string start = fmt::format("{}[{}]", fold.array->name, tree.thread);
      for (const Feed& feed : feeds) {
        if (in_registers && feed.fold == &fold) {
          start = model_.Text(feed.assign->child(1));
        }
      }
      text += fmt::format("{}  {} {} = {};\n", indent, ElementType(fold.array->type),
                          ValueName(fold), start);
    }
    text += Shuffles(tree, indent + "  ");
    if (!in_registers) {
      text += fmt::format("{}  __syncthreads();\n", indent);
    }
    text += SlotPhase(tree, indent) + indent + "}";
    if (in_registers) {
      // From the first feed to the end of the loop.
      std::uint32_t begin = tree.loop->begin;
      for (const Feed& feed : feeds) {
        begin = std::min(begin, feed.assign->begin);
      }
      edits_.Replace(begin, model_.StatementEnd(*tree.loop), text);
    } else {
      edits_.Replace(tree.loop->begin, model_.StatementEnd(*tree.loop), text);
    }
  }

  [[nodiscard]] std::string Shuffles(const Tree& tree, const std::string& indent) const {
    std::string text = fmt::format("{}for (int offset = 16; offset > 0; offset /= 2) {{\n", indent);
    for (const Fold& fold : tree.folds) {
      const std::string value = ValueName(fold);
      text +=
          fmt::format("{}  {}\n", indent,
                      fmt::format(fmt::runtime(fold.combine), value,
                                  fmt::format("__shfl_xor_sync(0xffffffffu, {}, offset)", value)));
    }
    return text + indent + "}\n";
  }

  [[nodiscard]] std::string SlotPhase(const Tree& tree, const std::string& indent) const {
    const std::string& t = tree.thread;
    std::string put;
    std::string get;
    std::string result;
    for (const Fold& fold : tree.folds) {
      const std::string value = ValueName(fold);
      const std::string& array = fold.array->name;
      put += fmt::format("{}    {}[{} / 32] = {};\n", indent, array, t, value);
      get += fold.keeps_start
                 ? fmt::format("{0}    {1} = {2}[{3} < blockDim.x / 32 ? {3} : 0];\n", indent,
                               value, array, t)
                 : fmt::format("{0}    {1} = {3} < blockDim.x / 32 ? {2}[{3}] : {4};\n", indent,
                               value, array, t, fold.neutral);
      result += fmt::format("{}      {}[0] = {};\n", indent, array, value);
    }
    return fmt::format(
        "{0}  if ({1} % 32 == 0) {{\n{2}{0}  }}\n{0}  __syncthreads();\n{0}  if ({1} < 32) {{\n"
        "{3}{4}{0}    if ({1} == 0) {{\n{5}{0}    }}\n{0}  }}\n{0}  __syncthreads();\n",
        indent, t, put, get, Shuffles(tree, indent + "    "), result);
  }

  const SourceModel& model_;
  const Node& kernel_;
  std::vector<Tree> trees_;
  std::string obstacle_;
  Edits edits_;
};

class ShuffleReduction final : public Rewrite {
 public:
  [[nodiscard]] std::string_view id() const override { return "shuffle_reduction"; }

  [[nodiscard]] std::vector<std::string_view> answers() const override {
    return {"lat.barrier", "smem.bank", "cmp.divergence", "smem.pressure", "lat.short_scoreboard"};
  }

  void Apply(const SourceModel& model, const ProposalRequest& request,
             Outcome& outcome) const override {
    for (const Node* kernel : model.kernels()) {
      std::string action = fmt::format("shuffle_reduction({})", kernel->name);
      ShuffleConversion conversion(model, *kernel);
      if (!conversion.Convert()) {
        outcome.Decline(std::move(action), conversion.obstacle());
        continue;
      }
      outcome.proposals.push_back(
          Propose(request, kernel->name, std::move(action), conversion.source(),
                  fmt::format("the tree at line {} of {} becomes warp shuffles and one shared slot "
                              "per warp: two barriers instead of one per step",
                              conversion.lines(), kernel->name),
                  0.5));
    }
  }
};

}  // namespace

std::unique_ptr<Rewrite> MakeShuffleReduction() {
  return std::make_unique<ShuffleReduction>();
}

}  // namespace kernelpro::playbook
