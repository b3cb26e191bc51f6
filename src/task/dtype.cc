// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "task/task.h"

namespace kernelpro {
namespace {

struct DTypeRow {
  DType dtype;
  std::string_view name;
  std::string_view cuda;
  std::uint32_t bytes;
  bool is_float;
};

constexpr std::array kTypes = {
    DTypeRow{DType::kF64, "f64", "double", 8, true},
    DTypeRow{DType::kF32, "f32", "float", 4, true},
    DTypeRow{DType::kF16, "f16", "__half", 2, true},
    DTypeRow{DType::kBF16, "bf16", "__nv_bfloat16", 2, true},
    DTypeRow{DType::kI64, "i64", "int64_t", 8, false},
    DTypeRow{DType::kI32, "i32", "int32_t", 4, false},
    DTypeRow{DType::kI8, "i8", "int8_t", 1, false},
    DTypeRow{DType::kU32, "u32", "uint32_t", 4, false},
    DTypeRow{DType::kU8, "u8", "uint8_t", 1, false},
};

/// In the order of Distribution.
constexpr std::array<std::string_view, 6> kDistributions = {"fill", "zero_mean", "heavy_tails",
                                                            "ties", "denormals", "outlier"};

const DTypeRow& Row(DType dtype) {
  return kTypes.at(static_cast<std::size_t>(dtype));
}

}  // namespace

std::uint32_t SizeOf(DType dtype) {
  return Row(dtype).bytes;
}

std::string_view Name(DType dtype) {
  return Row(dtype).name;
}

std::string_view CudaType(DType dtype) {
  return Row(dtype).cuda;
}

bool IsFloat(DType dtype) {
  return Row(dtype).is_float;
}

std::optional<DType> ParseDType(std::string_view name) {
  for (const DTypeRow& row : kTypes) {
    if (row.name == name) {
      return row.dtype;
    }
  }
  return std::nullopt;
}

std::string_view Name(Distribution distribution) {
  return kDistributions.at(static_cast<std::size_t>(distribution));
}

std::optional<Distribution> ParseDistribution(std::string_view name) {
  const auto* const found = std::ranges::find(kDistributions, name);
  return found == kDistributions.end()
             ? std::nullopt
             : std::optional(static_cast<Distribution>(found - kDistributions.begin()));
}

}  // namespace kernelpro
