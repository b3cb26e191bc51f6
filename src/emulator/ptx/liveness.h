// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "emulator/ptx/control_flow.h"
#include "emulator/ptx/module.h"

namespace kernelpro::ptx {

/// Registers (indices into Function::registers) that one instruction reads, guard included, and
/// writes, in operand order. An accumulator that wgmma updates in place is in both.
struct RegisterAccess {
  std::vector<std::uint32_t> reads;
  std::vector<std::uint32_t> writes;
};

/// Goes by the form of the operands: the first is a destination unless it is an address or the
/// opcode is one that has none (bar.sync, bra, nanosleep, ...).
[[nodiscard]] RegisterAccess AccessOf(const Instruction& instruction);

struct Liveness {
  /// By block number of the ControlFlow; sorted register indices. Empty for unreachable blocks.
  std::vector<std::vector<std::uint32_t>> live_in;
  std::vector<std::vector<std::uint32_t>> live_out;
  /// The most 32-bit registers that live values need at one instruction: 64-bit values count two,
  /// 128-bit ones four, smaller ones one, predicates none. A lower bound of what ptxas will use
  /// before it reorders code: an estimate for where there is no ptxas, to be labelled so.
  std::uint32_t max_live_registers = 0;
  std::uint32_t max_live_predicates = 0;
  std::uint32_t peak_instruction = 0;  ///< the first where max_live_registers is reached
};

/// A guarded write does not end the life of the value before it (lanes may keep it).
/// kInvalidArgument when the sets would hold more than 32 million entries.
[[nodiscard]] Result<Liveness> ComputeLiveness(const Function& function, const ControlFlow& flow);

}  // namespace kernelpro::ptx
