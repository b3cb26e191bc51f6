// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "emulator/ptx/module.h"

namespace kernelpro::model {

/// How long one instruction keeps its warp's issue slot and when its result can be used.
struct InstructionTiming {
  double slots = 0;    ///< issue slots
  double latency = 0;  ///< cycles from issue to the result
  /// Cycles that a wait adds before what follows can start (barriers), and, for a wait on
  /// asynchronous copies, whether it must see the copies issued before it in the same segment.
  double delay = 0;
  bool waits_for_copies = false;
  double copy_latency = 0;  ///< > 0: an asynchronous copy, ready this many cycles later
};

/// Instructions [first, end) that run without a branch or CTA barrier in between.
struct Segment {
  std::uint32_t first = 0, end = 0;
};

/// The basic blocks of the kernel, cut after each CTA barrier too.
[[nodiscard]] std::vector<Segment> CutIntoSegments(const ptx::Function& kernel);

/// Cycles that one warp alone needs for the segment when only data dependences hold it back: the
/// latest start of an instruction, but at least the issue slots; plus the pipeline refill of a
/// taken branch. For a loop of one segment, at least the longest chain that an iteration hands to
/// the next. `timing` is indexed by instruction.
[[nodiscard]] double SegmentCycles(const ptx::Function& kernel, const Segment& segment,
                                   std::span<const InstructionTiming> timing);

}  // namespace kernelpro::model
