// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "kernelpro/finding.h"
#include "kernelpro/profile.h"
#include "kernelpro/tool.h"

namespace kernelpro::diagnose {

/// Takes out of one kernel's findings what contradicts a stronger finding or class (docs/tools.md,
/// "Suppression"), and says why.
[[nodiscard]] std::vector<Suppressed> Suppress(const ToolInput& input,
                                               std::vector<Finding>& findings);

/// Orders by severity x bound x share of the call x confidence; a finding whose cure changes what
/// another one measures stands before it (docs/tools.md, "Order").
void Rank(std::vector<Finding>& findings);

}  // namespace kernelpro::diagnose
