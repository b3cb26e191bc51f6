// SPDX-License-Identifier: Apache-2.0
#include "propose/playbook/launch_edits.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "propose/playbook/analysis.h"

namespace kernelpro::playbook {
namespace {

constexpr std::size_t kConfigurationParts = 4;

/// The dim3 variable behind a launch's grid or block, when nothing else uses it (a block may be
/// used by the grid that goes with it).
const Node* OwnVariable(const Node& launch, std::size_t which) {
  const Node& shape = launch.child(which);
  if (!shape.Is(NodeKind::kReference) || shape.decl == nullptr ||
      shape.type.find("dim3") == std::string::npos) {
    return nullptr;
  }
  const Node* function = EnclosingFunction(*shape.decl);
  const Node* value = Initializer(*shape.decl);
  if (function == nullptr || value == nullptr || !value->Is(NodeKind::kCall) ||
      value->children.empty()) {
    return nullptr;
  }
  const Node* grid = which == 1 ? launch.child(0).decl : nullptr;
  const auto uses = ReferencesTo(*shape.decl, *function);
  const auto others = std::ranges::count_if(uses, [&](const Node* use) {
    return use != &shape && (grid == nullptr || !Contains(*grid, *use));
  });
  return others == 0 ? shape.decl : nullptr;
}

}  // namespace

void ScaleGridX(const SourceModel& model, const Node& launch, std::string_view factor,
                Edits& edits) {
  const Node& grid = launch.child(0);
  const Node* first = nullptr;
  if (const Node* variable = OwnVariable(launch, 0)) {
    first = &Initializer(*variable)->child(0);
  } else if (grid.type.find("dim3") == std::string::npos) {
    first = &grid;
  } else if (grid.Is(NodeKind::kCall) && grid.name == "dim3" && !grid.children.empty()) {
    first = &grid.child(0);
  }
  if (first != nullptr) {
    edits.Replace(*first, fmt::format("{} * {}", Parenthesized(model.Text(*first)), factor));
    return;
  }
  const std::string name(model.Text(grid));
  edits.Replace(grid, fmt::format("dim3({0}.x * {1}, {0}.y, {0}.z)", name, factor));
}

void ReplaceShape(const SourceModel& model, const Node& launch, std::size_t which,
                  std::string_view components, Edits& edits) {
  static_cast<void>(model);
  if (const Node* variable = OwnVariable(launch, which)) {
    const Node& call = *Initializer(*variable);
    edits.Replace(call.child(0).begin, call.children.back()->end, std::string(components));
    return;
  }
  edits.Replace(launch.child(which), fmt::format("dim3({})", components));
}

std::string ArgumentFor(const SourceModel& model, const Node& kernel, const Node& launch,
                        const Node& parameter) {
  const std::vector<const Node*> parameters = Parameters(kernel);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i] == &parameter && kConfigurationParts + i < launch.children.size()) {
      return std::string(model.Text(launch.child(kConfigurationParts + i)));
    }
  }
  return {};
}

std::string HostExpression(const SourceModel& model, const Node& kernel, const Node& launch,
                           const Node& expression) {
  Edits edits;
  bool foreign = false;
  Walk(expression, [&](const Node& n) {
    foreign |= n.Is(NodeKind::kBuiltin) || n.Is(NodeKind::kCall) || n.in_macro;
    if (!n.Is(NodeKind::kReference) || n.decl == nullptr || !Contains(kernel, *n.decl)) {
      return true;
    }
    const std::string argument = ArgumentFor(model, kernel, launch, *n.decl);
    foreign |= argument.empty();
    edits.Replace(n, &n == &expression ? argument : Parenthesized(argument));
    return true;
  });
  return foreign ? std::string()
                 : edits.ApplyWithin(model.text(), expression.begin, expression.end);
}

std::uint32_t BeforeFunction(const SourceModel& model, const Node& function) {
  const Node* outermost = &function;
  while (outermost->parent != nullptr && outermost->parent->parent != nullptr) {
    outermost = outermost->parent;
  }
  std::uint32_t place = outermost->begin;
  const std::size_t first = model.TokenAt(place);
  std::uint32_t line = first < model.tokens().size() ? model.tokens()[first].line : 0;
  for (std::size_t i = first; i-- > 0;) {
    const Token& token = model.tokens()[i];
    const bool attached = token.kind == Token::Kind::kComment && token.line + 1 == line &&
                          (i == 0 || model.tokens()[i - 1].line != token.line);
    if (!attached) {
      break;
    }
    place = token.begin;
    line = token.line;
  }
  return place;
}

bool PassesPointerTwice(const SourceModel& model, const Node& launch) {
  std::set<std::string> seen;
  for (std::size_t i = kConfigurationParts; i < launch.children.size(); ++i) {
    const Node& argument = launch.child(i);
    if (IsPointer(argument.type) && !seen.insert(model.Normalized(argument)).second) {
      return true;
    }
  }
  return false;
}

}  // namespace kernelpro::playbook
