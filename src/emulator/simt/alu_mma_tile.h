// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "emulator/simt/alu_mma.h"

/// The tile product of each instruction set: d holds c on entry; `half`: c and d are f16.
namespace kernelpro::alu_v2 {
void MultiplyAccumulate(simt::MmaInput input, simt::MmaShape shape, const std::uint32_t* a,
                        const std::uint32_t* b, std::uint32_t* d, simt::MmaArithmetic arithmetic,
                        bool half);
}  // namespace kernelpro::alu_v2

namespace kernelpro::alu_v3 {
void MultiplyAccumulate(simt::MmaInput input, simt::MmaShape shape, const std::uint32_t* a,
                        const std::uint32_t* b, std::uint32_t* d, simt::MmaArithmetic arithmetic,
                        bool half);
}  // namespace kernelpro::alu_v3
