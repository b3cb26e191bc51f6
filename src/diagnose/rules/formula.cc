// SPDX-License-Identifier: Apache-2.0
#include "diagnose/rules/formula.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include "diagnose/bounds.h"

namespace kernelpro::diagnose {
namespace {

constexpr std::array<double Shares::*, 10> kResources = {
    &Shares::dram, &Shares::l2,  &Shares::l1,   &Shares::lsu, &Shares::tensor,
    &Shares::fma,  &Shares::alu, &Shares::fp64, &Shares::xu,  &Shares::issue};

std::optional<double> Finite(double value) {
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<double> Formula::Evaluate(const FormulaScope& scope) const {
  return nodes_.empty() ? std::nullopt : Eval(root_, scope);
}

std::optional<double> Formula::Logic(const Node& node, const FormulaScope& scope) const {
  const std::optional<double> a = Eval(node.children[0], scope);
  if (node.op == Op::kElse) {
    return a ? a : Eval(node.children[1], scope);
  }
  if (node.op == Op::kChoose) {
    return a ? Eval(node.children[*a != 0 ? 1 : 2], scope) : std::nullopt;
  }
  const bool decides = node.op == Op::kOr;  // the value that one operand alone decides
  if (a && (*a != 0) == decides) {
    return decides ? 1 : 0;
  }
  const std::optional<double> b = Eval(node.children[1], scope);
  if (b && (*b != 0) == decides) {
    return decides ? 1 : 0;
  }
  return a && b ? std::optional<double>(decides ? 0 : 1) : std::nullopt;
}

std::optional<double> Formula::Extreme(const Node& node, const FormulaScope& scope) const {
  std::optional<double> result;
  for (const std::uint32_t child : node.children) {
    const std::optional<double> value = Eval(child, scope);
    if (value && (!result || (node.op == Op::kMin ? *value < *result : *value > *result))) {
      result = value;
    }
  }
  return result;
}

std::optional<double> Formula::CutOf(const Node& node, const FormulaScope& scope) const {
  Shares removed;
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    const std::optional<double> share = Eval(node.children[i], scope);
    if (!share) {
      return std::nullopt;
    }
    removed.*kResources.at(node.resources[i]) = std::clamp(*share, 0.0, 1.0);
  }
  return Cut(scope.use, removed);
}

std::optional<double> Formula::Eval(std::uint32_t index, const FormulaScope& scope) const {
  const Node& node = nodes_[index];
  switch (node.op) {
    case Op::kNumber:
      return node.number;
    case Op::kName:
      return scope.value(names_[node.name]);
    case Op::kHas:
      return scope.value(names_[node.name]).has_value() ? 1 : 0;
    case Op::kAnd:
    case Op::kOr:
    case Op::kElse:
    case Op::kChoose:
      return Logic(node, scope);
    case Op::kMin:
    case Op::kMax:
      return Extreme(node, scope);
    case Op::kCut:
      return CutOf(node, scope);
    case Op::kRewrite:
      return RewriteFloor(scope.use);
    default:
      break;
  }
  std::array<double, 3> v = {0, 0, 0};
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    const std::optional<double> value = Eval(node.children[i], scope);
    if (!value) {
      return std::nullopt;
    }
    v.at(i) = *value;
  }
  switch (node.op) {
    case Op::kNegate:
      return -v[0];
    case Op::kNot:
      return v[0] == 0 ? 1 : 0;
    case Op::kAdd:
      return Finite(v[0] + v[1]);
    case Op::kSubtract:
      return Finite(v[0] - v[1]);
    case Op::kMultiply:
      return Finite(v[0] * v[1]);
    case Op::kDivide:
      return v[1] != 0 ? Finite(v[0] / v[1]) : std::nullopt;
    case Op::kLess:
      return v[0] < v[1] ? 1 : 0;
    case Op::kLessEqual:
      return v[0] <= v[1] ? 1 : 0;
    case Op::kGreater:
      return v[0] > v[1] ? 1 : 0;
    case Op::kGreaterEqual:
      return v[0] >= v[1] ? 1 : 0;
    case Op::kEqual:
      return v[0] == v[1] ? 1 : 0;
    case Op::kNotEqual:
      return v[0] != v[1] ? 1 : 0;
    case Op::kAbs:
      return std::abs(v[0]);
    case Op::kSqrt:
      return Finite(std::sqrt(v[0]));
    case Op::kLog2:
      return Finite(std::log2(v[0]));
    case Op::kFloor:
      return std::floor(v[0]);
    case Op::kCeil:
      return std::ceil(v[0]);
    case Op::kClamp:
      return std::max(v[1], std::min(v[0], v[2]));
    case Op::kRamp:
      return v[2] != v[1] ? Finite(Ramp(v[0], v[1], v[2])) : std::nullopt;
    case Op::kStall:
      return StallGain(scope.use, v[0]);
    case Op::kOcc:
      return OccupancyGain(scope.use, v[0], v[1]);
    default:
      return std::nullopt;
  }
}

}  // namespace kernelpro::diagnose
