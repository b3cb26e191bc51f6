// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "sass/listing.h"
#include "sass/operands.h"

namespace kernelpro::sass {

inline constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

/// Instructions [first, end) of the function that always run one after the other.
struct Block {
  std::uint32_t first = 0, end = 0;
  std::vector<std::uint32_t> next, previous;  ///< block numbers
  std::uint32_t dominator = kNone;            ///< nearest one; kNone: entry or unreachable
  bool reachable = false;
  std::uint32_t loop = kNone;  ///< innermost loop that it is in
};

/// A natural loop: the target of a back edge that dominates the edge's source, and all blocks that
/// reach the source without passing the target.
struct Loop {
  std::uint32_t header = 0;          ///< block
  std::uint32_t parent = kNone;      ///< loop around it
  std::uint32_t depth = 1;           ///< 1: outermost
  std::uint32_t instructions = 0;    ///< inner loops included
  std::vector<std::uint32_t> own;    ///< blocks that are in no inner loop, ascending
  std::vector<std::uint32_t> inner;  ///< loops directly inside
  /// A rolled wait: at most six instructions that load, test, sleep or ask for registers, no
  /// arithmetic, and an address that the loop does not change.
  bool poll = false;
  /// Not written by anybody: gives an instruction with uniform operands (UTMALDG, UTCHMMA) to one
  /// lane after the other (ELECT ... BRA.U.ANY); runs once where one lane is active.
  bool by_lane = false;

  /// Nor is this: the loop over six words of 2/pi by which sinf, cosf and tanf reduce an argument
  /// above 105615. Hardly ever runs.
  bool reduction = false;

  /// Whether it counts as a loop of the program.
  [[nodiscard]] bool IsReal() const { return !poll && !by_lane && !reduction; }
};

/// Blocks, dominators and loops of one function; near linear in its size.
struct ControlFlow {
  std::uint32_t size = 0;      ///< instructions without trailing NOPs and the branch to itself
  std::vector<Access> access;  ///< by instruction, `size` of them
  std::vector<Block> blocks;   ///< by address
  std::vector<std::uint32_t> block_of;  ///< by instruction
  std::vector<Loop> loops;              ///< inner ones before those around them

  [[nodiscard]] bool Dominates(std::uint32_t a, std::uint32_t b) const;

  /// Instructions of a loop with its inner loops, ascending.
  [[nodiscard]] std::vector<std::uint32_t> InstructionsOf(std::uint32_t loop) const;

  std::vector<std::uint32_t> dominator_in, dominator_out;  ///< times of a walk of that tree
};

[[nodiscard]] ControlFlow AnalyzeControlFlow(const Function& function);

}  // namespace kernelpro::sass
