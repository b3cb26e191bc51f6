// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "sass/control_flow.h"

namespace kernelpro::sass {

/// Sets `reachable` and `dominator` of every block, and the walk times behind Dominates(). Block 0
/// is the entry. Lengauer and Tarjan's algorithm with path compression: n log n, no recursion.
/// Returns the reachable blocks in depth-first preorder.
std::vector<std::uint32_t> FindDominators(ControlFlow* flow);

}  // namespace kernelpro::sass
