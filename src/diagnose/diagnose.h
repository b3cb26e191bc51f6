// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
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

/// What followed the last advice: said on the next round, so that nobody trusts a bound that was
/// never reached.
struct Outcome {
  std::string id, title;  ///< of the finding that was followed
  double bound = 0;       ///< what it promised at most: fraction of the time
  double before_us = 0, after_us = 0;
};

enum class FeedbackForm : std::uint8_t { kText, kMarkdown };

struct FeedbackOptions {
  FeedbackForm form = FeedbackForm::kText;
  std::optional<Outcome> outcome;
};

/// The Diagnosis in words, for a model or a person (docs/tools.md section "Feedback"): at most
/// three findings, 200-350 words, deterministic. Names and strings that come from candidates and
/// files are made harmless: no control characters, no line ends, no markup, bounded length.
[[nodiscard]] std::string FeedbackText(const Diagnosis& diagnosis, const Profile& profile,
                                       const FeedbackOptions& options = {});

}  // namespace kernelpro
