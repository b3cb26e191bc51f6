// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "search/policy.h"
#include "store/run_store.h"

namespace kernelpro::search {

/// Makes the nodes of a recorded run in its order, then has nothing left. For a driver with
/// SearchOptions::repairs = 0: a driver that may repair does so before it asks a policy.
[[nodiscard]] std::unique_ptr<Policy> MakeRecordedOrder(std::vector<store::NodeRecord> recorded);

/// Where two runs differ: "node 4: was ok, is race". Kernels, parents, actions and verdicts are
/// compared; times as well when `same_device` (the emulator's are exact, so any difference counts).
/// Empty: the same tree.
[[nodiscard]] std::vector<std::string> CompareTrees(const std::vector<store::NodeRecord>& recorded,
                                                    const std::vector<store::NodeRecord>& replayed,
                                                    bool same_device);

}  // namespace kernelpro::search
