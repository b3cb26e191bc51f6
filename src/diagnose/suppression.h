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
/// another one measures stands before it (docs/tools.md, "Order"). When the host or launching is
/// the limit, findings about kernels stand behind those about the run.
void Rank(const std::vector<ClassMembership>& classes, std::vector<Finding>& findings);

}  // namespace kernelpro::diagnose
