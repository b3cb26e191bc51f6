// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "device/device.h"
#include "evaluate/evaluation.h"
#include "kernelpro/finding.h"
#include "kernelpro/profile.h"
#include "search/driver.h"
#include "store/run_store.h"

/// What people read on the terminal. Plain text, no colours; every figure with unit and provenance.
namespace kernelpro::report {

/// A finding as complete sentences: seen, why, what to do, how to check, what to avoid.
[[nodiscard]] std::string FindingText(const Finding& finding);

/// Classes, findings, what was suppressed and what is fine.
[[nodiscard]] std::string DiagnosisText(const Diagnosis& diagnosis);

[[nodiscard]] std::string EvaluationText(const Evaluation& evaluation, double seed_us);

/// Metrics by kernel, as a table.
[[nodiscard]] std::string ProfileText(const Profile& profile);

/// The result of a search: seed, best, what the experts said about each, the steps between, the
/// diff. `path` leads from the seed to the best node, both included.
[[nodiscard]] std::string SearchText(const search::SearchResult& result,
                                     const std::vector<store::NodeRecord>& path,
                                     const std::string& task, const DeviceInfo& device);

/// The nodes from the root to `id`.
[[nodiscard]] std::vector<store::NodeRecord> PathTo(const std::vector<store::NodeRecord>& nodes,
                                                    store::NodeId id);

}  // namespace kernelpro::report
