// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sass/control_flow.h"
#include "sass/listing.h"

/// The figures of a loop that need more than counting. `body` are the loop's instructions,
/// ascending; one pass over it stands for one iteration, whichever way its branches go.
namespace kernelpro::sass {

struct LoadFigures {
  std::uint64_t ldg_bytes = 0, lds_bytes = 0;  ///< a lane
  /// Largest number of LDG in a row before something needs one of them, across the back edge too.
  std::optional<std::uint32_t> ldg_batch;
  /// Fewest instructions from an LDG to the first that needs it.
  std::optional<std::uint32_t> ldg_use_distance;
  /// LDG of at most 32 bit a lane beside another from the same register at the next offset.
  std::uint32_t narrow_runs = 0;
  /// LDG and LDS of an address that was surely loaded before in the iteration, with no barrier in
  /// between (a store may stand between: then the compiler had to fear an overlap).
  std::uint32_t duplicate_loads = 0;
  /// LDG, and LDS in loops that leave shared memory alone, whose address the loop never changes.
  std::uint32_t invariant_loads = 0;
};

[[nodiscard]] LoadFigures LoadFiguresOf(const Function& function, const ControlFlow& flow,
                                        const std::vector<std::uint32_t>& body);

/// LDG whose value goes to STS, then BAR, then LDS or LDSM, and neither LDGSTS nor TMA.
[[nodiscard]] bool IsStagedCopy(const Function& function, const ControlFlow& flow,
                                const std::vector<std::uint32_t>& body);

struct ChainFigures {
  double critical_path = 0;  ///< cycles of the longest dependence chain in one iteration
  double recurrence = 0;     ///< cycles an iteration adds to the longest chain through all of them
};

[[nodiscard]] ChainFigures ChainFiguresOf(const Function& function, const ControlFlow& flow,
                                          const std::vector<std::uint32_t>& body);

/// FMUL whose only use is as an addend of an FADD under the same guard and rounding, in one block.
/// One flag an instruction of the function.
[[nodiscard]] std::vector<bool> FusibleMultiplies(const Function& function,
                                                  const ControlFlow& flow);

/// FFMA, DFMA and IMAD that read three different registers without .reuse, all even or all odd: the
/// register file has two banks.
[[nodiscard]] bool HasBankConflict(const Instruction& instruction, const Access& access);

/// The start of an integer division by a run-time value: I2F.RP, or a call to the library's.
[[nodiscard]] bool IsDivision(const Instruction& instruction);

/// 64-bit address and integer arithmetic: IMAD.WIDE, IADD3.X, LEA.HI.X, ISETP.EX, IADD.64...
[[nodiscard]] bool IsWideInteger(const Instruction& instruction);

}  // namespace kernelpro::sass
