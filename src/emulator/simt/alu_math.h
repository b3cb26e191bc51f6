// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "emulator/simt/alu_ieee.h"

/// Elementary functions in double, accurate far beyond float, written so that the lane loops
/// vectorise. They use no fused operations: every instruction set gives the same bits.
namespace kernelpro::KP_ALU_ISA {

inline constexpr double kRoundToInteger = 0x1.8p52;  ///< added and subtracted: nearest integer

/// 2^x for finite x; |x| is clamped to 1000, beyond every float.
constexpr double Exp2(double x) {
  const double low = x > -1000.0 ? x : -1000.0;
  const double clamped = low < 1000.0 ? low : 1000.0;
  const double biased = clamped + kRoundToInteger;
  const double z = (clamped - (biased - kRoundToInteger)) * 0x1.62e42fefa39efp-1;
  double p = 1.0 / 39916800;
  p = p * z + 1.0 / 3628800;
  p = p * z + 1.0 / 362880;
  p = p * z + 1.0 / 40320;
  p = p * z + 1.0 / 5040;
  p = p * z + 1.0 / 720;
  p = p * z + 1.0 / 120;
  p = p * z + 1.0 / 24;
  p = p * z + 1.0 / 6;
  p = p * z + 0.5;
  p = p * z + 1.0;
  p = p * z + 1.0;
  return p * BitCast<double>((BitCast<u64>(biased) + 1023) << 52U);
}

/// log2 of a positive normal number.
constexpr double Log2(double x) {
  // Bits are split at sqrt(1/2), so that the mantissa is within a factor sqrt(2) of 1.
  constexpr u64 kHalfRoot = 0x3fe6a09e667f3bcdU;
  const u64 offset = BitCast<u64>(x) - kHalfRoot;
  const auto exponent = static_cast<double>(static_cast<s32>(static_cast<s64>(offset) >> 52));
  const double m = BitCast<double>((offset & 0x000fffffffffffffU) + kHalfRoot);
  const double s = (m - 1.0) / (m + 1.0);
  const double q = s * s;
  double p = 1.0 / 19;
  p = p * q + 1.0 / 17;
  p = p * q + 1.0 / 15;
  p = p * q + 1.0 / 13;
  p = p * q + 1.0 / 11;
  p = p * q + 1.0 / 9;
  p = p * q + 1.0 / 7;
  p = p * q + 1.0 / 5;
  p = p * q + 1.0 / 3;
  p = p * q + 1.0;
  return exponent + p * s * (2.0 * 0x1.71547652b82fep+0);
}

/// sin(2 pi t) for |t| < 2^50.
constexpr double SinTurns(double t) {
  const double doubled = t + t;
  const double biased = doubled + kRoundToInteger;
  const double half_turns = biased - kRoundToInteger;
  const double z = (doubled - half_turns) * 0x1.921fb54442d18p+1;  // [-pi/2, pi/2]
  const double q = z * z;
  double p = -1.0 / 121645100408832000;
  p = p * q + 1.0 / 355687428096000;
  p = p * q - 1.0 / 1307674368000;
  p = p * q + 1.0 / 6227020800;
  p = p * q - 1.0 / 39916800;
  p = p * q + 1.0 / 362880;
  p = p * q - 1.0 / 5040;
  p = p * q + 1.0 / 120;
  p = p * q - 1.0 / 6;
  p = (p * q + 1.0) * z;
  return BitCast<double>(BitCast<u64>(p) ^ (BitCast<u64>(biased) << 63U));  // odd half turns negate
}

constexpr double Tanh(double x) {
  const double low = x > -20.0 ? x : -20.0;
  const double clamped = low < 20.0 ? low : 20.0;
  const double e = Exp2(clamped * (2.0 * 0x1.71547652b82fep+0));
  const double wide = (e - 1.0) / (e + 1.0);
  const double q = x * x;
  const double small = x * (1.0 - q * (1.0 / 3 - q * (2.0 / 15)));
  return q < 1e-6 ? small : wide;
}

}  // namespace kernelpro::KP_ALU_ISA
