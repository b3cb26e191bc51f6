// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernelpro/finding.h"
#include "kernelpro/profile.h"
#include "kernelpro/tool.h"

namespace kernelpro {

/// The built-in tools, in a fixed order.
[[nodiscard]] const std::vector<std::unique_ptr<Tool>>& BuiltInTools();

/// Stage 1 (roofline classes) and stage 2 (every tool the classes call for), ranked, contradictions
/// suppressed. Pure.
[[nodiscard]] Diagnosis Diagnose(const Profile& profile, const Hardware& hardware,
                                 const std::vector<const Tool*>& tools);
[[nodiscard]] Diagnosis Diagnose(const Profile& profile, const Hardware& hardware);

/// The Diagnosis in words, for a model or a person (docs/tools.md section "Feedback"): at most
/// three findings, 200-350 words, deterministic.
[[nodiscard]] std::string FeedbackText(const Diagnosis& diagnosis, const Profile& profile);

}  // namespace kernelpro
