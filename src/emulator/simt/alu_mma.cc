// SPDX-License-Identifier: Apache-2.0
#include "emulator/simt/alu_mma.h"

#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "emulator/simt/alu_isa.h"
#include "emulator/simt/alu_mma_tile.h"

namespace kernelpro::simt {
namespace {

void Run(MmaInput input, MmaShape shape, const std::uint32_t* a, const std::uint32_t* b,
         const std::uint32_t* c, std::uint32_t* d, MmaArithmetic arithmetic, bool half) {
  KP_CHECK(shape.m > 0 && shape.m <= 64 && shape.n > 0 && shape.k > 0 && shape.k <= 64);
  KP_CHECK(arithmetic.block_k > 0 && arithmetic.block_k <= 16);
  KP_CHECK(shape.k < arithmetic.block_k || shape.k % arithmetic.block_k == 0);
  KP_CHECK(arithmetic.fraction_bits >= 23 && arithmetic.fraction_bits <= 26);
  if (c != d) {
    std::copy_n(c, shape.m * shape.n, d);
  }
#ifdef KP_ALU_HAS_V3
  if (BestAluIsa() == AluIsa::kV3) {
    alu_v3::MultiplyAccumulate(input, shape, a, b, d, arithmetic, half);
    return;
  }
#endif
  alu_v2::MultiplyAccumulate(input, shape, a, b, d, arithmetic, half);
}

}  // namespace

void MultiplyAccumulateF32(MmaInput input, MmaShape shape, const std::uint32_t* a,
                           const std::uint32_t* b, const std::uint32_t* c, std::uint32_t* d,
                           MmaArithmetic arithmetic) {
  Run(input, shape, a, b, c, d, arithmetic, false);
}

void MultiplyAccumulateF16(MmaShape shape, const std::uint32_t* a, const std::uint32_t* b,
                           const std::uint32_t* c, std::uint32_t* d, MmaArithmetic arithmetic) {
  Run(MmaInput::kF16, shape, a, b, c, d, arithmetic, true);
}

}  // namespace kernelpro::simt
