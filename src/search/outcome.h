// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "search/assessor.h"
#include "store/run_store.h"

namespace kernelpro::search {

/// When a kernel answers a finding of its parent, its feedback says what came of that: nobody is to
/// trust a bound that was not reached.
void AddOutcome(const store::NodeRecord& node, const store::NodeRecord* parent,
                Assessment* assessment);

}  // namespace kernelpro::search
