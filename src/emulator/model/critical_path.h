// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "emulator/ptx/module.h"

namespace kernelpro::model {

/// How long one instruction keeps its warp's issue slot and when its result can be used.
struct InstructionTiming {
  double slots = 0;         ///< issue slots
  double latency = 0;       ///< cycles from issue to the result
  double delay = 0;         ///< cycles before what follows can start (barriers)
  double copy_latency = 0;  ///< > 0: an asynchronous copy, ready this many cycles later
  bool commits_copies = false;
  /// A wait: how many of the newest groups of copies may stay in flight.
  std::optional<std::uint32_t> copies_left = std::nullopt;
  /// Of a wait: when the copies that earlier segments issued are there, from its segment's start.
  double copies_arrive = 0;
};

/// Instructions [first, end) that run without a branch or CTA barrier in between.
struct Segment {
  std::uint32_t first = 0, end = 0;
};

/// The basic blocks of the kernel, cut after each CTA barrier too.
[[nodiscard]] std::vector<Segment> CutIntoSegments(const ptx::Function& kernel);

/// What happens to asynchronous copies in one pass over a segment; times from its start.
struct CopyEvent {
  enum class Kind : std::uint8_t { kCopy, kCommit, kWait };
  Kind kind = Kind::kCopy;
  std::uint32_t instruction = 0;
  double time = 0;  ///< kCopy: when the data are there; kWait: when the warp comes to it
};

[[nodiscard]] std::vector<CopyEvent> CopyEvents(const ptx::Function& kernel, const Segment& segment,
                                                std::span<const InstructionTiming> timing);

/// Cycles that one warp alone needs for the segment when only data dependences hold it back: the
/// latest start of an instruction, but at least the issue slots; plus the pipeline refill of a
/// taken branch. For a loop of one segment, at least the longest chain that an iteration hands to
/// the next. `timing` is indexed by instruction.
[[nodiscard]] double SegmentCycles(const ptx::Function& kernel, const Segment& segment,
                                   std::span<const InstructionTiming> timing);

}  // namespace kernelpro::model
