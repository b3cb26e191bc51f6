// SPDX-License-Identifier: Apache-2.0
#include "emulator/simt/alu_families.h"
#include "emulator/simt/alu_half.h"
#include "emulator/simt/alu_ieee.h"

namespace kernelpro::KP_ALU_ISA {
namespace {

using ptx::Type;
using simt::kFtz;
using simt::kIntegerRounding;
using simt::kRelu;
using simt::kRn;
using simt::kSat;
using simt::kSatfinite;

/// .relu: negative results become +0, a NaN stays.
template <class F, bool kClampNegative>
constexpr u32 Relu(u32 bits) {
  const bool nan = (bits & ~F::kSign) == F::kNan;
  return kClampNegative && (bits & F::kSign) != 0 && !nan ? 0U : bits;
}

template <class F, Round kRound, bool kFinite, bool kClampNegative, class W>
constexpr u32 NarrowRelu(W x) {
  if constexpr (kRound == Round::kNearest && !kFinite && std::is_same_v<F, Half>) {
    return Relu<F, kClampNegative>(NearestF16(x).bits);
  } else if constexpr (kRound == Round::kNearest && !kFinite && std::is_same_v<F, BFloat>) {
    return Relu<F, kClampNegative>(NearestBF16(x).bits);
  } else {
    return Relu<F, kClampNegative>(Narrow<F, kRound, kFinite, W>(x));
  }
}

/// Narrow results by shape: one 16-bit float, a pair from two sources (a is the upper half), f32
/// bits of a tf32.
template <class F, Round kRound, bool kFinite, bool kClampNegative, class S>
AluDecode NarrowOne() {
  return kLanewise<[](S a) -> F16 {
    return F16{static_cast<u16>(NarrowRelu<F, kRound, kFinite, kClampNegative>(a))};
  }>;
}

template <class F, Round kRound, bool kFinite, bool kClampNegative>
AluDecode NarrowPair() {
  constexpr u32 kWidth = F::kSign > 0xffU ? 16 : 8;
  using R = std::conditional_t<kWidth == 16, u32, u16>;
  return kLanewise<[](float a, float b) -> R {
    return static_cast<R>((NarrowRelu<F, kRound, kFinite, kClampNegative>(a) << kWidth) |
                          NarrowRelu<F, kRound, kFinite, kClampNegative>(b));
  }>;
}

/// tf32 is kept in f32 bits. .rna passes NaNs through its integer rounding: they are cut off, and
/// .satfinite takes one unit from everything beyond the largest finite value.
template <Round kRound, bool kFinite, bool kClampNegative>
constexpr u32 Tf32(float a) {
  const u32 bits = NarrowRelu<TFloat32, kRound, kFinite, kClampNegative>(a) << 13U;
  if constexpr (kRound == Round::kNearestAway) {
    const u32 cut = BitCast<u32>(a) & 0xffffe000U;
    return IsNan(a) ? cut - (kFinite ? 0x2000U : 0U) : bits;
  } else {
    return bits;
  }
}

template <Round kRound, bool kFinite, bool kClampNegative>
AluDecode NarrowTf32() {
  return kLanewise<[](float a) -> u32 { return Tf32<kRound, kFinite, kClampNegative>(a); }>;
}

template <Round kRound, bool kFinite, bool kClampNegative>
AluDecode SelectNarrow(const AluSpec& spec) {
  switch (spec.type[0]) {
    case Type::kF16:
      return NarrowOne<Half, kRound, kFinite, kClampNegative, float>();
    case Type::kBF16:
      return NarrowOne<BFloat, kRound, kFinite, kClampNegative, float>();
    case Type::kF16x2:
      return NarrowPair<Half, kRound, kFinite, kClampNegative>();
    case Type::kBF16x2:
      return NarrowPair<BFloat, kRound, kFinite, kClampNegative>();
    case Type::kTF32:
      return NarrowTf32<kRound, kFinite, kClampNegative>();
    default:
      return {};
  }
}

template <Round kRound>
AluDecode SelectNarrowModifiers(const AluSpec& spec) {
  switch (spec.flags & (kSatfinite | kRelu)) {
    case 0:
      return SelectNarrow<kRound, false, false>(spec);
    case kSatfinite:
      return SelectNarrow<kRound, true, false>(spec);
    case kRelu:
      return SelectNarrow<kRound, false, true>(spec);
    default:
      return SelectNarrow<kRound, true, true>(spec);
  }
}

template <class F>
AluDecode SelectFp8(bool clamp_negative) {
  return clamp_negative ? NarrowPair<F, Round::kNearest, true, true>()
                        : NarrowPair<F, Round::kNearest, true, false>();
}

template <class F, bool kClampNegative>
AluDecode Fp8FromHalves() {
  return kLanewise<[](u32 pair) -> u16 {
    const float low = Widen(F16{static_cast<u16>(pair)});
    const float high = Widen(F16{static_cast<u16>(pair >> 16U)});
    return static_cast<u16>((NarrowRelu<F, Round::kNearest, true, kClampNegative>(high) << 8U) |
                            NarrowRelu<F, Round::kNearest, true, kClampNegative>(low));
  }>;
}

/// cvt.rn.satfinite{.relu}.{e4m3x2,e5m2x2}.{f32,f16x2}
AluDecode SelectToFp8(const AluSpec& spec) {
  const bool relu = spec.Has(kRelu);
  if ((spec.flags & ~u64{kRelu}) != (kRn | kSatfinite)) {
    return {};
  }
  const bool e4m3 = spec.type[0] == Type::kE4M3x2;
  if (spec.type[1] == Type::kF32) {
    return e4m3 ? SelectFp8<E4M3>(relu) : SelectFp8<E5M2>(relu);
  }
  if (spec.type[1] != Type::kF16x2) {
    return {};
  }
  if (e4m3) {
    return relu ? Fp8FromHalves<E4M3, true>() : Fp8FromHalves<E4M3, false>();
  }
  return relu ? Fp8FromHalves<E5M2, true>() : Fp8FromHalves<E5M2, false>();
}

/// Exact: every fp8 value is an f16.
constexpr u32 HalfFromE4M3(u32 byte) {
  const u32 magnitude = byte & 0x7fU;
  const float value = BitCast<float>(magnitude << 20U) * 0x1p120F;
  const u32 half = Narrow<Half, Round::kNearest>(value);
  return magnitude == E4M3::kNan ? Half::kNan : half | ((byte & 0x80U) << 8U);
}

constexpr u32 HalfFromE5M2(u32 byte) {
  const u32 magnitude = byte & 0x7fU;
  return magnitude > E5M2::kInfinity ? Half::kNan : (magnitude | (byte & 0x80U)) << 8U;
}

template <bool kE4m3, bool kClampNegative>
constexpr u32 HalvesOf(u32 pair) {
  const u32 low = pair & 0xffU;
  const u32 high = pair >> 8U;
  const u32 first = kE4m3 ? HalfFromE4M3(low) : HalfFromE5M2(low);
  const u32 second = kE4m3 ? HalfFromE4M3(high) : HalfFromE5M2(high);
  return Relu<Half, kClampNegative>(first) | (Relu<Half, kClampNegative>(second) << 16U);
}

template <bool kE4m3, bool kClampNegative>
AluDecode HalvesFromFp8() {
  return kLanewise<[](u16 pair) -> u32 { return HalvesOf<kE4m3, kClampNegative>(pair); }>;
}

/// cvt.rn{.relu}.f16x2.{e4m3x2,e5m2x2}
AluDecode SelectFromFp8(const AluSpec& spec) {
  if (spec.type[0] != Type::kF16x2 || (spec.flags & ~u64{kRelu}) != kRn) {
    return {};
  }
  if (spec.type[1] == Type::kE4M3x2) {
    return spec.Has(kRelu) ? HalvesFromFp8<true, true>() : HalvesFromFp8<true, false>();
  }
  return spec.Has(kRelu) ? HalvesFromFp8<false, true>() : HalvesFromFp8<false, false>();
}

/// From f32 to the narrow formats, any float rounding; rna is tf32's alone.
AluDecode SelectFromF32(const AluSpec& spec) {
  if (!spec.Only(simt::kFloatRounding | simt::kRna | kSatfinite | kRelu)) {
    return {};
  }
  switch (spec.flags & (simt::kFloatRounding | simt::kRna)) {
    case simt::kRn:
      return SelectNarrowModifiers<Round::kNearest>(spec);
    case simt::kRz:
      return SelectNarrowModifiers<Round::kZero>(spec);
    case simt::kRm:
      return spec.type[0] == Type::kTF32 ? AluDecode{} : SelectNarrowModifiers<Round::kDown>(spec);
    case simt::kRp:
      return spec.type[0] == Type::kTF32 ? AluDecode{} : SelectNarrowModifiers<Round::kUp>(spec);
    case simt::kRna:
      return spec.type[0] == Type::kTF32 ? SelectNarrowModifiers<Round::kNearestAway>(spec)
                                         : AluDecode{};
    default:
      return {};
  }
}

/// f16 and bf16 from f64 or from each other.
template <class H, Round kRound, class S>
constexpr H HalfFrom(S a) {
  if constexpr (std::is_same_v<S, double>) {
    return NarrowKeepingNan<H, kRound>(a);
  } else {
    return NarrowTo<H, kRound>(Widen(a));
  }
}

template <class H, class S>
AluDecode SelectHalfFrom(const AluSpec& spec) {
  switch (spec.flags) {
    case simt::kRn:
      return kLanewise<[](S a) -> H { return HalfFrom<H, Round::kNearest>(a); }>;
    case simt::kRz:
      return kLanewise<[](S a) -> H { return HalfFrom<H, Round::kZero>(a); }>;
    case simt::kRm:
      return kLanewise<[](S a) -> H { return HalfFrom<H, Round::kDown>(a); }>;
    case simt::kRp:
      return kLanewise<[](S a) -> H { return HalfFrom<H, Round::kUp>(a); }>;
    default:
      return {};
  }
}

template <class T>
constexpr auto Widened(T x) {
  if constexpr (sizeof(T) == 2) {
    return Widen(x);
  } else {
    return x;
  }
}

/// The end of a conversion: the destination's format, flushing, saturating. Conversions to and from
/// f64 and from bf16 keep NaN payloads, as the host's do; others return the canonical NaN.
template <class D, bool kCanonical, bool kFlush, bool kSaturate, class W>
constexpr D Deliver(W x) {
  if constexpr (sizeof(D) == 2) {
    return NarrowTo<D>(kSaturate ? Saturate01(x) : x);
  } else {
    const D converted = static_cast<D>(x);
    const D result = kSaturate ? Saturate01(converted) : converted;
    if constexpr (std::is_same_v<D, float>) {
      return kCanonical ? Canonical(Flush<kFlush>(result)) : Flush<kFlush>(result);
    } else {
      return result;
    }
  }
}

template <class D, class S, bool kFlush, bool kSaturate>
AluDecode Resized() {
  constexpr bool kFlushInput = kFlush && std::is_same_v<S, float>;
  constexpr bool kCanonical = std::is_same_v<S, F16> || (kFlushInput && std::is_same_v<D, float>);
  return kLanewise<[](S a) -> D {
    if constexpr (kFlushInput) {
      return Deliver<D, kCanonical, kFlush, kSaturate>(Canonical(Flush<true>(a)));
    } else if constexpr (kFlush && std::is_same_v<S, double>) {
      const auto scaled = static_cast<float>(a * static_cast<double>(kTinyScale));
      const float flushed = FlushTiny<true>(static_cast<float>(a), scaled);
      return Deliver<D, kCanonical, false, kSaturate>(flushed);
    } else {
      return Deliver<D, kCanonical, kFlush, kSaturate>(Widened(a));
    }
  }>;
}

/// Exact conversions, and f32.f64 to nearest.
template <class D, class S>
AluDecode SelectResized(const AluSpec& spec, u64 required) {
  switch (spec.flags ^ required) {
    case 0:
      return Resized<D, S, false, false>();
    case kSat:
      return Resized<D, S, false, true>();
    case kFtz:
      return Resized<D, S, true, false>();
    case kFtz | kSat:
      return Resized<D, S, true, true>();
    default:
      return {};
  }
}

template <Round kMode, class W>
constexpr W Integral(W x) {
  if constexpr (std::is_same_v<W, double>) {
    return kMode == Round::kNearest ? __builtin_nearbyint(x)
           : kMode == Round::kZero  ? __builtin_trunc(x)
           : kMode == Round::kDown  ? __builtin_floor(x)
                                    : __builtin_ceil(x);
  } else {
    return kMode == Round::kNearest ? __builtin_nearbyintf(x)
           : kMode == Round::kZero  ? __builtin_truncf(x)
           : kMode == Round::kDown  ? __builtin_floorf(x)
                                    : __builtin_ceilf(x);
  }
}

template <class T, Round kMode, bool kFlush, bool kSaturate>
AluDecode RoundedToIntegral() {
  return kLanewise<[](T a) -> T {
    if constexpr (std::is_same_v<T, float>) {
      return Deliver<T, true, kFlush, kSaturate>(Integral<kMode>(Flush<kFlush>(a)));
    } else {
      return Deliver<T, true, false, kSaturate>(Integral<kMode>(Widened(a)));
    }
  }>;
}

template <class T, bool kFlush, bool kSaturate>
AluDecode SelectIntegral(u64 rounding) {
  switch (rounding) {
    case simt::kRni:
      return RoundedToIntegral<T, Round::kNearest, kFlush, kSaturate>();
    case simt::kRzi:
      return RoundedToIntegral<T, Round::kZero, kFlush, kSaturate>();
    case simt::kRmi:
      return RoundedToIntegral<T, Round::kDown, kFlush, kSaturate>();
    case simt::kRpi:
      return RoundedToIntegral<T, Round::kUp, kFlush, kSaturate>();
    default:
      return {};
  }
}

/// cvt between equal types: rounding to an integral value, flushing, saturating.
template <class T>
AluDecode SelectSame(const AluSpec& spec) {
  const bool is_f32 = std::is_same_v<T, float>;
  if (!spec.Only(kIntegerRounding | kSat | (is_f32 ? u64{kFtz} : u64{0}))) {
    return {};
  }
  if (!spec.Has(kIntegerRounding)) {
    return SelectResized<T, T>(spec, 0);
  }
  const u64 rounding = spec.flags & kIntegerRounding;
  if (spec.Has(kFtz)) {
    return spec.Has(kSat) ? SelectIntegral<T, true, true>(rounding)
                          : SelectIntegral<T, true, false>(rounding);
  }
  return spec.Has(kSat) ? SelectIntegral<T, false, true>(rounding)
                        : SelectIntegral<T, false, false>(rounding);
}

AluDecode SelectToF32(const AluSpec& spec) {
  switch (spec.type[1]) {
    case Type::kF16:
      return SelectResized<float, F16>(spec, 0);
    case Type::kBF16:
      return SelectResized<float, BF16>(spec, 0);
    case Type::kF32:
      return SelectSame<float>(spec);
    case Type::kF64:
      return SelectResized<float, double>(spec, kRn);
    default:
      return {};
  }
}

AluDecode SelectToF64(const AluSpec& spec) {
  switch (spec.type[1]) {
    case Type::kF16:
      return spec.Only(kSat) ? SelectResized<double, F16>(spec, 0) : AluDecode{};
    case Type::kBF16:
      return spec.Only(kSat) ? SelectResized<double, BF16>(spec, 0) : AluDecode{};
    case Type::kF32:
      return SelectResized<double, float>(spec, 0);
    case Type::kF64:
      return SelectSame<double>(spec);
    default:
      return {};
  }
}

template <class H, class Other>
AluDecode SelectToHalf(const AluSpec& spec, Type own, Type other) {
  if (spec.type[1] == own) {
    return SelectSame<H>(spec);
  }
  if (spec.type[1] == other) {
    return SelectHalfFrom<H, Other>(spec);
  }
  return spec.type[1] == Type::kF64 ? SelectHalfFrom<H, double>(spec) : AluDecode{};
}

}  // namespace

AluDecode SelectConvertFloat(const AluSpec& spec) {
  if (spec.op != AluOp::kCvt || spec.types != 2) {
    return {};
  }
  if (spec.type[1] == Type::kE4M3x2 || spec.type[1] == Type::kE5M2x2) {
    return SelectFromFp8(spec);
  }
  switch (spec.type[0]) {
    case Type::kE4M3x2:
    case Type::kE5M2x2:
      return SelectToFp8(spec);
    case Type::kF32:
      return SelectToF32(spec);
    case Type::kF64:
      return SelectToF64(spec);
    default:
      break;
  }
  if (spec.type[1] == Type::kF32) {
    return SelectFromF32(spec);
  }
  switch (spec.type[0]) {
    case Type::kF16:
      return SelectToHalf<F16, BF16>(spec, Type::kF16, Type::kBF16);
    case Type::kBF16:
      return SelectToHalf<BF16, F16>(spec, Type::kBF16, Type::kF16);
    default:
      return {};
  }
}

}  // namespace kernelpro::KP_ALU_ISA
