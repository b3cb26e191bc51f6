// SPDX-License-Identifier: Apache-2.0
#include "emulator/simt/alu_families.h"
#include "emulator/simt/alu_ieee.h"
#include "emulator/simt/alu_math.h"

// The special function unit: results here are the true value rounded once to f32, which the
// hardware misses by up to 2 ulp (tanh: 131 ulp). Special values follow the PTX ISA.
namespace kernelpro::KP_ALU_ISA {
namespace {

using simt::kApprox;
using simt::kFtz;

constexpr float kInfinity = __builtin_inff();

template <bool Z>
constexpr float Ex2(float a) {
  const float x = Flush<Z>(a);
  // 2^x under- and overflows long before the clamp of Exp2, so infinities need no case.
  const auto result = static_cast<float>(Exp2(static_cast<double>(x)));
  return Finish<Z, false>(IsNan(x) ? x : result);
}

template <bool Z>
constexpr float Lg2(float a) {
  const float x = Flush<Z>(a);
  const bool regular = x > 0 && x < kInfinity;
  const auto result = static_cast<float>(Log2(regular ? static_cast<double>(x) : 1.0));
  const float nan = BitCast<float>(kNanF32);
  const float special = x == 0 ? -kInfinity : x > 0 ? x : nan;
  return Finish<Z, false>(regular ? result : special);
}

/// The hardware first multiplies by 1 / (2 pi) in f32, truncating: this is where large arguments
/// lose their phase, and reproducing it keeps the error below 4e-7 for all of them.
constexpr double Turns(float x) {
  const double product = static_cast<double>(x) * 0x1.45f306p-3;
  return BitCast<double>(BitCast<u64>(product) & 0xffffffffe0000000U);
}

template <bool kCosine>
constexpr float Sine(float a) {
  const float x = Flush<true>(a);
  const double turns = Turns(x);
  const bool finite = AbsBits(x) < kInfinity;
  // Beyond 2^40 turns an f32 is a multiple of 2^16 turns: the phase is 0.
  const double phase = AbsBits(turns) < 0x1p40 && AbsBits(turns) >= 0x1p-126 ? turns : 0.0;
  const auto result = static_cast<float>(SinTurns(kCosine ? phase + 0.25 : phase));
  const float with_sign = !kCosine && result == 0 ? CopySignBits(0.0F, x) : result;
  return finite ? with_sign : BitCast<float>(kNanF32);
}

constexpr float TanhF32(float a) {
  const auto result = static_cast<float>(Tanh(static_cast<double>(a)));
  return Canonical(IsNan(a) || a == 0 ? a : result);
}

/// 1 / b of approx divides is flushed: a quotient by |b| > 2^126 is 0 (a NaN for infinite a).
template <bool Z>
constexpr float DivApprox(float a, float b) {
  const float x = Flush<Z>(a);
  const float y = Flush<Z>(b);
  const bool huge = AbsBits(y) > 0x1p126F && AbsBits(y) < kInfinity;
  const float zero = CopySignBits(0.0F, BitCast<float>(BitCast<u32>(x) ^ BitCast<u32>(y)));
  const float of_huge = AbsBits(x) < kInfinity ? zero : BitCast<float>(kNanF32);
  return Finish<Z, false>(huge ? of_huge : x / y);
}

template <bool Z>
AluDecode SelectOne(AluOp op) {
  switch (op) {
    case AluOp::kEx2:
      return kLanewise<[](float a) -> float { return Ex2<Z>(a); }>;
    case AluOp::kLg2:
      return kLanewise<[](float a) -> float { return Lg2<Z>(a); }>;
    case AluOp::kSin:
      return kLanewise<[](float a) -> float { return Sine<false>(a); }>;
    case AluOp::kCos:
      return kLanewise<[](float a) -> float { return Sine<true>(a); }>;
    case AluOp::kRcp:
      return kLanewise<[](float a) -> float { return Finish<Z, false>(1.0F / Flush<Z>(a)); }>;
    case AluOp::kSqrt:
      return kLanewise<[](float a) -> float {
        return Finish<Z, false>(__builtin_sqrtf(Flush<Z>(a)));
      }>;
    case AluOp::kRsqrt:
      return kLanewise<[](float a) -> float {
        const auto wide = static_cast<double>(Flush<Z>(a));
        return Finish<Z, false>(static_cast<float>(1.0 / __builtin_sqrt(wide)));
      }>;
    case AluOp::kDiv:
      return kLanewise<[](float a, float b) -> float { return DivApprox<Z>(a, b); }>;
    default:
      return {};
  }
}

AluDecode SelectF32(const AluSpec& spec) {
  switch (spec.flags) {
    case kApprox:
      return spec.op == AluOp::kTanh ? kLanewise<[](float a) -> float { return TanhF32(a); }>
                                     : SelectOne<false>(spec.op);
    case kApprox | kFtz:
      return SelectOne<true>(spec.op);
    case simt::kFull:
      return spec.op == AluOp::kDiv
                 ? kLanewise<[](float a, float b) -> float { return Canonical(a / b); }>
                 : AluDecode{};
    case simt::kFull | kFtz:
      return spec.op == AluOp::kDiv ? kLanewise<[](float a, float b) -> float {
        return Finish<true, false>(Flush<true>(a) / Flush<true>(b));
      }>
                                    : AluDecode{};
    default:
      return {};
  }
}

/// f64 approximations see and return only the upper 32 bits (1.11.20).
constexpr double UpperWord(double x) {
  const u64 bits = BitCast<u64>(x);
  const u64 exponent = (bits >> 52U) & 0x7ffU;
  const u64 kept = exponent == 0 ? bits & kSignBit<double> : bits & 0xffffffff00000000U;
  return IsNan(x) ? BitCast<double>(u64{0x7fffffff00000000U}) : BitCast<double>(kept);
}

AluDecode SelectF64(const AluSpec& spec) {
  if (spec.flags == (kApprox | kFtz) && spec.op == AluOp::kRcp) {
    return kLanewise<[](double a) -> double { return UpperWord(1.0 / UpperWord(a)); }>;
  }
  if (spec.flags == (kApprox | kFtz) && spec.op == AluOp::kRsqrt) {
    return kLanewise<[](double a) -> double {
      return UpperWord(1.0 / __builtin_sqrt(UpperWord(a)));
    }>;
  }
  if (spec.flags == kApprox && spec.op == AluOp::kRsqrt) {
    return kLanewise<[](double a) -> double { return WithNan(1.0 / __builtin_sqrt(a), a); }>;
  }
  return {};
}

}  // namespace

AluDecode SelectApprox(const AluSpec& spec) {
  if (spec.types != 1) {
    return {};
  }
  if (spec.type[0] == ptx::Type::kF32) {
    return SelectF32(spec);
  }
  return spec.type[0] == ptx::Type::kF64 ? SelectF64(spec) : AluDecode{};
}

}  // namespace kernelpro::KP_ALU_ISA
