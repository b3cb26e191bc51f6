// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kernelpro/profile.h"

namespace kernelpro {

/// Reads what `ncu --csv` printed, other output around it included: one metric a row (LONG) or one
/// column a metric (WIDE, `--page raw`), of any version since 2020. Sample:
///
///   ==PROF== Connected to process 1
///   "ID",...,"Kernel Name",...,"Metric Name","Metric Unit","Metric Value"
///   "0",...,"copy(float *)",...,"gpu__time_duration.sum","ns","198,144"
///
/// One KernelProfile a launch, in file order; times in us, values in base units (ns, byte, hz).
/// Display names of `--page details` become metric names where there is one, else
/// "<section>: <name>". Values that ncu could not collect are in `missing`, words in `texts`; there
/// "ncu.rules" counts the remarks of ncu's own rules, which are left out. A log may hold several
/// tables. Files to 1 GiB and 20 million values.
/// Any byte sequence is safe. Errors: kParse with "<label>:<line>: what", kUnavailable when the
/// user may not read the counters, kToolFailed when the application failed, kNotFound when the log
/// holds no profile; each says what to do.
[[nodiscard]] Result<Profile> ParseNcuCsv(std::string_view text, std::string label);
[[nodiscard]] Result<Profile> ReadNcuCsv(const std::filesystem::path& path);

/// Launches of the same kernel as one: sums and times add up, other metrics are means weighted by
/// time, taken over the launches that have them. Ordered by time, longest first.
[[nodiscard]] Profile MergeLaunches(const Profile& profile);

}  // namespace kernelpro
