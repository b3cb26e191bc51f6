// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "emulator/simt/alu_ieee.h"

/// The 16-bit and 8-bit floats: exact widening to float and single-rounding narrowing.
namespace kernelpro::KP_ALU_ISA {

enum class Round : u8 { kNearest, kZero, kDown, kUp, kNearestAway };

/// A narrow binary format. kFinite: no infinity, one NaN code (e4m3).
template <int kExponentBits, int kMantissaBits, bool kFinite>
struct Format {
  static constexpr u32 kMantissa = kMantissaBits;
  static constexpr u32 kSign = 1U << (kExponentBits + kMantissaBits);
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr u32 kNan = kSign - 1;
  /// First magnitude that is not a finite number.
  static constexpr u32 kInfinity = kFinite ? kNan : kNan - ((1U << kMantissaBits) - 1);
  static constexpr u32 kMax = kInfinity - 1;
  static constexpr bool kHasInfinity = !kFinite;
};

using Half = Format<5, 10, false>;
using BFloat = Format<8, 7, false>;
using TFloat32 = Format<8, 10, false>;
using E4M3 = Format<4, 3, true>;
using E5M2 = Format<5, 2, false>;

template <Round kRound>
constexpr bool RoundsAway(bool negative, bool odd, bool any, bool half, bool above_half) {
  switch (kRound) {
    case Round::kNearest:
      return above_half || (half && odd);
    case Round::kNearestAway:
      return above_half || half;
    case Round::kDown:
      return any && negative;
    case Round::kUp:
      return any && !negative;
    case Round::kZero:
      return false;
  }
  return false;
}

template <Round kRound>
constexpr bool OverflowsToInfinity(bool negative) {
  switch (kRound) {
    case Round::kZero:
      return false;
    case Round::kDown:
      return negative;
    case Round::kUp:
      return !negative;
    default:
      return true;
  }
}

/// The bits of x (float or double) in format F, rounded once.
template <class F, Round kRound, bool kSaturateFinite = false, class W = float>
constexpr u32 Narrow(W x) {
  using U = BitsOfFloat<W>;
  constexpr u32 kWideMantissa = sizeof(W) == 8 ? 52 : 23;
  constexpr u32 kWideBias = sizeof(W) == 8 ? 1023 : 127;
  constexpr u32 kWideMaxExponent = 2 * kWideBias + 1;
  constexpr u32 kLeast = kWideBias + 1 - static_cast<u32>(F::kBias);  // exponent field of minimum
  const U bits = BitCast<U>(x);
  const bool negative = (bits & kSignBit<W>) != 0;
  const U magnitude = bits & ~kSignBit<W>;
  const auto field = static_cast<u32>(magnitude >> kWideMantissa);
  const U fraction = magnitude & ((U{1} << kWideMantissa) - 1);
  const U significand = fraction | (field != 0 ? U{1} << kWideMantissa : U{0});
  const u32 exponent = field != 0 ? field : 1U;
  const u32 below = exponent < kLeast ? kLeast - exponent : 0U;
  const u32 wanted = kWideMantissa - F::kMantissa + below;
  const u32 shift = wanted < kWideMantissa + 2 ? wanted : kWideMantissa + 2;
  const U kept = significand >> shift;
  const U rest = significand & ((U{1} << shift) - 1);
  const U half = U{1} << (shift - 1);
  const bool away =
      RoundsAway<kRound>(negative, (kept & 1U) != 0, rest != 0, rest == half, rest > half);
  const u32 base = exponent > kLeast ? (exponent - kLeast) << F::kMantissa : 0U;
  u32 result = base + static_cast<u32>(kept) + (away ? 1U : 0U);
  const u32 overflow = F::kHasInfinity && !kSaturateFinite && OverflowsToInfinity<kRound>(negative)
                           ? F::kInfinity
                           : F::kMax;
  result = result >= F::kInfinity ? overflow : result;
  if constexpr (F::kHasInfinity && !kSaturateFinite) {
    result = field == kWideMaxExponent ? F::kInfinity : result;
  }
  result |= negative ? F::kSign : 0U;
  return field == kWideMaxExponent && fraction != 0 ? F::kNan : result;
}

/// Exact; NaN payloads and signs are kept.
constexpr float Widen(F16 h) {
  const u32 magnitude = u32{h.bits} & 0x7fffU;
  const float scaled = BitCast<float>(magnitude << 13U) * 0x1p112F;
  u32 bits = BitCast<u32>(scaled);
  bits |= magnitude >= 0x7c00U ? 0x7f800000U : 0U;
  return BitCast<float>(bits | ((u32{h.bits} & 0x8000U) << 16U));
}

constexpr float Widen(BF16 h) {
  return BitCast<float>(u32{h.bits} << 16U);
}

template <class H>
struct FormatOf;

template <>
struct FormatOf<F16> {
  using type = Half;
};

template <>
struct FormatOf<BF16> {
  using type = BFloat;
};

/// The commonest narrowings, to nearest from float, without the variable shifts of Narrow: these
/// vectorise on every instruction set.
constexpr F16 NearestF16(float x) {
  const u32 bits = BitCast<u32>(x);
  const u32 magnitude = bits & 0x7fffffffU;
  // Normal results: rebias the exponent and round half to even; a carry may reach infinity.
  const u32 normal = (magnitude + 0xc8000fffU + ((magnitude >> 13U) & 1U)) >> 13U;
  // Subnormal results: adding 0.5 puts their last bit at the end of a float, which then rounds.
  const u32 subnormal = BitCast<u32>(BitCast<float>(magnitude) + 0.5F) - 0x3f000000U;
  u32 result = magnitude < 0x38800000U ? subnormal : normal;
  result = magnitude >= 0x47800000U ? 0x7c00U : result;
  result |= (bits >> 16U) & 0x8000U;
  return F16{static_cast<u16>(magnitude > 0x7f800000U ? 0x7fffU : result)};
}

constexpr BF16 NearestBF16(float x) {
  const u32 bits = BitCast<u32>(x);
  const u32 rounded = (bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U;
  return BF16{static_cast<u16>(IsNan(x) ? 0x7fffU : rounded)};
}

/// x as a float rounded to odd, so that narrowing it further rounds once.
constexpr float OddFloat(double x) {
  const auto near = static_cast<float>(x);
  const u32 bits = BitCast<u32>(near);
  const double back = static_cast<double>(near);
  const bool inexact = back < x || back > x;
  const u32 step = AbsBits(back) < AbsBits(x) ? 1U : ~0U;
  return BitCast<float>(inexact && (bits & 1U) == 0 ? bits + step : bits);
}

template <class H, Round kRound = Round::kNearest, class W = float>
constexpr H NarrowTo(W x) {
  if constexpr (kRound != Round::kNearest) {
    return H{static_cast<u16>(Narrow<typename FormatOf<H>::type, kRound, false, W>(x))};
  } else if constexpr (std::is_same_v<W, double>) {
    return NarrowTo<H>(OddFloat(x));
  } else if constexpr (std::is_same_v<H, F16>) {
    return NearestF16(x);
  } else {
    return NearestBF16(x);
  }
}

/// cvt from f64 keeps the top of a NaN's payload; arithmetic and cvt from f32 do not.
template <class H, Round kRound>
constexpr H NarrowKeepingNan(double x) {
  using F = typename FormatOf<H>::type;
  const u64 bits = BitCast<u64>(x);
  const auto payload = static_cast<u32>(bits >> (52U - F::kMantissa)) & ((1U << F::kMantissa) - 1);
  const u32 sign = static_cast<u32>(bits >> 48U) & F::kSign;
  const u32 nan = sign | F::kInfinity | (1U << (F::kMantissa - 1)) | payload;
  return IsNan(x) ? H{static_cast<u16>(nan)} : NarrowTo<H, kRound>(x);
}

template <bool kFlush>
constexpr F16 Flush(F16 h) {
  return kFlush && (h.bits & 0x7c00U) == 0 ? F16{static_cast<u16>(h.bits & 0x8000U)} : h;
}

template <bool kFlush>
constexpr BF16 Flush(BF16 h) {
  return kFlush && (h.bits & 0x7f80U) == 0 ? BF16{static_cast<u16>(h.bits & 0x8000U)} : h;
}

}  // namespace kernelpro::KP_ALU_ISA
