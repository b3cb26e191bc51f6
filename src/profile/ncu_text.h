// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kernelpro/profile.h"

namespace kernelpro {

/// Reads what ncu (nv-nsight-cu-cli in 2020) prints for people, other output around it included:
///
///   ==PROF== Disconnected from process 1
///   [1] app@127.0.0.1
///     copy(float *, int) (512, 1, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 8.9
///       Section: GPU Speed Of Light Throughput
///       ----------------------- ----------- ------------
///       Metric Name             Metric Unit Metric Value
///       ----------------------- ----------- ------------
///       Duration                    usecond        11.55
///       ----------------------- ----------- ------------
///       OPT   Est. Speedup: 50%
///
/// In 2020 and 2021 the heading holds a date instead of the grid, and tables have no line of
/// titles. One KernelProfile a launch, in file order, with values in base units as by ParseNcuCsv;
/// words such as CachePreferNone are in `texts`, what ncu could not collect in `missing`; rules are
/// skipped. Printed values have two decimals, and a note of the profile says so. Any byte sequence
/// is safe. Errors: kParse when the numbers may mean two things, else as WhyNoProfile of ncu_log.h.
[[nodiscard]] Result<Profile> ParseNcuText(std::string_view text, std::string label);
[[nodiscard]] Result<Profile> ReadNcuText(const std::filesystem::path& path);

/// Whether a line is a launch's heading (", Context 1, Stream 7" behind a name).
[[nodiscard]] bool IsLaunchHeading(std::string_view line);

}  // namespace kernelpro
