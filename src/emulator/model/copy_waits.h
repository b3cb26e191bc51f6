// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "emulator/model/critical_path.h"
#include "emulator/ptx/module.h"

namespace kernelpro::model {

/// How long a warp waits for asynchronous copies that segments before the wait have issued. A copy
/// is on its way while the warp runs on; a wait costs what is then left of the copy's latency. In a
/// loop the copies come from earlier iterations: with d waits passed while a copy is on its way,
/// each costs a d-th of what the d iterations leave uncovered, which is how more stages help.
struct CopyWaits {
  /// As given, with copies_arrive filled in: `first` for the first time a loop is entered (its
  /// copies come from in front of it) and for waits outside loops, `steady` for all other runs.
  std::vector<InstructionTiming> first, steady;
  std::vector<double> first_runs;  ///< by segment: how many of its runs are first ones
};

/// `runs` says how often each segment was executed. A wait inside a loop is taken to belong to its
/// innermost loop. Where control flow parts, segments count by how often they ran; a copy that
/// fewer than half of the waits can have met is left out.
[[nodiscard]] CopyWaits FindCopyWaits(const ptx::Function& kernel,
                                      std::span<const Segment> segments,
                                      std::span<const double> runs,
                                      std::span<const InstructionTiming> timing);

}  // namespace kernelpro::model
