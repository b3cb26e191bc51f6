// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "emulator/ptx/module.h"

/// The calling convention between the decoder, the core and the instruction handlers.
///
/// A warp's registers are lane vectors in one block of memory: 32 x 4 bytes for values of up to 32
/// bits (sub-word values live in the low bits, upper bits undefined), 32 x 8 bytes for 64-bit
/// values, one uint32 lane mask for a predicate. Operands are byte offsets into that block;
/// immediates, parameters and special registers are vectors there too, written before the kernel
/// starts, so a handler never asks what kind of operand it has. Every slot is 128-byte aligned
/// (predicates 4).
namespace kernelpro::simt {

inline constexpr int kWarpSize = 32;
using LaneMask = std::uint32_t;
inline constexpr LaneMask kAllLanes = 0xffffffffU;

/// Operands of one decoded arithmetic instruction. dst2 is the second predicate of setp p|q.
struct AluOperands {
  std::uint32_t dst = 0, dst2 = 0;
  std::uint32_t src[4] = {0, 0, 0, 0};
  bool src_negated = false;  ///< of the predicate source (setp .and !q, selp uses src[2])
  bool has_dst2 = false;
  bool has_combine = false;  ///< setp with a predicate to combine with, in src[2]
};

/// Executes for the lanes in `mask`; lanes outside keep their value. `registers` is the warp's
/// block.
using AluHandler = void (*)(std::byte* registers, const AluOperands& operands, LaneMask mask);

/// How an arithmetic instruction wants its operands decoded.
struct AluDecode {
  AluHandler run = nullptr;          ///< nullptr: not supported
  ptx::Type dst = ptx::Type::kNone;  ///< widths of the operands (kPred for predicates)
  ptx::Type src[4] = {ptx::Type::kNone, ptx::Type::kNone, ptx::Type::kNone, ptx::Type::kNone};
  int sources = 0;
};

/// The handler of an instruction without memory, control or cross-lane effects: arithmetic, logic,
/// comparison, conversion, moves (mov.b64 {a,b} packs and unpacks are the core's: it passes vectors
/// to the pack handlers below). run == nullptr when the opcode string is not implemented exactly.
[[nodiscard]] AluDecode SelectAlu(const ptx::Instruction& instruction);

}  // namespace kernelpro::simt
