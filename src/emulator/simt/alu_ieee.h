// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "emulator/simt/alu_lanes.h"

/// What PTX adds to IEEE arithmetic: flushing, saturation, canonical NaNs.
namespace kernelpro::KP_ALU_ISA {

inline constexpr u32 kNanF32 = 0x7fffffffU;
inline constexpr u64 kNanF64 = 0xfff8000000000000U;

constexpr bool IsNan(float x) {
  return x != x;
}

constexpr bool IsNan(double x) {
  return x != x;
}

/// The one NaN of f32 arithmetic.
constexpr float Canonical(float x) {
  return IsNan(x) ? BitCast<float>(kNanF32) : x;
}

constexpr double Quiet(double x) {
  return BitCast<double>(BitCast<u64>(x) | 0x0008000000000000U);
}

/// f64 arithmetic keeps NaN payloads: of several NaN operands the last one named here wins, and an
/// invalid operation gives the default NaN.
template <class... Operands>
constexpr double WithNan(double result, Operands... operands) {
  double r = IsNan(result) ? BitCast<double>(kNanF64) : result;
  ((r = IsNan(operands) ? Quiet(operands) : r), ...);
  return r;
}

/// .ftz: a subnormal becomes a zero of its sign.
template <bool kFlush>
constexpr float Flush(float x) {
  if constexpr (kFlush) {
    const u32 bits = BitCast<u32>(x);
    return BitCast<float>((bits & 0x7f800000U) == 0 ? bits & 0x80000000U : bits);
  } else {
    return x;
  }
}

/// .sat: [0, 1], a NaN and -0 become +0.
template <class T>
constexpr T Saturate01(T x) {
  const T low = x > T{0} ? x : T{0};
  return low < T{1} ? low : T{1};
}

/// .ftz of a result that rounding may have lifted to the smallest normal number: the hardware
/// decides on the value rounded with unbounded exponent. `scaled` is the same operation with its
/// result 2^64 times larger; where that overflows the result is far from subnormal.
template <bool kFlush>
constexpr float FlushTiny(float result, float scaled) {
  if constexpr (kFlush) {
    const bool tiny = scaled < 0x1p-62F && scaled > -0x1p-62F;
    const u32 bits = BitCast<u32>(result);
    return BitCast<float>(tiny ? bits & 0x80000000U : bits);
  } else {
    return result;
  }
}

inline constexpr float kTinyScale = 0x1p64F;

template <bool kFlush, bool kSaturate>
constexpr float Finish(float x) {
  const float flushed = Flush<kFlush>(x);
  if constexpr (kSaturate) {
    return Saturate01(flushed);
  } else {
    return Canonical(flushed);
  }
}

/// A bit pattern for sign-magnitude tricks, of the float's width.
template <class T>
using BitsOfFloat = std::conditional_t<sizeof(T) == 8, u64, u32>;

template <class T>
inline constexpr BitsOfFloat<T> kSignBit = BitsOfFloat<T>{1} << (8 * sizeof(T) - 1);

template <class T>
constexpr T AbsBits(T x) {
  return BitCast<T>(static_cast<BitsOfFloat<T>>(BitCast<BitsOfFloat<T>>(x) & ~kSignBit<T>));
}

template <class T>
constexpr T NegateBits(T x) {
  return BitCast<T>(static_cast<BitsOfFloat<T>>(BitCast<BitsOfFloat<T>>(x) ^ kSignBit<T>));
}

/// Sign of `sign`, magnitude of `magnitude`.
template <class T>
constexpr T CopySignBits(T magnitude, T sign) {
  using U = BitsOfFloat<T>;
  return BitCast<T>(
      static_cast<U>((BitCast<U>(magnitude) & ~kSignBit<T>) | (BitCast<U>(sign) & kSignBit<T>)));
}

/// min and max: -0 < +0; one NaN yields the other operand, with kNan a NaN.
template <bool kMax, bool kNan, class T>
constexpr T MinMax(T a, T b) {
  using U = BitsOfFloat<T>;
  const U zeros = kMax ? BitCast<U>(a) & BitCast<U>(b) : BitCast<U>(a) | BitCast<U>(b);
  const T first = kMax ? b : a;
  const T second = kMax ? a : b;
  T result = first < second ? a : b;
  result = a == b ? BitCast<T>(zeros) : result;
  if constexpr (kNan) {
    result = IsNan(a) ? a : result;
    result = IsNan(b) ? b : result;
  } else {
    result = IsNan(a) ? b : result;
    result = IsNan(b) ? a : result;
  }
  if constexpr (sizeof(T) == 8) {
    return IsNan(result) ? Quiet(b) : result;
  } else {
    return Canonical(result);
  }
}

/// product + addend rounded to odd: one more rounding, to a format at least two bits narrower,
/// gives the correctly rounded sum. Valid in round-to-nearest mode only.
template <class W>
constexpr W RoundToOddSum(W product, W addend) {
  using U = BitsOfFloat<W>;
  const W sum = product + addend;
  const W part = sum - product;
  const W error = (product - (sum - part)) + (addend - part);
  const bool inexact = error > 0 || error < 0;
  const U bits = BitCast<U>(sum);
  const U step = (error > 0) == (sum > 0) ? U{1} : ~U{0};
  return BitCast<W>(static_cast<U>(inexact && (bits & 1U) == 0 ? bits + step : bits));
}

/// a * b + c rounded once. The baseline has no fused instruction, but a product of floats is exact
/// in double. Valid in round-to-nearest mode only.
constexpr float FusedMultiplyAdd(float a, float b, float c) {
#ifdef __FMA__
  return __builtin_fmaf(a, b, c);
#else
  return static_cast<float>(
      RoundToOddSum(static_cast<double>(a) * static_cast<double>(b), static_cast<double>(c)));
#endif
}

constexpr double FusedMultiplyAdd(double a, double b, double c) {
  return __builtin_fma(a, b, c);
}

}  // namespace kernelpro::KP_ALU_ISA
