// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <type_traits>

#include "emulator/simt/alu_families.h"
#include "emulator/simt/alu_half.h"
#include "emulator/simt/alu_ieee.h"

namespace kernelpro::KP_ALU_ISA {
namespace {

using ptx::Type;
using simt::kFtz;
using simt::kSat;

template <class D>
inline constexpr D kLargest = std::numeric_limits<D>::max();
template <class D>
inline constexpr D kSmallest = std::numeric_limits<D>::min();

template <class D, class S>
constexpr D SaturateTo(S a) {
  if constexpr (std::is_signed_v<S> && std::is_signed_v<D>) {
    if constexpr (sizeof(S) <= sizeof(D)) {
      return a;
    } else {
      const S low = a < S{kSmallest<D>} ? S{kSmallest<D>} : a;
      return static_cast<D>(low > S{kLargest<D>} ? S{kLargest<D>} : low);
    }
  } else {
    const bool negative = std::is_signed_v<S> && a < 0;
    const auto magnitude = static_cast<std::make_unsigned_t<S>>(a);
    const bool above = magnitude > static_cast<std::make_unsigned_t<D>>(kLargest<D>);
    const D clamped = above ? kLargest<D> : static_cast<D>(magnitude);
    return negative ? D{0} : clamped;
  }
}

template <Round kMode, class W>
constexpr W ToIntegral(W x) {
  if constexpr (sizeof(W) == 8) {
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

/// x is integral and representable in D.
template <class D, class W>
constexpr D CastInRange(W x) {
  if constexpr (sizeof(D) < 4) {
    return static_cast<D>(static_cast<s32>(x));
  } else if constexpr (std::is_same_v<D, u32>) {  // the host converts signed integers
    const bool high = x >= static_cast<W>(0x1p31);
    const W low = high ? x - static_cast<W>(0x1p31) : x;
    return static_cast<u32>(static_cast<s32>(low)) + (high ? 0x80000000U : 0U);
  } else {
    return static_cast<D>(x);
  }
}

/// PTX ISA, cvt: out of range clamps; a NaN gives 0, or the top bit alone when the source is f64 or
/// the destination has 64 bits.
template <class D, Round kMode, bool kFromF64, class W>
constexpr D ToInteger(W x) {
  constexpr bool kTopBit = kFromF64 || sizeof(D) == 8;
  constexpr D kOfNan =
      kTopBit ? static_cast<D>(std::make_unsigned_t<D>{1} << (8 * sizeof(D) - 1)) : D{0};
  constexpr W kLeast = static_cast<W>(kSmallest<D>);
  constexpr W kBeyond =
      static_cast<W>(2) * static_cast<W>(D{1} << (std::numeric_limits<D>::digits - 1));
  const W integral = ToIntegral<kMode>(x);
  const bool in_range = integral >= kLeast && integral < kBeyond;
  const D cast = CastInRange<D>(in_range ? integral : W{0});
  const D clamped = integral < kLeast ? kSmallest<D> : kLargest<D>;
  return in_range ? cast : IsNan(x) ? kOfNan : clamped;
}

template <class D, class S, Round kMode, bool kFlush>
constexpr D FloatToInteger(S a) {
  if constexpr (std::is_same_v<S, double>) {
    return ToInteger<D, kMode, true>(a);
  } else if constexpr (std::is_same_v<S, float>) {
    return ToInteger<D, kMode, false>(Flush<kFlush>(a));
  } else {
    return ToInteger<D, kMode, false>(Widen(a));
  }
}

template <class D, class S, bool kFlush>
AluDecode SelectToInteger(u64 rounding) {
  switch (rounding) {
    case simt::kRni:
      return kLanewise<[](S a) -> D { return FloatToInteger<D, S, Round::kNearest, kFlush>(a); }>;
    case simt::kRzi:
      return kLanewise<[](S a) -> D { return FloatToInteger<D, S, Round::kZero, kFlush>(a); }>;
    case simt::kRmi:
      return kLanewise<[](S a) -> D { return FloatToInteger<D, S, Round::kDown, kFlush>(a); }>;
    case simt::kRpi:
      return kLanewise<[](S a) -> D { return FloatToInteger<D, S, Round::kUp, kFlush>(a); }>;
    default:
      return {};
  }
}

/// Rounded to odd beyond 53 bits, so that narrowing rounds once.
template <class S>
constexpr double OddDouble(S a) {
  if constexpr (sizeof(S) < 8) {
    return static_cast<double>(a);
  } else {
    const bool negative = std::is_signed_v<S> && a < 0;
    u64 magnitude = negative ? u64{0} - static_cast<u64>(a) : static_cast<u64>(a);
    const u64 low = magnitude & 0xfffU;
    const bool wide = (magnitude >> 53U) != 0;
    magnitude = wide ? (magnitude & ~u64{0xfff}) | (low != 0 ? 0x1000U : 0U) : magnitude;
    const auto value = static_cast<double>(magnitude);
    return negative ? -value : value;
  }
}

template <class H, class S>
AluDecode SelectToHalf(u64 rounding) {
  switch (rounding) {
    case simt::kRn:
      return kLanewise<[](S a) -> H { return NarrowTo<H, Round::kNearest>(OddDouble(a)); }>;
    case simt::kRz:
      return kLanewise<[](S a) -> H { return NarrowTo<H, Round::kZero>(OddDouble(a)); }>;
    case simt::kRm:
      return kLanewise<[](S a) -> H { return NarrowTo<H, Round::kDown>(OddDouble(a)); }>;
    case simt::kRp:
      return kLanewise<[](S a) -> H { return NarrowTo<H, Round::kUp>(OddDouble(a)); }>;
    default:
      return {};
  }
}

/// To f32 and f64: nearest here; a directed rounding of a value that fits exactly is the same
/// thing, the others are in alu_rounded.cc.
template <class W, class S>
AluDecode SelectToWide(u64 flags) {
  const bool exact = sizeof(S) < sizeof(W) && sizeof(S) <= 4 && (sizeof(S) < 4 || sizeof(W) == 8);
  const bool one = (flags & (flags - 1)) == 0 && (flags & simt::kFloatRounding) != 0;
  if (flags != simt::kRn && !(exact && one)) {
    return {};
  }
  return kLanewise<[](S a) -> W { return static_cast<W>(a); }>;
}

template <class S, class D>
AluDecode SelectIntegerToInteger(u64 flags) {
  if (flags == kSat) {
    return kLanewise<[](S a) -> D { return SaturateTo<D>(a); }>;
  }
  return flags == 0 ? kLanewise<[](S a) -> D { return static_cast<D>(a); }> : AluDecode{};
}

template <class S>
AluDecode SelectFromInteger(const AluSpec& spec) {
  switch (spec.type[0]) {
    case Type::kU8:
      return SelectIntegerToInteger<S, u8>(spec.flags);
    case Type::kS8:
      return SelectIntegerToInteger<S, s8>(spec.flags);
    case Type::kU16:
      return SelectIntegerToInteger<S, u16>(spec.flags);
    case Type::kS16:
      return SelectIntegerToInteger<S, s16>(spec.flags);
    case Type::kU32:
      return SelectIntegerToInteger<S, u32>(spec.flags);
    case Type::kS32:
      return SelectIntegerToInteger<S, s32>(spec.flags);
    case Type::kU64:
      return SelectIntegerToInteger<S, u64>(spec.flags);
    case Type::kS64:
      return SelectIntegerToInteger<S, s64>(spec.flags);
    case Type::kF16:
      return SelectToHalf<F16, S>(spec.flags);
    case Type::kBF16:
      return SelectToHalf<BF16, S>(spec.flags);
    case Type::kF32:
      return SelectToWide<float, S>(spec.flags);
    case Type::kF64:
      return SelectToWide<double, S>(spec.flags);
    default:
      return {};
  }
}

template <class S, bool kFlush>
AluDecode SelectFromFloat(const AluSpec& spec) {
  const u64 rounding = spec.flags & ~u64{kFtz | kSat};  // .sat is implied for integer results
  switch (spec.type[0]) {
    case Type::kU8:
      return SelectToInteger<u8, S, kFlush>(rounding);
    case Type::kS8:
      return SelectToInteger<s8, S, kFlush>(rounding);
    case Type::kU16:
      return SelectToInteger<u16, S, kFlush>(rounding);
    case Type::kS16:
      return SelectToInteger<s16, S, kFlush>(rounding);
    case Type::kU32:
      return SelectToInteger<u32, S, kFlush>(rounding);
    case Type::kS32:
      return SelectToInteger<s32, S, kFlush>(rounding);
    case Type::kU64:
      return SelectToInteger<u64, S, kFlush>(rounding);
    case Type::kS64:
      return SelectToInteger<s64, S, kFlush>(rounding);
    default:
      return {};
  }
}

}  // namespace

AluDecode SelectConvertInteger(const AluSpec& spec) {
  if (spec.op != AluOp::kCvt || spec.types != 2) {
    return {};
  }
  switch (spec.type[1]) {
    case Type::kU8:
      return SelectFromInteger<u8>(spec);
    case Type::kS8:
      return SelectFromInteger<s8>(spec);
    case Type::kU16:
      return SelectFromInteger<u16>(spec);
    case Type::kS16:
      return SelectFromInteger<s16>(spec);
    case Type::kU32:
      return SelectFromInteger<u32>(spec);
    case Type::kS32:
      return SelectFromInteger<s32>(spec);
    case Type::kU64:
      return SelectFromInteger<u64>(spec);
    case Type::kS64:
      return SelectFromInteger<s64>(spec);
    case Type::kF32:
      return spec.Has(kFtz) ? SelectFromFloat<float, true>(spec)
                            : SelectFromFloat<float, false>(spec);
    default:
      break;
  }
  if (spec.Has(kFtz)) {
    return {};
  }
  switch (spec.type[1]) {
    case Type::kF16:
      return SelectFromFloat<F16, false>(spec);
    case Type::kBF16:
      return SelectFromFloat<BF16, false>(spec);
    case Type::kF64:
      return SelectFromFloat<double, false>(spec);
    default:
      return {};
  }
}

}  // namespace kernelpro::KP_ALU_ISA
