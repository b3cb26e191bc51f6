// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "emulator/model/critical_path.h"
#include "emulator/ptx/module.h"
#include "emulator/simt/report.h"

namespace kernelpro::model {

/// What ptxas's vectorisation makes of one shared load.
struct SharedMerge {
  double issue = 1;       ///< share of the instruction's executions that remain
  double wavefronts = 0;  ///< data-stage cycles of all its executions, after merging
  bool merged = false;
};

/// ptxas turns four ld.shared of 4 bytes at consecutive addresses from the same base register into
/// one LDS.128 when the first is 16-byte aligned. PTX does not show whether ptxas can prove that;
/// we take it where every address seen was aligned. A 128-bit access is served by half warps at
/// best: at least two wavefronts, even when all lanes read the same address. By instruction;
/// instructions that are no shared loads keep their wavefronts.
[[nodiscard]] std::vector<SharedMerge> MergeSharedLoads(
    const ptx::Function& kernel, std::span<const Segment> segments,
    std::span<const simt::InstructionCounters> counters);

}  // namespace kernelpro::model
