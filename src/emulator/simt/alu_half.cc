// SPDX-License-Identifier: Apache-2.0
#include "emulator/simt/alu_half.h"

#include <type_traits>

#include "emulator/simt/alu_families.h"
#include "emulator/simt/alu_ieee.h"
#include "emulator/simt/alu_math.h"

// f16 and bf16 arithmetic, scalar and in pairs. Every operation is computed wide enough that the
// narrowing is the only rounding that shows: float has more than 2 p + 2 bits for f16 and bf16 sums
// and for f16 products; bf16 products and all fused operations take the wider or the odd-rounded
// route.
namespace kernelpro::KP_ALU_ISA {
namespace {

using ptx::Type;
using simt::kAbsFlag;
using simt::kApprox;
using simt::kFtz;
using simt::kNaN;
using simt::kRelu;
using simt::kRn;
using simt::kSat;
using simt::kXorsign;

enum class Clamp : u8 { kNone, kSaturate, kRelu };

template <class H>
constexpr bool IsNanHalf(H h) {
  return (h.bits & 0x7fffU) > FormatOf<H>::type::kInfinity;
}

template <class H>
constexpr H Negated(H h) {
  return H{static_cast<u16>(h.bits ^ 0x8000U)};
}

template <class H>
constexpr H Magnitude(H h) {
  return H{static_cast<u16>(h.bits & 0x7fffU)};
}

template <class H>
constexpr H CanonicalHalf(H h) {
  return H{static_cast<u16>(IsNanHalf(h) ? 0x7fffU : h.bits)};
}

template <bool Z, Clamp kClamp, class H>
constexpr H FinishHalf(H h) {
  const H flushed = Flush<Z>(h);
  const u32 bits = flushed.bits;
  constexpr u32 kOne = std::is_same_v<H, F16> ? 0x3c00U : 0x3f80U;
  if constexpr (kClamp == Clamp::kSaturate) {
    const u32 least = bits < kOne ? bits : kOne;  // magnitude order of non-negative values
    return H{static_cast<u16>(IsNanHalf(flushed) || (bits & 0x8000U) != 0 ? 0U : least)};
  } else if constexpr (kClamp == Clamp::kRelu) {
    return H{static_cast<u16>(!IsNanHalf(flushed) && (bits & 0x8000U) != 0 ? 0U : bits)};
  } else {
    return flushed;
  }
}

template <class H>
constexpr H AddHalf(H a, H b) {
  return NarrowTo<H>(Widen(a) + Widen(b));
}

template <class H>
constexpr H MulHalf(H a, H b) {
  if constexpr (std::is_same_v<H, F16>) {
    return NarrowTo<H>(Widen(a) * Widen(b));
  } else {
    return NarrowTo<H>(static_cast<double>(Widen(a)) * static_cast<double>(Widen(b)));
  }
}

template <class H>
constexpr H FmaHalf(H a, H b, H c) {
  if constexpr (std::is_same_v<H, F16>) {
    return NarrowTo<H>(RoundToOddSum(Widen(a) * Widen(b), Widen(c)));
  } else {
    const double product = static_cast<double>(Widen(a)) * static_cast<double>(Widen(b));
    return NarrowTo<H>(RoundToOddSum(product, static_cast<double>(Widen(c))));
  }
}

template <bool kMax, bool kNan, class H>
constexpr H MinMaxHalf(H a, H b) {
  const float x = Widen(a);
  const float y = Widen(b);
  const bool first = kMax ? y < x : x < y;
  u32 bits = first ? a.bits : b.bits;
  const u32 equal = kMax ? u32{a.bits} & b.bits : u32{a.bits} | b.bits;
  bits = x == y ? equal : bits;
  bits = IsNan(x) ? (kNan ? 0x7fffU : b.bits) : bits;
  bits = IsNan(y) ? (kNan ? 0x7fffU : a.bits) : bits;
  return CanonicalHalf(H{static_cast<u16>(bits)});
}

template <bool kMax, bool kNan, bool kXor, class H>
constexpr H MinMaxSigned(H a, H b) {
  if constexpr (kXor) {
    const H r = MinMaxHalf<kMax, kNan>(Magnitude(a), Magnitude(b));
    return CanonicalHalf(H{static_cast<u16>(r.bits | ((a.bits ^ b.bits) & 0x8000U))});
  } else {
    return MinMaxHalf<kMax, kNan>(a, b);
  }
}

template <class H>
constexpr H Ex2Half(H a) {
  const float x = Widen(a);
  return IsNan(x) ? H{0x7fffU} : NarrowTo<H>(Exp2(static_cast<double>(x)));
}

template <class H>
constexpr H TanhHalf(H a) {
  const float x = Widen(a);
  const H result = NarrowTo<H>(Tanh(static_cast<double>(x)));
  return IsNan(x) ? H{0x7fffU} : x == 0 ? a : result;
}

template <class H>
constexpr H LowOf(u32 pair) {
  return H{static_cast<u16>(pair)};
}

template <class H>
constexpr H HighOf(u32 pair) {
  return H{static_cast<u16>(pair >> 16U)};
}

template <class H>
constexpr u32 PairOf(H low, H high) {
  return low.bits | (u32{high.bits} << 16U);
}

/// The handler of F on scalars or on pairs, by F's signature.
template <auto F, class Signature>
struct Shape;

template <auto F, class C, class H>
struct Shape<F, H (C::*)(H) const> {
  static AluDecode Select(bool pair) {
    return pair ? kLanewise<[](u32 a) -> u32 { return PairOf<H>(F(LowOf<H>(a)), F(HighOf<H>(a))); }>
                : kLanewise<F>;
  }
};

template <auto F, class C, class H>
struct Shape<F, H (C::*)(H, H) const> {
  static AluDecode Select(bool pair) {
    return pair ? kLanewise<[](u32 a, u32 b) -> u32 {
      return PairOf<H>(F(LowOf<H>(a), LowOf<H>(b)), F(HighOf<H>(a), HighOf<H>(b)));
    }>
                : kLanewise<F>;
  }
};

template <auto F, class C, class H>
struct Shape<F, H (C::*)(H, H, H) const> {
  static AluDecode Select(bool pair) {
    return pair ? kLanewise<[](u32 a, u32 b, u32 c) -> u32 {
      return PairOf<H>(F(LowOf<H>(a), LowOf<H>(b), LowOf<H>(c)),
                       F(HighOf<H>(a), HighOf<H>(b), HighOf<H>(c)));
    }>
                : kLanewise<F>;
  }
};

template <auto F>
AluDecode Shaped(bool pair) {
  return Shape<F, decltype(&decltype(F)::operator())>::Select(pair);
}

template <class H, bool Z, Clamp kClamp>
AluDecode Arithmetic(AluOp op, bool pair) {
  switch (op) {
    case AluOp::kAdd:
      return Shaped<[](H a, H b) -> H {
        return FinishHalf<Z, kClamp>(AddHalf(Flush<Z>(a), Flush<Z>(b)));
      }>(pair);
    case AluOp::kSub:
      return Shaped<[](H a, H b) -> H {
        return FinishHalf<Z, kClamp>(AddHalf(Flush<Z>(a), Negated(Flush<Z>(b))));
      }>(pair);
    case AluOp::kMul:
      return Shaped<[](H a, H b) -> H {
        return FinishHalf<Z, kClamp>(MulHalf(Flush<Z>(a), Flush<Z>(b)));
      }>(pair);
    case AluOp::kFma:
      return Shaped<[](H a, H b, H c) -> H {
        return FinishHalf<Z, kClamp>(FmaHalf(Flush<Z>(a), Flush<Z>(b), Flush<Z>(c)));
      }>(pair);
    default:
      return {};
  }
}

template <class H, bool Z>
AluDecode SelectArithmetic(const AluSpec& spec, bool pair) {
  if (spec.op == AluOp::kFma && !spec.Has(kRn)) {
    return {};
  }
  switch (spec.flags & ~u64{kRn | kFtz}) {
    case 0:
      return Arithmetic<H, Z, Clamp::kNone>(spec.op, pair);
    case kSat:
      return std::is_same_v<H, F16> ? Arithmetic<H, Z, Clamp::kSaturate>(spec.op, pair)
                                    : AluDecode{};
    case kRelu:
      return spec.op == AluOp::kFma ? Arithmetic<H, Z, Clamp::kRelu>(spec.op, pair) : AluDecode{};
    default:
      return {};
  }
}

template <class H, bool Z, bool kMax, bool kNan, bool kXor>
AluDecode MinMax(bool pair) {
  return Shaped<[](H a, H b) -> H {
    return MinMaxSigned<kMax, kNan, kXor>(Flush<Z>(a), Flush<Z>(b));
  }>(pair);
}

template <class H, bool Z, bool kMax>
AluDecode SelectMinMax(const AluSpec& spec, bool pair) {
  switch (spec.flags & ~u64{kFtz}) {
    case 0:
      return MinMax<H, Z, kMax, false, false>(pair);
    case kNaN:
      return MinMax<H, Z, kMax, true, false>(pair);
    case kXorsign | kAbsFlag:
      return MinMax<H, Z, kMax, false, true>(pair);
    case kNaN | kXorsign | kAbsFlag:
      return MinMax<H, Z, kMax, true, true>(pair);
    default:
      return {};
  }
}

template <class H, bool Z>
AluDecode SelectFlushed(const AluSpec& spec, bool pair) {
  switch (spec.op) {
    case AluOp::kMin:
      return SelectMinMax<H, Z, false>(spec, pair);
    case AluOp::kMax:
      return SelectMinMax<H, Z, true>(spec, pair);
    case AluOp::kAbs:
      return spec.Only(kFtz)
                 ? Shaped<[](H a) -> H { return CanonicalHalf(Magnitude(Flush<Z>(a))); }>(pair)
                 : AluDecode{};
    case AluOp::kNeg:
      return spec.Only(kFtz)
                 ? Shaped<[](H a) -> H { return CanonicalHalf(Negated(Flush<Z>(a))); }>(pair)
                 : AluDecode{};
    default:
      return SelectArithmetic<H, Z>(spec, pair);
  }
}

template <class H>
AluDecode SelectApproximate(const AluSpec& spec, bool pair) {
  constexpr bool kIsF16 = std::is_same_v<H, F16>;
  if (spec.op == AluOp::kTanh && spec.flags == kApprox) {
    return Shaped<[](H a) -> H { return TanhHalf(a); }>(pair);
  }
  if (spec.op != AluOp::kEx2 || spec.flags != (kIsF16 ? u64{kApprox} : u64{kApprox | kFtz})) {
    return {};
  }
  return Shaped<[](H a) -> H { return FinishHalf<!kIsF16, Clamp::kNone>(Ex2Half(a)); }>(pair);
}

template <class H>
AluDecode SelectTyped(const AluSpec& spec, bool pair) {
  if (spec.Has(kApprox)) {
    return SelectApproximate<H>(spec, pair);
  }
  if (!spec.Has(kFtz)) {
    return SelectFlushed<H, false>(spec, pair);
  }
  return std::is_same_v<H, F16> ? SelectFlushed<H, true>(spec, pair) : AluDecode{};
}

}  // namespace

AluDecode SelectHalf(const AluSpec& spec) {
  if (spec.types != 1) {
    return {};
  }
  switch (spec.type[0]) {
    case Type::kF16:
      return SelectTyped<F16>(spec, false);
    case Type::kF16x2:
      return SelectTyped<F16>(spec, true);
    case Type::kBF16:
      return SelectTyped<BF16>(spec, false);
    case Type::kBF16x2:
      return SelectTyped<BF16>(spec, true);
    default:
      return {};
  }
}

}  // namespace kernelpro::KP_ALU_ISA
