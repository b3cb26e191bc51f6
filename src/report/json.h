// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "device/device.h"
#include "evaluate/sanitizers.h"
#include "kernelpro/finding.h"
#include "kernelpro/profile.h"
#include "search/driver.h"

/// The objects behind --json, with search/record.h for evaluations. Their keys are a contract:
/// docs/command_line.md. Times are in microseconds and end in _us.
namespace kernelpro::report {

using Json = nlohmann::ordered_json;

/// {name: {value, unit, provenance}}
[[nodiscard]] Json MetricsJson(const std::map<std::string, Metric>& metrics);
/// The kernels of the profile format, profile/profile_json.h.
[[nodiscard]] Json KernelsJson(const Profile& profile);
/// search::DiagnosisJson with the text of each finding.
[[nodiscard]] Json DiagnosisJson(const Diagnosis& diagnosis);
/// search::EvaluationJson as `kernelpro evaluate --json` prints it: time_us is {median, low, high,
/// cold, warm, host} (null where the device does not give it), speedup the ratio to the seed.
[[nodiscard]] Json EvaluationReport(const Evaluation& evaluation, double seed_us,
                                    const DeviceInfo& device);
/// [{tool, ran, errors, message, ms}], one for each tool.
[[nodiscard]] Json SanitizersJson(const SanitizerReport& sanitizers);
/// {task, device, evaluations, verdicts, seed, best, stopped_by}
[[nodiscard]] Json SearchJson(const search::SearchResult& result, const std::string& task,
                              const DeviceInfo& device);
/// Of one launch: {kernel, grid, block, ctas, ctas_executed, modelled_us, bounds, faults}
[[nodiscard]] Json LaunchJson(const EmulatedLaunch& launch);

}  // namespace kernelpro::report
