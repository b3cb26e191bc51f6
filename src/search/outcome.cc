// SPDX-License-Identifier: Apache-2.0
#include "search/outcome.h"

#include <nlohmann/json.hpp>
#include <string>

#include "diagnose/diagnose.h"

namespace kernelpro::search {

void AddOutcome(const store::NodeRecord& node, const store::NodeRecord* parent,
                Assessment* assessment) {
  if (parent == nullptr || node.finding.empty() || parent->time_us <= 0 ||
      assessment->evaluation.verdict != Verdict::kOk || assessment->profile.kernels.empty()) {
    return;
  }
  const auto diagnosis = nlohmann::json::parse(parent->diagnosis, nullptr, false);
  if (!diagnosis.is_object() || !diagnosis.contains("findings")) {
    return;
  }
  for (const auto& finding : diagnosis["findings"]) {
    if (finding.value("id", std::string()) == node.finding) {
      const Outcome outcome{node.finding, finding.value("title", std::string()),
                            finding.value("bound", 0.0), parent->time_us,
                            assessment->evaluation.time_us};
      assessment->feedback =
          FeedbackText(assessment->diagnosis, assessment->profile, {.outcome = outcome});
      return;
    }
  }
}

}  // namespace kernelpro::search
