// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "emulator/ptx/module.h"

namespace kernelpro::ptx {

inline constexpr std::uint32_t kNoBlock = 0xffffffffU;

/// A straight run of instructions [first, end) of Function::body. Leaders are the entry, branch
/// targets, and what follows bra, brx.idx, ret, exit and trap (guarded or not); a call does not end
/// a block.
struct BasicBlock {
  std::uint32_t first = 0;
  std::uint32_t end = 0;
  /// Taken targets in operand order, then the fall-through; no duplicates. Leaving the function is
  /// not an edge here, see `leaves`.
  std::vector<std::uint32_t> successors;
  std::vector<std::uint32_t> predecessors;
  bool leaves = false;     ///< ret, exit, trap (guarded too), or the end of the body
  bool reachable = false;  ///< from the entry
  /// Immediate dominator: kNoBlock for the entry and for what is not reachable.
  std::uint32_t dominator = kNoBlock;
  /// Immediate post-dominator; kNoBlock when control next meets only outside the function, or when
  /// no path from here leaves it (an endless loop).
  std::uint32_t post_dominator = kNoBlock;
  std::uint32_t loop = kNoBlock;  ///< innermost loop, an index into ControlFlow::loops
};

/// A natural loop; back edges with the same header are one loop. Its blocks are exactly the
/// numbers [header, end): the numbering keeps loops together.
struct Loop {
  std::uint32_t header = 0;
  std::uint32_t end = 0;
  std::uint32_t parent = kNoBlock;  ///< index into ControlFlow::loops
  std::uint32_t depth = 1;          ///< 1 is outermost
  std::vector<std::uint32_t> latches;

  [[nodiscard]] bool Contains(std::uint32_t block) const { return block >= header && block < end; }
};

/// Blocks are numbered in reverse post-order with every loop contiguous: block 0 is the entry; an
/// edge that is not a back edge goes to a higher number (reducible code), so a loop's exits, and
/// the point where a branch's sides meet again, come after all blocks between. Running the lowest
/// number first therefore reconverges at post-dominators. Blocks that cannot be reached follow
/// last, in text order.
struct ControlFlow {
  std::vector<BasicBlock> blocks;
  std::vector<std::uint32_t> block_of;  ///< by instruction: number of its block
  std::vector<Loop> loops;              ///< outer loops before the loops inside them
  std::vector<std::pair<std::uint32_t, std::uint32_t>> back_edges;  ///< (latch, header)
  /// True when some cycle is entered at more than one block. Such a cycle is no Loop and its
  /// retreating edges are not in back_edges; the numbering is still a reverse post-order.
  bool irreducible = false;
};

/// Needs branch targets inside the body, as Parse makes them; a target outside it counts as
/// leaving. Time is O(n log n) in instructions and edges.
[[nodiscard]] ControlFlow BuildControlFlow(const Function& function);

}  // namespace kernelpro::ptx
