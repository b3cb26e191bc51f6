// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "search/driver.h"
#include "store/run_store.h"

namespace kernelpro::search {

/// An assessment and its proposals as the run store keeps them (evaluation and diagnosis as JSON).
[[nodiscard]] store::NodeResult MakeResult(store::NodeId node, const Assessment& assessment,
                                           const Proposals& proposals);

}  // namespace kernelpro::search
