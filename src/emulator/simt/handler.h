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
/// (predicates 4). A destination slot is either exactly a source's slot or disjoint from every
/// source: slots of different width never overlap within one instruction.
namespace kernelpro::simt {

inline constexpr int kWarpSize = 32;
using LaneMask = std::uint32_t;
inline constexpr LaneMask kAllLanes = 0xffffffffU;

/// Operands of one decoded arithmetic instruction. dst2 is the second predicate of setp p|q, or the
/// second destination of an unpacking mov.
struct AluOperands {
  std::uint32_t dst = 0, dst2 = 0;
  std::uint32_t src[4] = {0, 0, 0, 0};
  std::uint32_t dst3 = 0, dst4 = 0;  ///< third and fourth destination of an unpacking mov
  std::uint32_t carry = 0;   ///< predicate slot of CC.CF, one a warp (AluDecode::uses_carry)
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
  bool uses_carry = false;  ///< reads or writes AluOperands::carry (add.cc, addc, madc, ...)
};

/// The handler of an instruction without memory, control or cross-lane effects: arithmetic, logic,
/// comparison, conversion, moves. run == nullptr when the opcode string is not implemented exactly.
/// mov and cvta.{to.}global are plain copies: an operand that is a symbol must already be an
/// address in its slot. cvta of other spaces is the core's, which knows where their windows are.
/// mov with a vector operand: SelectPack and SelectUnpack.
/// setp.f16x2/bf16x2 always writes dst (low half) and dst2 (high half).
/// Everything is the H200's result bit for bit, except the approximations (ex2, lg2, sin, cos,
/// tanh, rcp, rsqrt, sqrt .approx, div.approx, div.full): those are the true value rounded once,
/// within 2 ulp of the hardware (lg2: or 2.1e-6; sin, cos: 4e-7 absolute; tanh: 131 ulp or 8e-6).
[[nodiscard]] AluDecode SelectAlu(const ptx::Instruction& instruction);

/// `mov.bN d, {a, b[, c, d]}`: src[0] is the least significant element. dst is N bits, each source
/// N / elements. run == nullptr for a split that PTX does not have (and for b128).
[[nodiscard]] AluDecode SelectPack(const ptx::Instruction& instruction, int elements);

/// `mov.bN {a, b[, c, d]}, s`: dst, dst2, dst3, dst4 in that order receive the elements;
/// AluDecode::dst is the type of each. A sink ("_") needs a scratch slot.
[[nodiscard]] AluDecode SelectUnpack(const ptx::Instruction& instruction, int elements);

}  // namespace kernelpro::simt
