// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "propose/proposer.h"
#include "store/run_store.h"

namespace kernelpro {

/// Proposes what was made of a node in a recorded run, child by child in the recorded order,
/// whoever proposed it then: for runs of outside agents and of the playbook. kInvalidArgument says
/// where the replay diverges: a parent that the recorded run does not have, or has with another
/// source.
[[nodiscard]] std::unique_ptr<Proposer> MakeReplay(std::vector<store::NodeRecord> recorded);

}  // namespace kernelpro
