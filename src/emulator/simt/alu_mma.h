// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Tensor-core arithmetic on whole tiles, bit for bit as the hardware does it. For one output the
/// products of a block of k and the accumulator are aligned to the largest exponent among them (the
/// sum of the factors' exponents, the product itself not normalised), cut off after a fixed number
/// of fraction bits, added exactly and truncated to f32; the next block continues from there.
/// Verified on an H200 for mma.sync m16n8k{4,8,16} with f16, bf16 and tf32 inputs
/// (tests/data/h200). fp8 inputs take another route on that chip and are not offered.
namespace kernelpro::simt {

enum class MmaInput : std::uint8_t { kF16, kBF16, kTF32 };

struct MmaShape {
  int m = 16;
  int n = 8;
  int k = 16;
};

/// Of an architecture; the default is Hopper's.
struct MmaArithmetic {
  int block_k = 16;        ///< products added at once; a longer k is a chain of blocks
  int fraction_bits = 25;  ///< kept below the largest exponent, 23 to 26
};

/// d = a * b + c. Elements are bit patterns: a[m][k], b[n][k] (b's columns), c and d [m][n] in f32;
/// c may be d. tf32 inputs are f32 bits of which the low 13 are ignored. block_k is at most 16 and
/// k at most 64, a multiple of block_k or below it.
void MultiplyAccumulateF32(MmaInput input, MmaShape shape, const std::uint32_t* a,
                           const std::uint32_t* b, const std::uint32_t* c, std::uint32_t* d,
                           MmaArithmetic arithmetic = {});

/// The same with f16 accumulators (f16 inputs): the f32 sum of a block is rounded to nearest.
void MultiplyAccumulateF16(MmaShape shape, const std::uint32_t* a, const std::uint32_t* b,
                           const std::uint32_t* c, std::uint32_t* d, MmaArithmetic arithmetic = {});

}  // namespace kernelpro::simt
