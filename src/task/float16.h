// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace kernelpro {

/// IEEE binary16 bits of the nearest value (ties to even), straight from double: rounding through
/// float first would round twice. Overflow gives infinity, NaN a quiet NaN.
[[nodiscard]] inline std::uint16_t HalfBits(double value) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000U : 0U);
  const double magnitude = std::fabs(value);
  if (std::isnan(value)) {
    return static_cast<std::uint16_t>(sign | 0x7e00U);
  }
  if (magnitude >= 65520.0) {  // half of the last step above the largest half, 65504
    return static_cast<std::uint16_t>(sign | 0x7c00U);
  }
  // Below 2^-14 the step is constant: 2^-24. nearbyint rounds ties to even in the default mode.
  if (magnitude < 0x1p-14) {
    return static_cast<std::uint16_t>(
        sign | static_cast<std::uint32_t>(std::nearbyint(magnitude * 0x1p24)));
  }
  int exponent = 0;
  const double fraction = std::frexp(magnitude, &exponent);  // in [0.5, 1)
  const auto steps = static_cast<std::uint32_t>(std::nearbyint(fraction * 2048.0));
  // A fraction that rounds up to 2048 carries into the exponent by plain addition.
  const auto bits = static_cast<std::uint32_t>(exponent + 13) * 1024U + steps;
  return static_cast<std::uint16_t>(sign | bits);
}

/// bfloat16 bits of the nearest value (ties to even), straight from double.
[[nodiscard]] inline std::uint16_t BFloat16Bits(double value) {
  if (std::isnan(value)) {
    return static_cast<std::uint16_t>(std::signbit(value) ? 0xffc0U : 0x7fc0U);
  }
  // Round to odd into float, then to nearest into 16 bits: exact, as 24 >= 8 + 2 bits.
  auto single = static_cast<float>(value);
  auto bits = std::bit_cast<std::uint32_t>(single);
  if (std::isfinite(value) && static_cast<double>(single) != value) {
    if (std::fabs(static_cast<double>(single)) > std::fabs(value)) {
      --bits;
    }
    bits |= 1U;
  }
  if ((bits & 0x7fffffffU) == 0x7f800000U) {
    return static_cast<std::uint16_t>(bits >> 16U);
  }
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U);
}

}  // namespace kernelpro
