// SPDX-License-Identifier: Apache-2.0
//
//   for (base = 0; base < n; base += N) {              float partial = 0;
//     sh[t] = base + t < n ? x[base + t] : 0;          for (base = t; base < n; base += N) {
//     __syncthreads();                                   partial += x[base];
//     <tree over sh>                             ->    }
//     if (t == 0) total += sh[0];                      sh[t] = partial;
//     __syncthreads();                                 __syncthreads();
//   }                                                  <tree over sh>
//                                                      if (t == 0) total += sh[0];
//                                                      __syncthreads();
//
// Every thread first adds up its own elements; the block meets once instead of once per N elements.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "propose/playbook/edits.h"
#include "propose/playbook/rewrite.h"
#include "propose/playbook/tree_reduction.h"

namespace kernelpro::playbook {
namespace {

class Deferral {
 public:
  Deferral(const SourceModel& model, const Node& kernel) : model_(model), kernel_(kernel) {}

  bool Convert() {
    const auto threads = ThreadsOf(kernel_, model_, obstacle_);
    if (!threads) {
      return false;
    }
    for (const Node* loop : FindAll(kernel_, NodeKind::kFor)) {
      const auto counted = AsCountedLoop(*loop);
      if (counted && Match(*counted, *threads)) {
        Emit(*counted);
        return true;
      }
    }
    if (obstacle_.empty()) {
      obstacle_ = "no loop ends each round in a tree reduction of one value per thread";
    }
    return false;
  }

  [[nodiscard]] const std::string& obstacle() const { return obstacle_; }

  [[nodiscard]] std::string source() const { return edits_.Apply(model_.text()); }

  [[nodiscard]] std::uint32_t line() const { return line_; }

 private:
  bool Fails(std::string why) {
    obstacle_ = std::move(why);
    return false;
  }

  /// Feed, barrier, tree, use of sh[0], perhaps a barrier: nothing else in the loop.
  bool Match(const CountedLoop& loop, long long threads) {
    const auto statements = Statements(*loop.body);
    if (statements.size() < 4 || statements.size() > 5) {
      return false;
    }
    const auto tree = MatchTree(*statements[2], threads, model_);
    if (!tree || tree->folds.size() != 1 || !tree->folds[0].combine.starts_with("{0} +=")) {
      return false;
    }
    tree_ = *tree;
    const auto feeds = FeedsOf(tree_);
    if (feeds.size() != 1 || feeds[0].assign != statements[0]) {
      return Fails(fmt::format("the loop at line {} does more than reduce one value per round",
                               loop.loop->line));
    }
    feed_ = feeds[0].assign;
    use_ = statements[3];
    barrier_ = statements.size() == 5 ? statements[4] : nullptr;
    if (barrier_ != nullptr && !IsCallOf(*barrier_, "__syncthreads")) {
      return Fails(fmt::format("line {} is more than a barrier", barrier_->line));
    }
    if (!(IndexOf(feed_->child(0).child(1), model_) == Polynomial::Atom("threadIdx.x"))) {
      return Fails(fmt::format("line {} does not set the thread's own element", feed_->line));
    }
    return CheckUse() && CheckFeed(loop);
  }

  /// [if (t == 0)] total += sh[0]; with a total that the loop does not use otherwise.
  bool CheckUse() {
    const Node* add = use_;
    if (add->Is(NodeKind::kIf)) {
      const auto then = Statements(add->child(1));
      const Node& condition = add->child(0);
      const bool first = condition.Is(NodeKind::kBinary, "==") &&
                         IndexOf(condition.child(0), model_) == Polynomial::Atom("threadIdx.x") &&
                         ConstantValue(condition.child(1), model_) == 0;
      if (!first || then.size() != 1 || !add->child(2).Is(NodeKind::kEmpty)) {
        return Fails(fmt::format("line {} is not `if (thread == 0)`", use_->line));
      }
      add = then[0];
    }
    const bool sums = add->Is(NodeKind::kAssign, "+=") && add->child(0).Is(NodeKind::kReference) &&
                      add->child(1).Is(NodeKind::kSubscript) &&
                      add->child(1).child(0).decl == tree_.folds[0].array &&
                      IndexOf(add->child(1).child(1), model_).IsZero();
    if (!sums) {
      return Fails(fmt::format("line {} does not add the round's sum to a total", use_->line));
    }
    total_ = add->child(0).decl;
    return total_ != nullptr;
  }

  /// The value must not depend on the total or on what other threads left in shared memory.
  bool CheckFeed(const CountedLoop& loop) {
    const Node& value = feed_->child(1);
    if (!ReferencesTo(*total_, value).empty() || FindCooperation(value) != nullptr) {
      return Fails(fmt::format("the value at line {} depends on the total so far", feed_->line));
    }
    for (const Access& access : AccessesIn(value, model_)) {
      if (!IsGlobalMemory(access)) {
        return Fails(fmt::format("line {} reads `{}`", feed_->line, model_.Text(*access.node)));
      }
    }
    canonical_ = IsGuardedByThread(loop, value);
    return true;
  }

  [[nodiscard]] Polynomial Element(const CountedLoop& loop) const {
    return Polynomial::Atom(AtomOf(*loop.variable)) + Polynomial::Atom("threadIdx.x");
  }

  /// base + t < n ? e : 0, where n is the loop's bound and the loop starts at zero.
  [[nodiscard]] bool IsGuardedByThread(const CountedLoop& loop, const Node& value) const {
    if (!value.Is(NodeKind::kConditional) || value.children.size() != 3 ||
        ConstantValue(*loop.start, model_) != 0) {
      return false;
    }
    const Node& condition = value.child(0);
    std::string zero = model_.Normalized(value.child(2));
    std::erase_if(zero, [](char c) { return c == 'f' || c == 'F' || c == '.'; });
    const bool is_zero = !zero.empty() && zero.find_first_not_of('0') == std::string::npos;
    return condition.Is(NodeKind::kBinary, "<") && is_zero &&
           IndexOf(condition.child(0), model_) == Element(loop) &&
           model_.Normalized(condition.child(1)) == model_.Normalized(*loop.bound) &&
           OnlyAsElement(loop, value.child(1));
  }

  /// Every use of the loop variable and of the thread index is within base + t.
  [[nodiscard]] bool OnlyAsElement(const CountedLoop& loop, const Node& e) const {
    if (IndexOf(e, model_) == Element(loop)) {
      return true;
    }
    if (e.Is(NodeKind::kBuiltin) ||
        (e.Is(NodeKind::kReference) && e.decl != nullptr &&
         (e.decl == loop.variable || IndexOf(e, model_).Mentions("threadIdx.x")))) {
      return false;
    }
    return std::ranges::all_of(e.children,
                               [&](const auto& child) { return OnlyAsElement(loop, *child); });
  }

  [[nodiscard]] std::string Canonical(const CountedLoop& loop, const Node& e) const {
    Edits edits;
    Walk(e, [&](const Node& n) {
      if (IndexOf(n, model_) == Element(loop)) {
        edits.Replace(n, loop.variable->name);
        return false;
      }
      return true;
    });
    return edits.ApplyWithin(model_.text(), e.begin, e.end);
  }

  void Emit(const CountedLoop& loop) {
    line_ = loop.loop->line;
    const std::string indent = model_.IndentOf(loop.loop->begin);
    const std::string partial = model_.FreshName("partial");
    const std::string type = ElementType(tree_.folds[0].array->type);
    const Node& value = feed_->child(1);
    const std::string head =
        canonical_
            ? fmt::format("for ({} {} = {}; {}; {})", loop.variable->type, loop.variable->name,
                          tree_.thread, model_.Text(loop.loop->child(1)),
                          model_.Text(*loop.increment))
            : std::string(Trim(std::string_view(model_.text())
                                   .substr(loop.loop->begin, loop.body->begin - loop.loop->begin)));
    std::string text = fmt::format(
        "{0} {1} = 0;\n{2}{3} {{\n{2}  {1} += {4};\n{2}}}\n{2}{5} = {1};\n", type, partial, indent,
        head, canonical_ ? Canonical(loop, value.child(1)) : std::string(model_.Text(value)),
        model_.Text(feed_->child(0)));
    // From the barrier to the end of the body, one level further out.
    const auto statements = Statements(*loop.body);
    for (std::size_t i = 1; i < statements.size(); ++i) {
      const Node& statement = *statements[i];
      std::string part(
          std::string_view(model_.text())
              .substr(statement.begin, model_.StatementEnd(statement) - statement.begin));
      for (std::size_t at = part.find("\n  "); at != std::string::npos;
           at = part.find("\n  ", at + 1)) {
        part.erase(at + 1, 2);
      }
      text += indent + part + (i + 1 == statements.size() ? "" : "\n");
    }
    edits_.Replace(loop.loop->begin, loop.loop->end, text);
  }

  const SourceModel& model_;
  const Node& kernel_;
  Tree tree_;
  const Node* feed_ = nullptr;
  const Node* use_ = nullptr;
  const Node* barrier_ = nullptr;
  const Node* total_ = nullptr;
  bool canonical_ = false;
  std::uint32_t line_ = 0;
  std::string obstacle_;
  Edits edits_;
};

class DeferReduction final : public Rewrite {
 public:
  [[nodiscard]] std::string_view id() const override { return "defer_reduction"; }

  [[nodiscard]] std::vector<std::string_view> answers() const override {
    return {"lat.barrier",          "smem.bank", "smem.pressure", "cmp.divergence",
            "lat.short_scoreboard", "cmp.issue"};
  }

  void Apply(const SourceModel& model, const ProposalRequest& request,
             Outcome& outcome) const override {
    for (const Node* kernel : model.kernels()) {
      if (!HasBarrierLoop(*kernel)) {
        continue;
      }
      std::string action = fmt::format("defer_reduction({})", kernel->name);
      Deferral deferral(model, *kernel);
      if (!deferral.Convert()) {
        outcome.Decline(std::move(action), deferral.obstacle());
        continue;
      }
      outcome.proposals.push_back(
          Propose(request, kernel->name, std::move(action), deferral.source(),
                  fmt::format("each thread adds up its own elements of the loop at line {} of {} "
                              "and the block reduces once at the end instead of once per round",
                              deferral.line(), kernel->name),
                  0.55));
    }
  }
};

}  // namespace

std::unique_ptr<Rewrite> MakeDeferReduction() {
  return std::make_unique<DeferReduction>();
}

}  // namespace kernelpro::playbook
