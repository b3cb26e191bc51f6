// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "kernelpro/finding.h"
#include "kernelpro/profile.h"
#include "kernelpro/tool.h"

namespace kernelpro::diagnose {

/// Utilisations of elapsed time from the percentages, or from raw counts and the hardware's rates;
/// DRAM's at last from the task's compulsory bytes.
[[nodiscard]] Utilisation UtilisationOf(const KernelProfile& kernel, const Profile& profile,
                                        const Hardware& hardware);

/// Stage 1: the classes of docs/tools.md ("Classes") with membership and evidence, largest first.
/// Classes below `kRouted` are not returned; when none reaches it, MIXED is.
[[nodiscard]] std::vector<ClassMembership> Classify(const KernelProfile& kernel,
                                                    const Profile& profile,
                                                    const Hardware& hardware,
                                                    const Utilisation& use);

/// A class with at least this membership calls its tools.
inline constexpr double kRouted = 0.35;

}  // namespace kernelpro::diagnose
