// SPDX-License-Identifier: Apache-2.0
#include "propose/playbook/loop_effects.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "base/text.h"

namespace kernelpro::playbook {
namespace {

struct Step {
  Reduction reduction;
  std::size_t references = 0;  // that belong to it
};

bool Mentions(const Node& scope, const Node& variable) {
  return !ReferencesTo(variable, scope).empty();
}

bool Refers(const Node& node, const Node& variable) {
  return node.Is(NodeKind::kReference) && node.decl == &variable;
}

std::optional<Reduction::Op> OpOfFunction(std::string_view name) {
  if (name == "fmaxf" || name == "fmax" || name == "max") {
    return Reduction::Op::kMax;
  }
  if (name == "fminf" || name == "fmin" || name == "min") {
    return Reduction::Op::kMin;
  }
  return std::nullopt;
}

/// `e > v` or `v < e`: taking e makes a maximum. `e` is whatever stands against the variable.
std::optional<Reduction::Op> OpOfComparison(const Node& condition, const Node& variable,
                                            const Node** against) {
  if (!condition.Is(NodeKind::kBinary)) {
    return std::nullopt;
  }
  const bool less = condition.op == "<" || condition.op == "<=";
  const bool greater = condition.op == ">" || condition.op == ">=";
  if (!less && !greater) {
    return std::nullopt;
  }
  const bool right = Refers(condition.child(1), variable);
  if (!right && !Refers(condition.child(0), variable)) {
    return std::nullopt;
  }
  *against = &condition.child(right ? 0 : 1);
  return greater == right ? Reduction::Op::kMax : Reduction::Op::kMin;
}

/// v = call | v + e | e > v ? e : v
std::optional<Step> AsPlainAssignment(const Node& value, const Node& variable,
                                      const SourceModel& model) {
  const auto exactly_one = [&](const Node& a, const Node& b) {
    return (Refers(a, variable) && !Mentions(b, variable)) ||
           (Refers(b, variable) && !Mentions(a, variable));
  };
  Step step{{&variable, Reduction::Op::kSum, ""}, 2};
  if (value.Is(NodeKind::kCall) && value.children.size() == 2) {
    const auto op = OpOfFunction(value.name);
    if (op && exactly_one(value.child(0), value.child(1))) {
      step.reduction.op = *op;
      step.reduction.function = value.name;
      return step;
    }
  }
  if (value.Is(NodeKind::kCall) && value.children.size() == 3 &&
      (value.name == "fmaf" || value.name == "fma") && Refers(value.child(2), variable) &&
      !Mentions(value.child(0), variable) && !Mentions(value.child(1), variable)) {
    return step;
  }
  if (value.Is(NodeKind::kBinary) && (value.op == "+" || value.op == "*") &&
      exactly_one(value.child(0), value.child(1))) {
    step.reduction.op = value.op == "+" ? Reduction::Op::kSum : Reduction::Op::kProduct;
    return step;
  }
  if (value.Is(NodeKind::kConditional) && value.children.size() == 3) {
    const Node* against = nullptr;
    const auto op = OpOfComparison(value.child(0), variable, &against);
    if (op && Refers(value.child(2), variable) && !Mentions(value.child(1), variable) &&
        model.Normalized(*against) == model.Normalized(value.child(1))) {
      step.reduction.op = *op;
      step.references = 3;
      return step;
    }
  }
  return std::nullopt;
}

/// if (e > v) v = e;
std::optional<Step> AsGuardedAssignment(const Node& assign, const Node& variable,
                                        const SourceModel& model) {
  const Node* branch = &assign;
  if (branch->parent->Is(NodeKind::kCompound) && branch->parent->children.size() == 1) {
    branch = branch->parent;
  }
  const Node& parent = *branch->parent;
  if (!parent.Is(NodeKind::kIf) || &parent.child(1) != branch ||
      !parent.child(2).Is(NodeKind::kEmpty)) {
    return std::nullopt;
  }
  const Node* against = nullptr;
  const auto op = OpOfComparison(parent.child(0), variable, &against);
  if (!op || model.Normalized(*against) != model.Normalized(assign.child(1))) {
    return std::nullopt;
  }
  return Step{{&variable, *op, ""}, 2};
}

std::optional<Step> AsReductionStep(const Node& change, const Node& variable,
                                    const SourceModel& model) {
  if (change.Is(NodeKind::kUnary)) {
    return Step{{&variable, Reduction::Op::kSum, ""}, 1};
  }
  const Node& value = change.child(1);
  if (change.op == "=") {
    auto step = AsPlainAssignment(value, variable, model);
    return step ? step : AsGuardedAssignment(change, variable, model);
  }
  if (Mentions(value, variable)) {
    return std::nullopt;
  }
  if (change.op == "+=" || change.op == "-=") {
    return Step{{&variable, Reduction::Op::kSum, ""}, 1};
  }
  if (change.op == "*=") {
    return Step{{&variable, Reduction::Op::kProduct, ""}, 1};
  }
  return std::nullopt;
}

class EffectsFinder {
 public:
  EffectsFinder(const CountedLoop& loop, const SourceModel& model) : loop_(loop), model_(model) {}

  LoopEffects Find() {
    effects_.accesses = AccessesIn(*loop_.body, model_);
    FindControlFlow();
    FindScalars();
    FindStores();
    return std::move(effects_);
  }

 private:
  void Obstacle(std::string why) {
    if (effects_.obstacle.empty()) {
      effects_.obstacle = std::move(why);
    }
  }

  void FindControlFlow() {
    if (const Node* call = FindCooperation(*loop_.body)) {
      Obstacle(fmt::format("the loop at line {} calls {}", loop_.loop->line, call->name));
    }
    Walk(*loop_.body, [&](const Node& n) {
      if (n.Is(NodeKind::kReturn) || n.Is(NodeKind::kBreak)) {
        Obstacle(fmt::format("the loop at line {} may be left early at line {}", loop_.loop->line,
                             n.line));
      }
      const bool passes_pointer =
          n.Is(NodeKind::kCall) && std::ranges::any_of(n.children, [](const auto& argument) {
            return IsPointer(argument->type) ||
                   (argument->Is(NodeKind::kReference) && !argument->loaded);
          });
      if (passes_pointer) {
        Obstacle(
            fmt::format("`{}` at line {} gets a pointer or reference and may change what is "
                        "behind it",
                        n.name, n.line));
      }
      return true;
    });
  }

  void FindScalars() {
    std::map<const Node*, std::vector<Step>> steps;
    std::vector<const Node*> order;
    Walk(*loop_.body, [&](const Node& n) {
      if (!n.Is(NodeKind::kReference) || n.loaded || n.decl == nullptr ||
          Contains(*loop_.loop, *n.decl) || n.decl->Is(NodeKind::kFunction) || n.decl->is_const ||
          n.type.find('[') != std::string::npos) {
        return true;
      }
      if (std::ranges::find(order, n.decl) == order.end()) {
        order.push_back(n.decl);
      }
      const bool changed = (n.parent->Is(NodeKind::kAssign) && &n.parent->child(0) == &n) ||
                           n.parent->op.ends_with("++");
      const auto step = changed ? AsReductionStep(*n.parent, *n.decl, model_) : std::nullopt;
      if (step) {
        steps[n.decl].push_back(*step);
      } else {
        Dependence(*n.decl);
      }
      return true;
    });
    for (const Node* variable : order) {
      AddReduction(*variable, steps[variable]);
    }
  }

  void AddReduction(const Node& variable, const std::vector<Step>& steps) {
    std::size_t accounted = 0;
    for (const Step& step : steps) {
      accounted += step.references;
      if (step.reduction.op != steps.front().reduction.op) {
        Dependence(variable);
      }
    }
    if (steps.empty() || accounted != ReferencesTo(variable, *loop_.loop).size()) {
      Dependence(variable);
      return;
    }
    effects_.reductions.push_back(steps.front().reduction);
  }

  void Dependence(const Node& variable) {
    Obstacle(fmt::format("the loop at line {} carries a dependence through `{}`", loop_.loop->line,
                         variable.name));
  }

  void FindStores() {
    for (const Access& store : effects_.accesses) {
      if (!store.written) {
        continue;
      }
      if (store.base == nullptr) {
        Obstacle(fmt::format("line {} writes through a pointer that cannot be followed",
                             store.node->line));
        continue;
      }
      const auto factor = store.index.Coefficient(AtomOf(*loop_.variable));
      if (!factor || factor->IsZero() || MentionsInner(store.index)) {
        Obstacle(
            fmt::format("several iterations of the loop at line {} may write the same "
                        "element of `{}`",
                        loop_.loop->line, store.base->name));
      }
      for (const Access& other : effects_.accesses) {
        const bool same_base = other.base == nullptr || other.base == store.base;
        if (same_base && !(other.index == store.index)) {
          Obstacle(fmt::format("the loop at line {} carries a dependence through `{}`",
                               loop_.loop->line, store.base->name));
        }
      }
    }
  }

  /// The index depends on something else that changes inside the loop.
  bool MentionsInner(const Polynomial& index) {
    bool mentioned = false;
    Walk(*loop_.body, [&](const Node& n) {
      mentioned |= n.Is(NodeKind::kVariable) && index.Mentions(AtomOf(n));
      return true;
    });
    return mentioned;
  }

  const CountedLoop& loop_;
  const SourceModel& model_;
  LoopEffects effects_;
};

bool IsNumber(std::string_view text, double wanted) {
  while (!text.empty() && std::string_view("fFuUlL").find(text.back()) != std::string_view::npos) {
    text.remove_suffix(1);
  }
  if (!text.empty() && text.back() == '.') {
    text.remove_suffix(1);
  }
  double value = 0;
  return ParseDouble(text, &value) && value == wanted;
}

}  // namespace

std::string Reduction::Combine(std::string_view other) const {
  const std::string& name = variable->name;
  if (!function.empty()) {
    return fmt::format("{0} = {1}({0}, {2});", name, function, other);
  }
  switch (op) {
    case Op::kSum:
      return fmt::format("{} += {};", name, other);
    case Op::kProduct:
      return fmt::format("{} *= {};", name, other);
    case Op::kMax:
      return fmt::format("{0} = {1} > {0} ? {1} : {0};", name, other);
    case Op::kMin:
      return fmt::format("{0} = {1} < {0} ? {1} : {0};", name, other);
  }
  return {};
}

bool LoopEffects::Writes() const {
  return std::ranges::any_of(accesses, [](const Access& access) { return access.written; });
}

LoopEffects EffectsOf(const CountedLoop& loop, const SourceModel& model) {
  return EffectsFinder(loop, model).Find();
}

bool StartsNeutral(const Reduction& reduction, const Node& loop, const SourceModel& model) {
  if (reduction.op == Reduction::Op::kMax || reduction.op == Reduction::Op::kMin) {
    return true;  // Folding the start value in once per thread changes nothing.
  }
  const double neutral = reduction.op == Reduction::Op::kSum ? 0 : 1;
  const Node& variable = *reduction.variable;
  const Node* function = EnclosingFunction(variable);
  if (function == nullptr) {
    return false;
  }
  const Node* last = nullptr;
  for (const Node* use : ReferencesTo(variable, *function)) {
    if (use->begin < loop.begin && !use->loaded) {
      last = use;
    }
  }
  if (last != nullptr) {
    const Node& assign = *last->parent;
    return assign.Is(NodeKind::kAssign, "=") && assign.parent == loop.parent &&
           IsNumber(model.Normalized(assign.child(1)), neutral);
  }
  const Node* value = Initializer(variable);
  for (const Node* n = loop.parent; n != nullptr && n != variable.parent->parent; n = n->parent) {
    if (n->IsLoop()) {
      return false;  // Declared outside a loop around this one: not fresh the second time.
    }
  }
  return value != nullptr && IsNumber(model.Normalized(*value), neutral);
}

bool CanShuffle(std::string_view type) {
  static constexpr std::array<std::string_view, 8> kTypes = {
      "float", "double",        "int",       "unsigned int",
      "long",  "unsigned long", "long long", "unsigned long long"};
  return std::ranges::find(kTypes, type) != kTypes.end();
}

}  // namespace kernelpro::playbook
