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

/// Answers "does a dominate b" in constant time, from each node's interval in the dominator tree.
class DominatorTree {
 public:
  /// `order` is a reverse post-order of the reachable nodes: dominators before dominated.
  DominatorTree(const std::vector<std::uint32_t>& dominators,
                const std::vector<std::uint32_t>& order);

  /// Both must be in `order`. A node dominates itself.
  [[nodiscard]] bool Dominates(std::uint32_t a, std::uint32_t b) const;

 private:
  std::vector<std::uint32_t> first_;
  std::vector<std::uint32_t> size_;
};

}  // namespace kernelpro::ptx
