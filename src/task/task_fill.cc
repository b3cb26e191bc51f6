// SPDX-License-Identifier: Apache-2.0
#include "task/task_fill.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "task/toml_table.h"

namespace kernelpro {
namespace {

/// In the order of Fill::Kind.
constexpr std::array<std::string_view, 5> kFills = {"normal", "uniform", "integers", "zeros",
                                                    "ones"};

struct Range {
  double low = 0, high = 0;
};

/// Whole numbers that a type holds and that a double holds exactly.
Range WholeRange(DType dtype) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  switch (dtype) {
    case DType::kI8:
      return {.low = -128, .high = 127};
    case DType::kU8:
      return {.low = 0, .high = 255};
    case DType::kI32:
      return {.low = -2147483648.0, .high = 2147483647.0};
    case DType::kU32:
      return {.low = 0, .high = 4294967295.0};
    case DType::kF16:
      return {.low = -2048, .high = 2048};
    case DType::kBF16:
      return {.low = -256, .high = 256};
    case DType::kF32:
      return {.low = -16777216.0, .high = 16777216.0};
    case DType::kI64:
    case DType::kF64:
      break;
  }
  return {.low = -kExact, .high = kExact};
}

}  // namespace

bool IsWholeOf(DType dtype, double value) {
  const Range range = WholeRange(dtype);
  return std::floor(value) == value && value >= range.low && value <= range.high;
}

std::string AllowedWholeNumbers(DType dtype) {
  const Range range = WholeRange(dtype);
  return fmt::format("allowed for {}: whole numbers from {:.0f} to {:.0f}", Name(dtype), range.low,
                     range.high);
}

namespace {

Result<Fill> CheckedFill(const Fill& fill, const TomlTable& table, const TensorSpec& tensor) {
  const bool real = fill.kind == Fill::Kind::kNormal || fill.kind == Fill::Kind::kUniform;
  if (real && !IsFloat(tensor.dtype)) {
    return table.At(table.line(),
                    fmt::format("a tensor of {} holds whole numbers only", Name(tensor.dtype)),
                    "allowed: fill kinds integers, zeros, ones");
  }
  if (fill.kind == Fill::Kind::kIntegers &&
      !(IsWholeOf(tensor.dtype, fill.a) && IsWholeOf(tensor.dtype, fill.b))) {
    return table.At(table.line(), "low and high must be whole numbers that the type holds",
                    AllowedWholeNumbers(tensor.dtype));
  }
  return fill;
}

}  // namespace

Result<Fill> ReadFill(const TomlNode& node, const TensorSpec& tensor, const TomlSource& source) {
  KP_ASSIGN_OR_RETURN(const TomlTable any,
                      TomlTable::Open(node, source, fmt::format("the fill of {}", tensor.name),
                                      {"kind", "mean", "deviation", "low", "high"}));
  KP_ASSIGN_OR_RETURN(const std::string kind, any.Word("kind", kFills));
  const std::string where = fmt::format("a fill of kind \"{}\"", kind);
  Fill fill;
  fill.kind = static_cast<Fill::Kind>(std::ranges::find(kFills, kind) - kFills.begin());
  if (fill.kind == Fill::Kind::kNormal) {
    KP_ASSIGN_OR_RETURN(const TomlTable table,
                        TomlTable::Open(node, source, where, {"kind", "mean", "deviation"}));
    KP_ASSIGN_OR_RETURN(fill.a, table.Number("mean", 0));
    KP_ASSIGN_OR_RETURN(fill.b, table.Number("deviation", 1));
    if (fill.b < 0) {
      return any.At(node.line, "the deviation is negative");
    }
  } else if (fill.kind == Fill::Kind::kUniform || fill.kind == Fill::Kind::kIntegers) {
    KP_ASSIGN_OR_RETURN(const TomlTable table,
                        TomlTable::Open(node, source, where, {"kind", "low", "high"}));
    KP_ASSIGN_OR_RETURN(fill.a, table.Number("low"));
    KP_ASSIGN_OR_RETURN(fill.b, table.Number("high"));
    if (fill.a > fill.b) {
      return any.At(node.line, "low is above high");
    }
  } else {
    KP_ASSIGN_OR_RETURN(const TomlTable table, TomlTable::Open(node, source, where, {"kind"}));
    static_cast<void>(table);
  }
  return CheckedFill(fill, any, tensor);
}

Result<std::vector<Distribution>> ReadDistributions(const TomlNode& node,
                                                    const TomlSource& source) {
  KP_ASSIGN_OR_RETURN(const TomlTable table,
                      TomlTable::Open(node, source, "[inputs]", {"distributions"}));
  KP_ASSIGN_OR_RETURN(const auto names, table.TextList("distributions"));
  std::vector<Distribution> chosen = {Distribution::kFill};
  for (const TomlNode* name : names) {
    const std::optional<Distribution> one = ParseDistribution(name->text);
    if (!one) {
      return table.At(
          name->line, fmt::format("unknown distribution \"{}\"", Printable(name->text, 64)),
          "allowed: fill (always used), zero_mean, heavy_tails, ties, denormals, outlier");
    }
    if (std::ranges::find(chosen, *one) == chosen.end()) {
      chosen.push_back(*one);
    }
  }
  return chosen;
}

}  // namespace kernelpro
