// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "diagnose/diagnose.h"
#include "kernelpro/finding.h"
#include "kernelpro/profile.h"
#include "kernelpro/tool.h"

namespace kernelpro {

/// One figure that a finding rested on, before and after.
struct FigureChange {
  std::string name;
  double before = 0, after = 0;
  std::string unit;
};

/// What became of one kernel.
struct KernelChange {
  std::string kernel;
  double before_us = 0, after_us = 0;  ///< 0: unknown
  bool comparable = true;              ///< both times were obtained in the same way
  std::vector<std::string> gone;       ///< ids of findings that are no longer there
  std::vector<std::string> stayed, appeared;
  std::vector<FigureChange> figures;  ///< metrics that changed by more than a tenth, largest first
  std::optional<Outcome> outcome;     ///< of the primary finding before
};

struct Comparison {
  Diagnosis before, after;
  std::vector<KernelChange> kernels;  ///< that both profiles have
  std::vector<std::string> only_before, only_after;
};

/// Kernels are joined by name; where each profile has a single kernel, those two. Pure.
[[nodiscard]] Comparison Compare(const Profile& before, const Profile& after,
                                 const Hardware& hardware, const std::vector<const Tool*>& tools);

/// For a person: times, what is gone, what stayed, what is new, the figures behind it.
[[nodiscard]] std::string ComparisonText(const Comparison& comparison);

}  // namespace kernelpro
