// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sass/opcode.h"

namespace kernelpro::sass {

/// Registers that a thread holds of the matrices of D = A*B + C.
struct MatrixRegisters {
  unsigned d = 1, a = 1, b = 1, c = 1;
};

/// From the shape and the types in the opcode: HMMA.16816.F32 -> {4, 4, 2, 4}; HGMMA.64x128x16.F32
/// -> {64, 4, 4, 64} (A in registers; B is in shared memory).
[[nodiscard]] MatrixRegisters MatrixRegistersOf(const Opcode& opcode);

}  // namespace kernelpro::sass
