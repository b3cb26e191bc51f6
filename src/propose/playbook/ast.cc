// SPDX-License-Identifier: Apache-2.0
#include "propose/playbook/ast.h"

namespace kernelpro::playbook {

void Walk(const Node& node, const std::function<bool(const Node&)>& visit) {
  if (!visit(node)) {
    return;
  }
  for (const auto& child : node.children) {
    Walk(*child, visit);
  }
}

std::vector<const Node*> FindAll(const Node& node, NodeKind kind) {
  std::vector<const Node*> found;
  Walk(node, [&](const Node& n) {
    if (n.kind == kind) {
      found.push_back(&n);
    }
    return true;
  });
  return found;
}

bool Contains(const Node& outer, const Node& inner) {
  for (const Node* n = &inner; n != nullptr; n = n->parent) {
    if (n == &outer) {
      return true;
    }
  }
  return false;
}

const Node* Body(const Node& function) {
  if (function.children.empty() || !function.children.back()->Is(NodeKind::kCompound)) {
    return nullptr;
  }
  return function.children.back().get();
}

std::vector<const Node*> Parameters(const Node& function) {
  std::vector<const Node*> parameters;
  for (const auto& child : function.children) {
    if (child->Is(NodeKind::kParameter)) {
      parameters.push_back(child.get());
    }
  }
  return parameters;
}

std::vector<const Node*> Statements(const Node& statement) {
  if (!statement.Is(NodeKind::kCompound)) {
    return {&statement};
  }
  std::vector<const Node*> statements;
  statements.reserve(statement.children.size());
  for (const auto& child : statement.children) {
    statements.push_back(child.get());
  }
  return statements;
}

const Node* EnclosingFunction(const Node& node) {
  const Node* n = &node;
  while (n != nullptr && !n->Is(NodeKind::kFunction)) {
    n = n->parent;
  }
  return n;
}

}  // namespace kernelpro::playbook
