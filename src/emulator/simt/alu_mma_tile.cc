// SPDX-License-Identifier: Apache-2.0
#include "emulator/simt/alu_mma_tile.h"

#include "emulator/simt/alu_half.h"

namespace kernelpro::KP_ALU_ISA {
namespace {

using simt::MmaArithmetic;
using simt::MmaInput;
using simt::MmaShape;

inline constexpr int kMaxBlock = 16;
inline constexpr int kMaxRows = 64;
inline constexpr s32 kNoExponent = -(1 << 20);  ///< of a zero: never the largest
inline constexpr int kFactorFraction = 10;      ///< significands of all inputs are scaled to this

/// Factors of one row or column in one block, padded with zeros to kMaxBlock.
struct Factors {
  s32 exponent[kMaxBlock];
  s32 significand[kMaxBlock];  ///< signed, kFactorFraction fraction bits
  bool special;                ///< an infinity or a NaN is among them
};

struct Encoding {
  u32 exponent_bits;
  u32 mantissa_bits;
  u32 drop_bits;  ///< low bits of the pattern that are ignored
};

constexpr Encoding EncodingOf(MmaInput input) {
  switch (input) {
    case MmaInput::kF16:
      return {5, 10, 0};
    case MmaInput::kBF16:
      return {8, 7, 0};
    default:
      return {8, 10, 13};
  }
}

void Decode(const u32* bits, int count, Encoding encoding, Factors* out) {
  *out = {};
  for (int i = 0; i < kMaxBlock; ++i) {
    out->exponent[i] = kNoExponent;
  }
  const u32 top = (1U << encoding.exponent_bits) - 1;
  const s32 bias = static_cast<s32>(top >> 1U);
  for (int i = 0; i < count; ++i) {
    const u32 value = bits[i] >> encoding.drop_bits;
    const u32 mantissa = value & ((1U << encoding.mantissa_bits) - 1);
    const u32 exponent = (value >> encoding.mantissa_bits) & top;
    const bool negative = ((value >> (encoding.mantissa_bits + encoding.exponent_bits)) & 1U) != 0;
    const u32 full = exponent != 0 ? mantissa | (1U << encoding.mantissa_bits) : mantissa;
    const auto scaled =
        static_cast<s32>(full << (static_cast<u32>(kFactorFraction) - encoding.mantissa_bits));
    out->special = out->special || exponent == top;
    out->significand[i] = negative ? -scaled : scaled;
    out->exponent[i] =
        full == 0 ? kNoExponent : static_cast<s32>(exponent != 0 ? exponent : 1U) - bias;
  }
}

struct Accumulator {
  s32 exponent;
  s32 significand;  ///< signed, 23 fraction bits
};

constexpr Accumulator DecodeAccumulator(u32 bits) {
  const u32 field = (bits >> 23U) & 0xffU;
  const u32 fraction = bits & 0x7fffffU;
  const auto full = static_cast<s32>(field != 0 ? fraction | 0x800000U : fraction);
  return {full == 0 ? kNoExponent : static_cast<s32>(field != 0 ? field : 1U) - 127,
          (bits & 0x80000000U) != 0 ? -full : full};
}

/// Magnitude shifted right (truncation is towards zero), 0 past 31.
constexpr s32 CutOff(s32 value, s32 shift) {
  const s32 sign = value >> 31;
  const s32 cut = ((value ^ sign) - sign) >> (shift < 31 ? shift : 31);
  return (cut ^ sign) - sign;
}

/// sum * 2^exponent truncated to f32; overflow is an infinity.
u32 TruncateToF32(s64 sum, s32 exponent) {
  if (sum == 0) {
    return 0;
  }
  const u32 sign = sum < 0 ? 0x80000000U : 0U;
  const u64 magnitude = sum < 0 ? u64{0} - static_cast<u64>(sum) : static_cast<u64>(sum);
  const s32 leading = 63 - __builtin_clzll(magnitude);
  const s32 top = leading + exponent;
  const s32 least = (top > -126 ? top : -126) - 23;  // exponent of the result's last bit
  const s32 shift = least - exponent;
  const u64 kept = shift >= 64 ? 0 : shift >= 0 ? magnitude >> shift : magnitude << -shift;
  if (top < -126) {
    return sign | static_cast<u32>(kept);
  }
  if (top > 127) {
    return sign | 0x7f800000U;
  }
  return sign | ((static_cast<u32>(top + 126) << 23U) + static_cast<u32>(kept));
}

u32 BlockSum(const Factors& a, const Factors& b, u32 c, s32 fraction_bits) {
  const Accumulator accumulator = DecodeAccumulator(c);
  s32 exponent[kMaxBlock];
  s32 largest = accumulator.exponent;
  // Kept as loops: unrolled early they would not be vectorised.
#pragma GCC unroll 1
  for (int i = 0; i < kMaxBlock; ++i) {
    exponent[i] = a.exponent[i] + b.exponent[i];
    largest = exponent[i] > largest ? exponent[i] : largest;
  }
  if (largest <= kNoExponent / 2) {
    return 0;  // all terms are zero
  }
  const s32 raise = fraction_bits - 2 * kFactorFraction;
  s32 terms[kMaxBlock];
#pragma GCC unroll 1
  for (int i = 0; i < kMaxBlock; ++i) {
    const s32 product = a.significand[i] * b.significand[i] * (1 << raise);
    terms[i] = CutOff(product, largest - exponent[i]);
  }
  s64 sum = 0;
#pragma GCC unroll 1
  for (const s32 term : terms) {
    sum += term;
  }
  sum +=
      CutOff(accumulator.significand * (1 << (fraction_bits - 23)), largest - accumulator.exponent);
  return TruncateToF32(sum, largest - fraction_bits);
}

/// An output with an infinity or a NaN among its inputs: IEEE arithmetic in any order, and the
/// canonical NaN.
u32 SpecialSum(const u32* a, const u32* b, int count, MmaInput input, u32 c) {
  const auto value = [input](u32 bits) -> double {
    switch (input) {
      case MmaInput::kF16:
        return static_cast<double>(Widen(F16{static_cast<u16>(bits)}));
      case MmaInput::kBF16:
        return static_cast<double>(Widen(BF16{static_cast<u16>(bits)}));
      default:
        return static_cast<double>(BitCast<float>(bits & 0xffffe000U));
    }
  };
  double sum = static_cast<double>(BitCast<float>(c));
  for (int i = 0; i < count; ++i) {
    sum += value(a[i]) * value(b[i]);
  }
  return IsNan(sum) ? kNanF32 : BitCast<u32>(static_cast<float>(sum));
}

}  // namespace

void MultiplyAccumulate(MmaInput input, MmaShape shape, const u32* a, const u32* b, u32* d,
                        MmaArithmetic arithmetic, bool half) {
  const int block = arithmetic.block_k < shape.k ? arithmetic.block_k : shape.k;
  const Encoding encoding = EncodingOf(input);
  Factors rows[kMaxRows];
  for (int start = 0; start < shape.k; start += block) {
    for (int i = 0; i < shape.m; ++i) {
      Decode(a + i * shape.k + start, block, encoding, &rows[i]);
    }
    for (int j = 0; j < shape.n; ++j) {
      Factors column;
      Decode(b + j * shape.k + start, block, encoding, &column);
      for (int i = 0; i < shape.m; ++i) {
        u32& out = d[i * shape.n + j];
        const u32 c = half ? BitCast<u32>(Widen(F16{static_cast<u16>(out)})) : out;
        const bool special = rows[i].special || column.special || (c & 0x7f800000U) == 0x7f800000U;
        const u32 sum =
            special ? SpecialSum(a + i * shape.k + start, b + j * shape.k + start, block, input, c)
                    : BlockSum(rows[i], column, c, arithmetic.fraction_bits);
        out = half ? NarrowTo<F16>(BitCast<float>(sum)).bits : sum;
      }
    }
  }
}

}  // namespace kernelpro::KP_ALU_ISA
