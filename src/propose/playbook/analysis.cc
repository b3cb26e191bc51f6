// SPDX-License-Identifier: Apache-2.0
#include "propose/playbook/analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/text.h"

namespace kernelpro::playbook {
namespace {

constexpr int kMaxExpansions = 64;

std::optional<long long> LiteralValue(std::string_view text) {
  std::string digits;
  for (const char c : text) {
    if (c != '\'') {
      digits += c;
    }
  }
  char* end = nullptr;
  const long long value = std::strtoll(digits.c_str(), &end, 0);
  const std::string_view suffix = end;
  const bool integer =
      end != digits.c_str() && suffix.find_first_not_of("uUlL") == std::string_view::npos;
  return integer ? std::optional(value) : std::nullopt;
}

/// #define NAME 256, for literals that come out of a macro.
std::optional<long long> MacroValue(std::string_view name, const SourceModel& model) {
  const std::vector<Token>& tokens = model.tokens();
  for (std::size_t i = 0; i + 3 < tokens.size(); ++i) {
    if (model.Text(tokens[i]) == "#" && model.Text(tokens[i + 1]) == "define" &&
        model.Text(tokens[i + 2]) == name) {
      return LiteralValue(model.Text(tokens[i + 3]));
    }
  }
  return std::nullopt;
}

class IndexBuilder {
 public:
  explicit IndexBuilder(const SourceModel& model) : model_(model) {}

  Polynomial Of(const Node& e) {
    switch (e.kind) {
      case NodeKind::kInteger:
        if (const auto value = ConstantValue(e, model_)) {
          return Polynomial::Constant(*value);
        }
        break;
      case NodeKind::kBuiltin:
        return Polynomial::Atom(e.name);
      case NodeKind::kCast:
        if (e.children.size() == 1 && !IsPointer(e.type)) {
          return Of(e.child(0));
        }
        break;
      case NodeKind::kReference:
        return OfReference(e);
      case NodeKind::kUnary:
        if (e.op == "-") {
          return Polynomial() - Of(e.child(0));
        }
        break;
      case NodeKind::kBinary:
        if (e.op == "+") {
          return Of(e.child(0)) + Of(e.child(1));
        }
        if (e.op == "-") {
          return Of(e.child(0)) - Of(e.child(1));
        }
        if (e.op == "*") {
          return Of(e.child(0)) * Of(e.child(1));
        }
        break;
      default:
        break;
    }
    return Opaque(e);
  }

 private:
  Polynomial OfReference(const Node& e) {
    if (e.decl == nullptr) {
      return Polynomial::Atom(e.name);
    }
    const Node* value = e.decl->Is(NodeKind::kVariable) ? Initializer(*e.decl) : nullptr;
    if (value != nullptr && expansions_ < kMaxExpansions && IsReadOnly(*e.decl)) {
      ++expansions_;
      return Of(*value);
    }
    return Polynomial::Atom(AtomOf(*e.decl));
  }

  /// An atom for what is no polynomial. It spells out the atoms inside, so that asking whether a
  /// thread index is involved gets the right answer.
  Polynomial Opaque(const Node& e) {
    std::string name = "(" + model_.Normalized(e);
    Walk(e, [&](const Node& n) {
      if (n.Is(NodeKind::kReference) && n.decl != nullptr) {
        name += " " + AtomOf(*n.decl);
        const Node* value = n.decl->Is(NodeKind::kVariable) ? Initializer(*n.decl) : nullptr;
        if (value != nullptr && expansions_ < kMaxExpansions && IsReadOnly(*n.decl)) {
          ++expansions_;
          const Polynomial inner = Of(*value);
          for (const char* builtin : {"threadIdx.x", "threadIdx.y", "threadIdx.z", "blockIdx.x",
                                      "blockIdx.y", "blockIdx.z"}) {
            if (inner.Mentions(builtin)) {
              name += std::string(" ") + builtin;
            }
          }
        }
      } else if (n.Is(NodeKind::kBuiltin)) {
        name += " " + n.name;
      }
      return true;
    });
    return Polynomial::Atom(name + ")");
  }

  const SourceModel& model_;
  int expansions_ = 0;
};

/// base + index behind a pointer expression.
struct Pointer {
  const Node* base = nullptr;
  Polynomial index;
};

Pointer PointerOf(const Node& e, const SourceModel& model, int depth) {
  if (depth > 16) {
    return {};
  }
  if (e.Is(NodeKind::kReference) && e.decl != nullptr) {
    const Node* value = e.decl->Is(NodeKind::kVariable) ? Initializer(*e.decl) : nullptr;
    if (value == nullptr) {
      const bool fixed = e.decl->type.find('[') != std::string::npos || IsReadOnly(*e.decl);
      return fixed ? Pointer{e.decl, {}} : Pointer{};
    }
    return IsReadOnly(*e.decl) ? PointerOf(*value, model, depth + 1) : Pointer{};
  }
  if (e.Is(NodeKind::kBinary, "+") || e.Is(NodeKind::kBinary, "-")) {
    const bool left = IsPointer(e.child(0).type) || e.child(0).type.find('[') != std::string::npos;
    if (!left && e.op == "-") {
      return {};
    }
    Pointer pointer = PointerOf(e.child(left ? 0 : 1), model, depth + 1);
    const Polynomial offset = IndexOf(e.child(left ? 1 : 0), model);
    pointer.index = e.op == "+" ? pointer.index + offset : pointer.index - offset;
    return pointer;
  }
  if (e.Is(NodeKind::kUnary, "&") && e.child(0).Is(NodeKind::kSubscript)) {
    const Node& subscript = e.child(0);
    Pointer pointer = PointerOf(subscript.child(0), model, depth + 1);
    pointer.index = pointer.index + IndexOf(subscript.child(1), model);
    return pointer;
  }
  return {};
}

bool IsAccess(const Node& n) {
  return n.Is(NodeKind::kSubscript) || n.Is(NodeKind::kUnary, "*");
}

}  // namespace

std::string AtomOf(const Node& variable) {
  return fmt::format("{}#{}", variable.name, variable.name_begin);
}

const Node* Initializer(const Node& variable) {
  if (variable.children.empty() || variable.type.find('[') != std::string::npos) {
    return nullptr;
  }
  return variable.children.back().get();
}

std::vector<const Node*> ReferencesTo(const Node& variable, const Node& scope) {
  std::vector<const Node*> found;
  Walk(scope, [&](const Node& n) {
    if (n.Is(NodeKind::kReference) && n.decl == &variable) {
      found.push_back(&n);
    }
    return true;
  });
  return found;
}

bool IsReadOnly(const Node& variable) {
  if (variable.is_const) {
    return true;
  }
  const Node* function = EnclosingFunction(variable);
  const Node* scope = function;
  for (const Node* n = &variable; n->parent != nullptr && function == nullptr; n = n->parent) {
    scope = n->parent;
  }
  if (scope == nullptr) {
    return false;
  }
  const std::vector<const Node*> uses = ReferencesTo(variable, *scope);
  return std::ranges::all_of(uses, [](const Node* use) { return use->loaded; });
}

std::optional<long long> ConstantValue(const Node& e, const SourceModel& model) {
  if (e.Is(NodeKind::kInteger)) {
    const auto value = LiteralValue(model.Text(e));
    return value ? value : MacroValue(model.Text(e), model);
  }
  if (e.Is(NodeKind::kReference) && e.decl != nullptr && e.decl->is_const) {
    const Node* value = Initializer(*e.decl);
    return value == nullptr ? std::nullopt : ConstantValue(*value, model);
  }
  if (e.Is(NodeKind::kCast) && e.children.size() == 1) {
    return ConstantValue(e.child(0), model);
  }
  if (!e.Is(NodeKind::kBinary)) {
    return std::nullopt;
  }
  const auto a = ConstantValue(e.child(0), model);
  const auto b = ConstantValue(e.child(1), model);
  constexpr long long kLimit = 1LL << 31;
  if (!a || !b || std::llabs(*a) > kLimit || std::llabs(*b) > kLimit) {
    return std::nullopt;
  }
  if (e.op == "+") {
    return *a + *b;
  }
  if (e.op == "-") {
    return *a - *b;
  }
  if (e.op == "*") {
    return *a * *b;
  }
  if (e.op == "/" && *b != 0) {
    return *a / *b;
  }
  return std::nullopt;
}

Polynomial IndexOf(const Node& expression, const SourceModel& model) {
  return IndexBuilder(model).Of(expression);
}

std::vector<Access> AccessesIn(const Node& scope, const SourceModel& model) {
  std::vector<Access> accesses;
  Walk(scope, [&](const Node& n) {
    const bool inner =
        n.parent != nullptr && n.parent->Is(NodeKind::kSubscript) && &n.parent->child(0) == &n;
    if (!IsAccess(n) || inner) {
      return true;
    }
    Access access;
    access.node = &n;
    Pointer pointer = PointerOf(n.child(0), model, 0);
    if (n.Is(NodeKind::kSubscript) && n.child(0).Is(NodeKind::kSubscript)) {
      // array[i][j]: keep the array, name both indices in an opaque one.
      pointer = PointerOf(n.child(0).child(0), model, 0);
      pointer.index = Polynomial::Atom("(" + model.Normalized(n) + ")");
    } else if (n.Is(NodeKind::kSubscript)) {
      pointer.index = pointer.index + IndexOf(n.child(1), model);
    }
    access.base = pointer.base;
    access.index = pointer.index;
    const Node* parent = n.parent;
    const bool target =
        parent != nullptr && parent->Is(NodeKind::kAssign) && &parent->child(0) == &n;
    const bool stepped = parent != nullptr && parent->Is(NodeKind::kUnary) &&
                         (parent->op.ends_with("++") || parent->op.ends_with("--"));
    const bool taken = parent != nullptr && parent->Is(NodeKind::kUnary, "&");
    access.written = target || stepped || taken;
    access.read = !target || parent->op != "=";
    accesses.push_back(std::move(access));
    return true;
  });
  return accesses;
}

bool IsGlobalMemory(const Access& access) {
  return access.base != nullptr && access.base->Is(NodeKind::kParameter) &&
         IsPointer(access.base->type);
}

std::optional<CountedLoop> AsCountedLoop(const Node& loop) {
  if (!loop.Is(NodeKind::kFor) || loop.children.size() != 4) {
    return std::nullopt;
  }
  const Node& init = loop.child(0);
  const Node& condition = loop.child(1);
  const Node& increment = loop.child(2);
  if (!init.Is(NodeKind::kDeclaration) || init.children.size() != 1 ||
      !condition.Is(NodeKind::kBinary, "<")) {
    return std::nullopt;
  }
  CountedLoop counted;
  counted.loop = &loop;
  counted.variable = &init.child(0);
  counted.start = Initializer(*counted.variable);
  counted.bound = &condition.child(1);
  counted.increment = &increment;
  counted.body = &loop.child(3);
  const bool steps = increment.Is(NodeKind::kUnary, "pre++") ||
                     increment.Is(NodeKind::kUnary, "post++") ||
                     increment.Is(NodeKind::kAssign, "+=");
  if (counted.start == nullptr || condition.child(0).decl != counted.variable || !steps ||
      increment.child(0).decl != counted.variable) {
    return std::nullopt;
  }
  if (increment.Is(NodeKind::kAssign)) {
    counted.step = &increment.child(1);
  }
  const auto uses = ReferencesTo(*counted.variable, *counted.body);
  if (!std::ranges::all_of(uses, [](const Node* use) { return use->loaded; })) {
    return std::nullopt;
  }
  return counted;
}

std::vector<const Node*> LaunchComponents(const Node& launch, std::size_t which) {
  const Node* shape = &launch.child(which);
  if (shape->Is(NodeKind::kReference) && shape->decl != nullptr &&
      shape->type.find("dim3") != std::string::npos) {
    const Node& variable = *shape->decl;
    const Node* function = EnclosingFunction(variable);
    for (const Node* use :
         function == nullptr ? std::vector<const Node*>() : ReferencesTo(variable, *function)) {
      const Node* member = use->parent;
      const bool assigned = member->Is(NodeKind::kMember) && !member->loaded;
      if (assigned || member->Is(NodeKind::kAssign)) {
        return {};
      }
    }
    shape = Initializer(variable);
    if (shape == nullptr) {
      return {};
    }
  }
  if (shape->type.find("dim3") == std::string::npos) {
    return {shape};
  }
  if (!shape->Is(NodeKind::kCall) || shape->name != "dim3" || shape->children.empty()) {
    return {};
  }
  std::vector<const Node*> components;
  for (const auto& child : shape->children) {
    components.push_back(child.get());
  }
  return components;
}

std::optional<std::array<long long, 3>> BlockShape(const Node& launch, const SourceModel& model) {
  const std::vector<const Node*> components = LaunchComponents(launch, 1);
  if (components.empty() || components.size() > 3) {
    return std::nullopt;
  }
  std::array<long long, 3> shape = {1, 1, 1};
  for (std::size_t i = 0; i < components.size(); ++i) {
    const auto value = ConstantValue(*components[i], model);
    if (!value || *value < 1) {
      return std::nullopt;
    }
    shape[i] = *value;
  }
  return shape;
}

bool IsGlobalIndex(const Polynomial& index, char dimension, const Node& kernel,
                   const SourceModel& model) {
  const Polynomial thread = Polynomial::Atom(fmt::format("threadIdx.{}", dimension));
  const std::string block = fmt::format("blockIdx.{}", dimension);
  const auto size = (index - thread).Coefficient(block);
  if (!size || size->IsZero() || !(index == *size * Polynomial::Atom(block) + thread)) {
    return false;
  }
  if (*size == Polynomial::Atom(fmt::format("blockDim.{}", dimension))) {
    return true;
  }
  const auto value = size->AsConstant();
  const auto launches = model.LaunchesOf(kernel);
  return value && !launches.empty() && std::ranges::all_of(launches, [&](const Node* launch) {
           const auto shape = BlockShape(*launch, model);
           return shape && (*shape)[dimension == 'x' ? 0 : 1] == *value;
         });
}

const Node* FindCooperation(const Node& scope) {
  const Node* found = nullptr;
  Walk(scope, [&](const Node& n) {
    if (n.Is(NodeKind::kCall)) {
      for (const char* prefix :
           {"__sync", "__shfl", "atomic", "__ballot", "__any", "__all", "__activemask", "__match",
            "__reduce", "__barrier", "__threadfence", "__nanosleep",
            // Inline assembly may do any of these.
            "asm"}) {
        if (n.name.starts_with(prefix) && found == nullptr) {
          found = &n;
        }
      }
    }
    return true;
  });
  return found;
}

bool IsBuiltin(const Node& node, std::string_view name) {
  return node.Is(NodeKind::kBuiltin) && node.name == name;
}

bool UsesBuiltin(const Node& scope, std::string_view prefix) {
  bool used = false;
  Walk(scope, [&](const Node& n) {
    used |= n.Is(NodeKind::kBuiltin) && n.name.starts_with(prefix);
    return true;
  });
  return used;
}

std::string ElementType(std::string_view type) {
  std::string_view element = type.substr(0, type.find_first_of("*["));
  for (const std::string_view word : {"const ", "volatile "}) {
    if (element.starts_with(word)) {
      element.remove_prefix(word.size());
    }
  }
  return std::string(Trim(element));
}

bool IsPointer(std::string_view type) {
  return type.find('*') != std::string_view::npos;
}

}  // namespace kernelpro::playbook
