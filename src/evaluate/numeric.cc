// SPDX-License-Identifier: Apache-2.0
#include "evaluate/numeric.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "task/float16.h"

namespace kernelpro {
namespace {

double Decode(std::uint16_t bits, int mantissa, int exponent) {
  const double sign = ((bits >> (mantissa + exponent)) & 1U) != 0 ? -1.0 : 1.0;
  const std::uint32_t e = (bits >> mantissa) & ((1U << exponent) - 1U);
  const std::uint32_t m = bits & ((1U << mantissa) - 1U);
  const int bias = (1 << (exponent - 1)) - 1;
  if (e == (1U << exponent) - 1U) {
    return m != 0 ? std::numeric_limits<double>::quiet_NaN()
                  : sign * std::numeric_limits<double>::infinity();
  }
  const double fraction = e == 0 ? m : m + (1U << mantissa);
  return sign * std::ldexp(fraction, (e == 0 ? 1 : static_cast<int>(e)) - bias - mantissa);
}

template <class T>
void Put(T value, std::byte* out) {
  std::memcpy(out, &value, sizeof value);
}

template <class T>
T Get(const std::byte* in) {
  T value;
  std::memcpy(&value, in, sizeof value);
  return value;
}

template <class T>
T Clamp(double value) {
  if (std::isnan(value)) {
    return 0;
  }
  const double rounded = std::nearbyint(value);
  if (rounded <= static_cast<double>(std::numeric_limits<T>::min())) {
    return std::numeric_limits<T>::min();
  }
  if (rounded >= static_cast<double>(std::numeric_limits<T>::max())) {
    return std::numeric_limits<T>::max();
  }
  return static_cast<T>(rounded);
}

}  // namespace

double FromHalf(std::uint16_t bits) {
  return Decode(bits, 10, 5);
}

double FromBFloat16(std::uint16_t bits) {
  return Decode(bits, 7, 8);
}

void StoreElement(DType dtype, double value, std::byte* out) {
  switch (dtype) {
    case DType::kF64:
      return Put(value, out);
    case DType::kF32:
      return Put(static_cast<float>(value), out);
    case DType::kF16:
      return Put(HalfBits(value), out);
    case DType::kBF16:
      return Put(BFloat16Bits(value), out);
    case DType::kI64:
      return Put(Clamp<std::int64_t>(value), out);
    case DType::kI32:
      return Put(Clamp<std::int32_t>(value), out);
    case DType::kI8:
      return Put(Clamp<std::int8_t>(value), out);
    case DType::kU32:
      return Put(Clamp<std::uint32_t>(value), out);
    case DType::kU8:
      return Put(Clamp<std::uint8_t>(value), out);
  }
}

double LoadElement(DType dtype, const std::byte* in) {
  switch (dtype) {
    case DType::kF64:
      return Get<double>(in);
    case DType::kF32:
      return Get<float>(in);
    case DType::kF16:
      return FromHalf(Get<std::uint16_t>(in));
    case DType::kBF16:
      return FromBFloat16(Get<std::uint16_t>(in));
    case DType::kI64:
      return static_cast<double>(Get<std::int64_t>(in));
    case DType::kI32:
      return Get<std::int32_t>(in);
    case DType::kI8:
      return Get<std::int8_t>(in);
    case DType::kU32:
      return Get<std::uint32_t>(in);
    case DType::kU8:
      return Get<std::uint8_t>(in);
  }
  return 0;
}

std::vector<double> ToDoubles(DType dtype, std::span<const std::byte> bytes) {
  const std::size_t size = SizeOf(dtype);
  std::vector<double> values(bytes.size() / size);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = LoadElement(dtype, bytes.data() + i * size);
  }
  return values;
}

}  // namespace kernelpro
