// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "process/process.h"

namespace kernelpro {

/// The names that ncu lists after "Available Kernels:" when the filter matched none of them.
[[nodiscard]] std::vector<std::string> KernelsSeen(std::string_view log);

/// Whether ncu was refused the performance counters.
[[nodiscard]] bool CountersRefused(std::string_view log);

/// Those of the metrics asked for that ncu names in its complaint about metrics ("Failed to access
/// the following 2 metrics: a, b", "Failed to find metric a"): some versions then profile nothing.
[[nodiscard]] std::vector<std::string> RefusedMetrics(std::string_view log,
                                                      const std::vector<std::string>& asked);

/// Why a run of ncu gave no profile, from what it printed. `kernel` is what was asked for.
///   kUnavailable  the counters are forbidden (with the three fixes), in use by another tool, or
///                 driver and ncu do not go together
///   kNotFound     no kernel matched; says which were seen
///   kTimeout      the limit passed
///   kCancelled    it was stopped
///   kToolFailed   the application failed, or ncu did
[[nodiscard]] Error ExplainNcuFailure(std::string_view log, const ProcessResult& ended,
                                      const ProcessLimits& limits, std::string_view kernel);

}  // namespace kernelpro
