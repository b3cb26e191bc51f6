// SPDX-License-Identifier: Apache-2.0
#include "emulator/simt/alu_families.h"
#include "emulator/simt/alu_ieee.h"

// f32 and f64 arithmetic rounded to nearest even. The hardware is IEEE here, so the host's own
// operations are the reference; the directed roundings are in alu_rounded.cc.
namespace kernelpro::KP_ALU_ISA {
namespace {

using simt::kAbsFlag;
using simt::kFtz;
using simt::kNaN;
using simt::kRn;
using simt::kSat;
using simt::kXorsign;

template <bool Z>
constexpr float MultiplyF32(float a, float b) {
  return FlushTiny<Z>(a * b, Z ? (a * kTinyScale) * b : 0.0F);
}

template <bool Z>
constexpr float FmaF32(float a, float b, float c) {
  return FlushTiny<Z>(FusedMultiplyAdd(a, b, c),
                      Z ? FusedMultiplyAdd(a * kTinyScale, b, c * kTinyScale) : 0.0F);
}

template <bool Z>
constexpr float DivideF32(float a, float b) {
  return FlushTiny<Z>(a / b, Z ? (a * kTinyScale) / b : 0.0F);
}

template <bool Z, bool S>
AluDecode ArithmeticF32(AluOp op) {
  switch (op) {
    case AluOp::kAdd:
      return kLanewise<[](float a, float b) -> float {
        return Finish<Z, S>(Flush<Z>(a) + Flush<Z>(b));
      }>;
    case AluOp::kSub:
      return kLanewise<[](float a, float b) -> float {
        return Finish<Z, S>(Flush<Z>(a) - Flush<Z>(b));
      }>;
    case AluOp::kMul:
      return kLanewise<[](float a, float b) -> float {
        return Finish<false, S>(MultiplyF32<Z>(Flush<Z>(a), Flush<Z>(b)));
      }>;
    case AluOp::kFma:
    case AluOp::kMad:
      return kLanewise<[](float a, float b, float c) -> float {
        return Finish<false, S>(FmaF32<Z>(Flush<Z>(a), Flush<Z>(b), Flush<Z>(c)));
      }>;
    default:
      return {};
  }
}

template <bool Z>
AluDecode QuotientF32(AluOp op) {
  switch (op) {
    case AluOp::kDiv:
      return kLanewise<[](float a, float b) -> float {
        return Finish<false, false>(DivideF32<Z>(Flush<Z>(a), Flush<Z>(b)));
      }>;
    case AluOp::kRcp:
      return kLanewise<[](float a) -> float {
        return Finish<false, false>(DivideF32<Z>(1.0F, Flush<Z>(a)));
      }>;
    case AluOp::kSqrt:
      return kLanewise<[](float a) -> float {
        return Finish<Z, false>(__builtin_sqrtf(Flush<Z>(a)));
      }>;
    default:
      return {};
  }
}

template <bool Z>
AluDecode SignF32(AluOp op) {
  switch (op) {
    case AluOp::kAbs:
      return kLanewise<[](float a) -> float { return Canonical(AbsBits(Flush<Z>(a))); }>;
    case AluOp::kNeg:
      return kLanewise<[](float a) -> float { return Canonical(NegateBits(Flush<Z>(a))); }>;
    default:
      return {};
  }
}

template <bool Z, bool N, bool X, bool kMax>
AluDecode MinMaxF32() {
  return kLanewise<[](float a, float b) -> float {
    const float x = Flush<Z>(a);
    const float y = Flush<Z>(b);
    if constexpr (X) {
      const float r = MinMax<kMax, N>(AbsBits(x), AbsBits(y));
      const u32 sign = (BitCast<u32>(x) ^ BitCast<u32>(y)) & kSignBit<float>;
      return Canonical(BitCast<float>(BitCast<u32>(r) | sign));
    } else {
      return MinMax<kMax, N>(x, y);
    }
  }>;
}

template <bool Z, bool N, bool X>
AluDecode SelectMinMaxOp(AluOp op) {
  return op == AluOp::kMax ? MinMaxF32<Z, N, X, true>() : MinMaxF32<Z, N, X, false>();
}

template <bool Z>
AluDecode SelectMinMax(const AluSpec& spec) {
  switch (spec.flags & ~u64{kFtz}) {
    case 0:
      return SelectMinMaxOp<Z, false, false>(spec.op);
    case kNaN:
      return SelectMinMaxOp<Z, true, false>(spec.op);
    case kXorsign | kAbsFlag:
      return SelectMinMaxOp<Z, false, true>(spec.op);
    case kNaN | kXorsign | kAbsFlag:
      return SelectMinMaxOp<Z, true, true>(spec.op);
    default:
      return {};
  }
}

AluDecode SelectArithmeticF32(const AluSpec& spec) {
  const bool needs_rounding = spec.op == AluOp::kFma || spec.op == AluOp::kMad;
  if (!spec.Only(kRn | kFtz | kSat) || (needs_rounding && !spec.Has(kRn))) {
    return {};
  }
  const bool z = spec.Has(kFtz);
  if (spec.Has(kSat)) {
    return z ? ArithmeticF32<true, true>(spec.op) : ArithmeticF32<false, true>(spec.op);
  }
  return z ? ArithmeticF32<true, false>(spec.op) : ArithmeticF32<false, false>(spec.op);
}

AluDecode SelectF32(const AluSpec& spec) {
  const bool z = spec.Has(kFtz);
  switch (spec.op) {
    case AluOp::kAdd:
    case AluOp::kSub:
    case AluOp::kMul:
    case AluOp::kFma:
    case AluOp::kMad:
      return SelectArithmeticF32(spec);
    case AluOp::kDiv:
    case AluOp::kRcp:
    case AluOp::kSqrt:
      if (!spec.Only(kRn | kFtz) || !spec.Has(kRn)) {
        return {};
      }
      return z ? QuotientF32<true>(spec.op) : QuotientF32<false>(spec.op);
    case AluOp::kAbs:
    case AluOp::kNeg:
      if (!spec.Only(kFtz)) {
        return {};
      }
      return z ? SignF32<true>(spec.op) : SignF32<false>(spec.op);
    case AluOp::kMin:
    case AluOp::kMax:
      return z ? SelectMinMax<true>(spec) : SelectMinMax<false>(spec);
    case AluOp::kCopysign:
      return spec.flags == 0
                 ? kLanewise<[](float a, float b) -> float { return CopySignBits(b, a); }>
                 : AluDecode{};
    default:
      return {};
  }
}

AluDecode RoundedF64(AluOp op) {
  switch (op) {
    case AluOp::kAdd:
      return kLanewise<[](double a, double b) -> double { return WithNan(a + b, a, b); }>;
    case AluOp::kSub:
      return kLanewise<[](double a, double b) -> double { return WithNan(a - b, a, b); }>;
    case AluOp::kMul:
      return kLanewise<[](double a, double b) -> double { return WithNan(a * b, a, b); }>;
    case AluOp::kFma:
    case AluOp::kMad:
      return kLanewise<[](double a, double b, double c) -> double {
        return WithNan(FusedMultiplyAdd(a, b, c), a, c, b);
      }>;
    case AluOp::kDiv:
      return kLanewise<[](double a, double b) -> double { return WithNan(a / b, b, a); }>;
    case AluOp::kRcp:
      return kLanewise<[](double a) -> double { return WithNan(1.0 / a, a); }>;
    case AluOp::kSqrt:
      return kLanewise<[](double a) -> double { return WithNan(__builtin_sqrt(a), a); }>;
    default:
      return {};
  }
}

AluDecode SelectF64(const AluSpec& spec) {
  switch (spec.op) {
    case AluOp::kAbs:
      return spec.flags == 0
                 ? kLanewise<[](double a) -> double { return IsNan(a) ? Quiet(a) : AbsBits(a); }>
                 : AluDecode{};
    case AluOp::kNeg:
      return spec.flags == 0
                 ? kLanewise<[](double a) -> double { return IsNan(a) ? Quiet(a) : NegateBits(a); }>
                 : AluDecode{};
    case AluOp::kMin:
      return spec.flags == 0 ? kLanewise<[](double a, double b) -> double {
        return MinMax<false, false>(a, b);
      }>
                             : AluDecode{};
    case AluOp::kMax:
      return spec.flags == 0
                 ? kLanewise<[](double a, double b) -> double { return MinMax<true, false>(a, b); }>
                 : AluDecode{};
    case AluOp::kCopysign:
      return spec.flags == 0
                 ? kLanewise<[](double a, double b) -> double { return CopySignBits(b, a); }>
                 : AluDecode{};
    case AluOp::kAdd:
    case AluOp::kSub:
    case AluOp::kMul:
      return spec.Only(kRn) ? RoundedF64(spec.op) : AluDecode{};
    default:
      return spec.flags == kRn ? RoundedF64(spec.op) : AluDecode{};
  }
}

}  // namespace

AluDecode SelectFloat(const AluSpec& spec) {
  if (spec.types != 1) {
    return {};
  }
  if (spec.type[0] == ptx::Type::kF32) {
    return SelectF32(spec);
  }
  return spec.type[0] == ptx::Type::kF64 ? SelectF64(spec) : AluDecode{};
}

}  // namespace kernelpro::KP_ALU_ISA
