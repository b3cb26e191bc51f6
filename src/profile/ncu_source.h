// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernelpro/profile.h"

namespace kernelpro {

/// One launch of the source page.
struct NcuSourceKernel {
  std::string name;                ///< as the page has it; empty: the page does not say
  std::vector<HotSpot> hot_spots;  ///< instructions that were sampled, most samples first
  double samples = 0;              ///< of all instructions
  std::size_t instructions = 0;    ///< rows that are instructions, sampled or not
};

/// Reads `ncu --page source --csv`, views "sass" and "cuda,sass", of any version. Sample:
///
///   "Kernel Name","axpy(float *, float)"
///   "Address","Source","Warp Stall Sampling (All Samples)","# Samples",...,"stall_long_sb",...
///   "0x7f1a00000510","      FFMA R5, R2, R7, R4 ","40","40",...,"36",...
///
/// Columns are found by name: samples in "Warp Stall Sampling (All Samples)" (or "(All Cycles)"),
/// else "# Samples" or "smsp__pcsamp_sample_count", else the sum of the reasons; reasons in
/// "stall_*" or "smsp__pcsamp_warps_issue_stalled_*" without those of samples at which another warp
/// issued. Reasons get the names of Nsight Compute's stall metrics: "long_scoreboard", "gmma".
/// Addresses become offsets from the kernel's first instruction. One entry a launch, in file order.
/// Any byte sequence is safe. kNotFound when there is no such table, kParse with "<label>:<line>".
[[nodiscard]] Result<std::vector<NcuSourceKernel>> ParseNcuSource(std::string_view text,
                                                                  std::string_view label);

/// "stall_long_sb", "smsp__pcsamp_warps_issue_stalled_long_scoreboard" -> "long_scoreboard"; empty
/// for columns that are no stall reason, or count only samples at which no warp issued.
[[nodiscard]] std::string StallReasonOf(std::string_view column);

/// Puts the samples of each launch into the kernel of the profile that has its name (launches of
/// one kernel add up), or, where either has only one kernel, into that. Says in `profile.notes`
/// what found no place and where the samples are too few to be shares.
void AddHotSpots(const std::vector<NcuSourceKernel>& launches, Profile& profile);

}  // namespace kernelpro
