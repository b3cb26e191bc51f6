// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace kernelpro::ptx {

using Adjacency = std::vector<std::vector<std::uint32_t>>;

/// Immediate dominators of the nodes reachable from `root`; 0xffffffff for the root and for nodes
/// that cannot be reached. Lengauer and Tarjan's algorithm with path compression: the plain
/// iterative method is quadratic on ladder-shaped graphs, and candidates' code is foreign input.
[[nodiscard]] std::vector<std::uint32_t> ImmediateDominators(const Adjacency& successors,
                                                             const Adjacency& predecessors,
                                                             std::uint32_t root);

}  // namespace kernelpro::ptx
