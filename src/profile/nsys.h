// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kernelpro/profile.h"

namespace kernelpro {

/// Reads what `nsys stats` (or `nsys profile --stats=true`) printed, as text or CSV, of any version
/// since 2020, other output around it included. Sample:
///
///   [6/8] Executing 'cuda_gpu_kern_sum' stats report
///
///    Time (%)  Total Time (ns)  Instances  Avg (ns)   Med (ns)   Min (ns)  Max (ns)  Name
///    --------  ---------------  ---------  ---------  ---------  --------  --------  --------
///        23.2       36,917,512        424   87,069.6   75,952.0    18,112   302,560  f(float*)
///
/// A summary of kernels gives one KernelProfile a row: time_us and gpu__time_duration.sum over all
/// its launches, timeline.instances, and timeline.kernel_{average,median,min,max}_ns where printed.
/// A trace (cuda_gpu_trace) gives one KernelProfile a launch instead, and `timeline`; a trace of
/// calls (cuda_api_trace) adds the host's events. Without a trace, the counts of the other
/// summaries are in `system`: timeline.kernels, .copies, .copy_bytes, .syncs, .allocations,
/// .graph_launches. Everything is measured. Any byte sequence is safe. Errors: kParse when the
/// numbers may mean two things, kNotFound when there is no table of kernels, with nsys's reason.
[[nodiscard]] Result<Profile> ParseNsysStats(std::string_view text, std::string label);

/// A file of nsys: the output above or an SQLite export (nsys_sqlite.h), told apart by content.
/// kUnavailable for a .nsys-rep, with the command that exports it; kParse for a file of another
/// kind, saying what it seems to be.
[[nodiscard]] Result<Profile> ReadNsys(const std::filesystem::path& path);

}  // namespace kernelpro
