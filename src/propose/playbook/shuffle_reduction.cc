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
#include <string>
#include <utility>
#include <vector>

#include "propose/playbook/edits.h"
#include "propose/playbook/rewrite.h"
#include "propose/playbook/tree_reduction.h"

namespace kernelpro::playbook {
namespace {

class ShuffleConversion {
 public:
  ShuffleConversion(const SourceModel& model, const Node& function)
      : model_(model), function_(function) {}

  bool Convert() {
    const auto threads = ThreadsOf(function_, model_, obstacle_);
    if (!threads) {
      return false;
    }
    for (const Node* loop : FindAll(function_, NodeKind::kFor)) {
      if (const auto tree = MatchTree(*loop, *threads, model_)) {
        trees_.push_back(*tree);
      }
    }
    if (trees_.empty()) {
      return Fails("no loop is a tree reduction over a shared array with a barrier in every step");
    }
    for (const Tree& tree : trees_) {
      for (const Fold& fold : tree.folds) {
        if (!CheckUses(*fold.array) || !CheckCallers(*fold.array)) {
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
    std::vector<std::uint32_t> lines;
    for (const Tree& tree : trees_) {
      lines.push_back(tree.loop->line);
    }
    return LineList(lines);
  }

 private:
  bool Fails(std::string why) {
    obstacle_ = std::move(why);
    return false;
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
    for (const Node* use : ReferencesTo(array, function_)) {
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

  /// An array that comes in as a parameter: the callers must not look at it themselves.
  bool CheckCallers(const Node& array) {
    if (!array.Is(NodeKind::kParameter)) {
      return true;
    }
    const auto parameters = Parameters(function_);
    const auto position =
        static_cast<std::size_t>(std::ranges::find(parameters, &array) - parameters.begin());
    for (const Node* call : FindAll(model_.root(), NodeKind::kCall)) {
      if (call->name != function_.name || position >= call->children.size()) {
        continue;
      }
      const Node* passed = call->child(position).decl;
      const Node* caller = EnclosingFunction(*call);
      if (passed == nullptr || caller == nullptr || !passed->is_shared) {
        return Fails(
            fmt::format("line {} does not pass a shared array as `{}`", call->line, array.name));
      }
      for (const Node* use : ReferencesTo(*passed, *caller)) {
        if (!IsCallOf(*use->parent, function_.name)) {
          return Fails(fmt::format("`{}` is also used at line {}", passed->name, use->line));
        }
      }
    }
    return true;
  }

  /// The barrier orders only the arrays of this tree.
  bool OnlyFeeds(const Tree& tree) const {
    for (const Access& access : AccessesIn(function_, model_)) {
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
    const std::vector<Feed> feeds = FeedsOf(tree);
    const bool in_registers = !feeds.empty() && OnlyFeeds(tree);
    std::string text = "{\n";
    for (const Fold& fold : tree.folds) {
      std::string start = fmt::format("{}[{}]", fold.array->name, tree.thread);
      for (const Feed& feed : feeds) {
        if (in_registers && feed.array == fold.array) {
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
  const Node& function_;
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
    int trees = 0;
    std::string why =
        "no loop is a tree reduction over a shared array with a barrier in every step";
    for (const Node* function : FindAll(model.root(), NodeKind::kFunction)) {
      const bool loops = Body(*function) != nullptr && HasBarrierLoop(*function);
      if (!(function->is_kernel || function->is_device) || !loops) {
        continue;
      }
      std::string action = fmt::format("shuffle_reduction({})", function->name);
      ShuffleConversion conversion(model, *function);
      ++trees;
      if (!conversion.Convert()) {
        outcome.Decline(std::move(action), conversion.obstacle());
        continue;
      }
      outcome.proposals.push_back(Propose(
          request, function->is_kernel ? function->name : "", std::move(action),
          conversion.source(),
          fmt::format("the tree reduction at {} of {} becomes warp shuffles and one shared slot "
                      "per warp: two barriers instead of one per step",
                      conversion.lines(), function->name),
          0.5));
    }
    if (trees == 0) {
      outcome.Decline("shuffle_reduction", std::move(why));
    }
  }
};

}  // namespace

std::unique_ptr<Rewrite> MakeShuffleReduction() {
  return std::make_unique<ShuffleReduction>();
}

}  // namespace kernelpro::playbook
