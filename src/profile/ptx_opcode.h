// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace kernelpro {

/// What a PTX opcode does, in the classes of Nsight Compute's instruction statistics.
enum class OpClass : std::uint8_t {
  kFadd,
  kFmul,
  kFfma,
  kDadd,
  kDmul,
  kDfma,
  kDoubleOther,  ///< division, square root, compare, min, max of f64
  kFloatOther,   ///< compare, min, max, abs, neg of f32
  kHalf,
  kSpecial,  ///< ex2, lg2, sin, cos, tanh, rcp, rsqrt, sqrt, f32 division
  kInteger,
  kIntegerDivision,
  kBit,
  kConversion,
  kControl,
  kBarrier,
  kShuffle,
  kMemory,
  kTensor,
  kMove,
  kOther,
};

enum class MemorySpace : std::uint8_t { kNone, kGlobal, kShared, kLocal, kConstant, kGeneric };
enum class MemoryAccess : std::uint8_t { kNone, kLoad, kStore, kAtomic, kReduction, kAsyncCopy };

struct PtxOpcode {
  OpClass op = OpClass::kOther;
  MemorySpace space = MemorySpace::kNone;
  MemoryAccess access = MemoryAccess::kNone;
  bool is_f64 = false;        ///< computes on or moves an f64
  bool converts_f64 = false;  ///< conversion between f64 and a narrower float
};

/// "ld.global.nc.v4.f32" -> memory, global, load. Unknown opcodes are kOther.
[[nodiscard]] PtxOpcode ClassifyPtx(std::string_view opcode);

}  // namespace kernelpro
