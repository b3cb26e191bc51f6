// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "task/task.h"

/// Elements of tensors as doubles. Every dtype but 64-bit integers beyond 2^53 converts exactly.
namespace kernelpro {

/// The other direction is task/float16.h.
[[nodiscard]] double FromHalf(std::uint16_t bits);
[[nodiscard]] double FromBFloat16(std::uint16_t bits);

/// Stores `value` as `dtype` at `out`: floats rounded to nearest, integers rounded and clamped.
void StoreElement(DType dtype, double value, std::byte* out);
[[nodiscard]] double LoadElement(DType dtype, const std::byte* in);

/// All elements of a buffer of `dtype`.
[[nodiscard]] std::vector<double> ToDoubles(DType dtype, std::span<const std::byte> bytes);

}  // namespace kernelpro
