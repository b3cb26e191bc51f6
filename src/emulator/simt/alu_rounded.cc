// SPDX-License-Identifier: Apache-2.0
#include <cfenv>

#include "emulator/simt/alu_families.h"
#include "emulator/simt/alu_ieee.h"

// The directed roundings run the host's own operation under the host's rounding mode, so they are
// exact by construction. This file is compiled with -frounding-math; inputs come from memory after
// the mode is set and results reach memory before it is restored, with compiler barriers between.
namespace kernelpro::KP_ALU_ISA {
namespace {

using simt::kFtz;
using simt::kSat;

class ScopedRounding {
 public:
  explicit ScopedRounding(int mode) : previous_(std::fegetround()) {
    std::fesetround(mode);
    asm volatile("" ::: "memory");
  }

  ~ScopedRounding() {
    asm volatile("" ::: "memory");
    std::fesetround(previous_);
  }

  ScopedRounding(const ScopedRounding&) = delete;
  ScopedRounding& operator=(const ScopedRounding&) = delete;

 private:
  int previous_;
};

template <auto F, int kMode>
void RunUnder(std::byte* registers, const AluOperands& operands, LaneMask mask) {
  const ScopedRounding rounding(kMode);
  LoopOf<F>::template Run<F>(registers, operands, mask);
}

template <auto F>
AluDecode Directed(const AluSpec& spec) {
  switch (spec.flags & simt::kFloatRounding) {
    case simt::kRz:
      return LoopOf<F>::Decode(&RunUnder<F, FE_TOWARDZERO>);
    case simt::kRm:
      return LoopOf<F>::Decode(&RunUnder<F, FE_DOWNWARD>);
    case simt::kRp:
      return LoopOf<F>::Decode(&RunUnder<F, FE_UPWARD>);
    default:
      return {};
  }
}

// fma through the library: it honours the rounding mode without hardware support, too.
float Fma(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}

double Fma(double a, double b, double c) {
  return __builtin_fma(a, b, c);
}

template <bool Z>
inline float MultiplyF32(float a, float b) {
  return FlushTiny<Z>(a * b, Z ? (a * kTinyScale) * b : 0.0F);
}

template <bool Z>
inline float FmaF32(float a, float b, float c) {
  return FlushTiny<Z>(Fma(a, b, c), Z ? Fma(a * kTinyScale, b, c * kTinyScale) : 0.0F);
}

template <bool Z>
inline float DivideF32(float a, float b) {
  return FlushTiny<Z>(a / b, Z ? (a * kTinyScale) / b : 0.0F);
}

template <bool Z, bool S>
AluDecode ArithmeticF32(const AluSpec& spec) {
  switch (spec.op) {
    case AluOp::kAdd:
      return Directed<[](float a, float b) -> float {
        return Finish<Z, S>(Flush<Z>(a) + Flush<Z>(b));
      }>(spec);
    case AluOp::kSub:
      return Directed<[](float a, float b) -> float {
        return Finish<Z, S>(Flush<Z>(a) - Flush<Z>(b));
      }>(spec);
    case AluOp::kMul:
      return Directed<[](float a, float b) -> float {
        return Finish<false, S>(MultiplyF32<Z>(Flush<Z>(a), Flush<Z>(b)));
      }>(spec);
    case AluOp::kFma:
    case AluOp::kMad:
      return Directed<[](float a, float b, float c) -> float {
        return Finish<false, S>(FmaF32<Z>(Flush<Z>(a), Flush<Z>(b), Flush<Z>(c)));
      }>(spec);
    default:
      return {};
  }
}

template <bool Z>
AluDecode QuotientF32(const AluSpec& spec) {
  switch (spec.op) {
    case AluOp::kDiv:
      return Directed<[](float a, float b) -> float {
        return Finish<false, false>(DivideF32<Z>(Flush<Z>(a), Flush<Z>(b)));
      }>(spec);
    case AluOp::kRcp:
      return Directed<[](float a) -> float {
        return Finish<false, false>(DivideF32<Z>(1.0F, Flush<Z>(a)));
      }>(spec);
    case AluOp::kSqrt:
      return Directed<[](float a) -> float {
        return Finish<Z, false>(__builtin_sqrtf(Flush<Z>(a)));
      }>(spec);
    default:
      return {};
  }
}

AluDecode SelectF64(const AluSpec& spec) {
  switch (spec.op) {
    case AluOp::kAdd:
      return Directed<[](double a, double b) -> double { return WithNan(a + b, a, b); }>(spec);
    case AluOp::kSub:
      return Directed<[](double a, double b) -> double { return WithNan(a - b, a, b); }>(spec);
    case AluOp::kMul:
      return Directed<[](double a, double b) -> double { return WithNan(a * b, a, b); }>(spec);
    case AluOp::kFma:
    case AluOp::kMad:
      return Directed<[](double a, double b, double c) -> double {
        return WithNan(Fma(a, b, c), a, c, b);
      }>(spec);
    case AluOp::kDiv:
      return Directed<[](double a, double b) -> double { return WithNan(a / b, b, a); }>(spec);
    case AluOp::kRcp:
      return Directed<[](double a) -> double { return WithNan(1.0 / a, a); }>(spec);
    case AluOp::kSqrt:
      return Directed<[](double a) -> double { return WithNan(__builtin_sqrt(a), a); }>(spec);
    default:
      return {};
  }
}

AluDecode SelectF32(const AluSpec& spec) {
  if (spec.Has(kSat)) {
    return spec.Has(kFtz) ? ArithmeticF32<true, true>(spec) : ArithmeticF32<false, true>(spec);
  }
  const AluDecode decode =
      spec.Has(kFtz) ? ArithmeticF32<true, false>(spec) : ArithmeticF32<false, false>(spec);
  if (decode.run != nullptr) {
    return decode;
  }
  return spec.Has(kFtz) ? QuotientF32<true>(spec) : QuotientF32<false>(spec);
}

template <bool Z, bool S>
AluDecode F32FromF64(const AluSpec& spec) {
  return Directed<[](double a) -> float {
    const auto result = static_cast<float>(a);
    const auto scaled = Z ? static_cast<float>(a * static_cast<double>(kTinyScale)) : 0.0F;
    const float flushed = FlushTiny<Z>(result, scaled);
    return S ? Saturate01(flushed) : flushed;
  }>(spec);
}

AluDecode SelectF32FromF64(const AluSpec& spec) {
  if (spec.Has(kSat)) {
    return spec.Has(kFtz) ? F32FromF64<true, true>(spec) : F32FromF64<false, true>(spec);
  }
  return spec.Has(kFtz) ? F32FromF64<true, false>(spec) : F32FromF64<false, false>(spec);
}

template <class To, class From>
AluDecode Conversion(const AluSpec& spec) {
  return Directed<[](From a) -> To { return static_cast<To>(a); }>(spec);
}

/// cvt from integers to f32 and f64.
template <class To>
AluDecode SelectConversion(const AluSpec& spec) {
  switch (spec.type[1]) {
    case ptx::Type::kU32:
      return Conversion<To, u32>(spec);
    case ptx::Type::kS32:
      return Conversion<To, s32>(spec);
    case ptx::Type::kU64:
      return Conversion<To, u64>(spec);
    case ptx::Type::kS64:
      return Conversion<To, s64>(spec);
    default:
      return {};
  }
}

}  // namespace

AluDecode SelectRounded(const AluSpec& spec) {
  const u64 rounding = spec.flags & simt::kFloatRounding;
  if (!spec.Has(simt::kDirected) || (rounding & (rounding - 1)) != 0) {
    return {};
  }
  if (spec.op == AluOp::kCvt && spec.types == 2) {
    if (spec.type[0] == ptx::Type::kF32 && spec.type[1] == ptx::Type::kF64) {
      return spec.Only(rounding | kFtz | kSat) ? SelectF32FromF64(spec) : AluDecode{};
    }
    if (!spec.Only(rounding)) {
      return {};
    }
    return spec.type[0] == ptx::Type::kF32   ? SelectConversion<float>(spec)
           : spec.type[0] == ptx::Type::kF64 ? SelectConversion<double>(spec)
                                             : AluDecode{};
  }
  if (spec.types != 1) {
    return {};
  }
  if (spec.type[0] == ptx::Type::kF32) {
    return spec.Only(rounding | kFtz | kSat) ? SelectF32(spec) : AluDecode{};
  }
  return spec.type[0] == ptx::Type::kF64 && spec.Only(rounding) ? SelectF64(spec) : AluDecode{};
}

}  // namespace kernelpro::KP_ALU_ISA
