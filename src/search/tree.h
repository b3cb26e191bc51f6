// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/run_store.h"

namespace kernelpro::search {

using store::NodeId;

/// A child must be this much faster than its parent (ln of the ratio) to count as a win.
inline constexpr double kWinningLogSpeedup = 0.02;

/// A child that could still be made.
struct Untried {
  std::int64_t proposal = 0;
  std::string action;
  double prior = 0;
};

struct TreeNode {
  NodeId id = 0;
  NodeId parent = 0;
  std::string action;
  bool correct = false;  ///< verdict ok
  bool counts = true;    ///< false for infrastructure_error: it says nothing about the kernel
  double time_us = 0;
  double log_speedup = 0;        ///< ln(time of the root / time); 0 unless correct
  std::vector<NodeId> children;  ///< in order of creation
  std::vector<Untried> untried;  ///< most promising first
  bool open = false;             ///< more children may be asked for

  [[nodiscard]] bool CanGrow() const { return open || !untried.empty(); }
};

/// What became of the subtree below (and with) a node.
struct SubtreeStatistics {
  std::uint32_t visits = 0;  ///< nodes that count
  double reward_sum = 0;     ///< of normalised rewards, 0..1
  double reward_best = 0;
};

/// The finished nodes of a run, in memory. Small (hundreds of nodes), so everything that can be
/// derived is derived when asked for and there is no bookkeeping to go wrong.
class Tree {
 public:
  void Add(TreeNode node);
  void SetUntried(NodeId node, std::vector<Untried> untried);
  void RemoveUntried(NodeId node, std::int64_t proposal);
  void SetOpen(NodeId node, bool open);

  [[nodiscard]] bool empty() const { return nodes_.empty(); }

  [[nodiscard]] const TreeNode& At(NodeId id) const { return nodes_.at(id); }

  [[nodiscard]] const std::map<NodeId, TreeNode>& nodes() const { return nodes_; }

  /// The fastest correct node; the root when nothing is faster. Nothing when the tree is empty.
  [[nodiscard]] std::optional<NodeId> Best() const;
  /// No child can be made of it or of anything below it. Being slow never closes a node.
  [[nodiscard]] bool Closed(NodeId id) const;
  /// 0 for a wrong node; else its log speedup scaled between the worst and the best correct node.
  [[nodiscard]] double Reward(NodeId id) const;
  [[nodiscard]] SubtreeStatistics Statistics(NodeId id) const;

 private:
  std::map<NodeId, TreeNode> nodes_;
};

/// What the run has learnt about kinds of actions: how often one was tried, and made its parent
/// faster. The kind is the action without its parameters: "pad_shared" of "pad_shared(tile,+1)".
class ActionRecord {
 public:
  explicit ActionRecord(const Tree& tree);
  /// Factor for a prior, 0..2: Laplace's rule of succession, 1 when nothing is known.
  [[nodiscard]] double Weight(std::string_view action) const;

 private:
  struct Count {
    std::uint32_t tried = 0, won = 0;
  };

  std::map<std::string, Count, std::less<>> kinds_;
};

}  // namespace kernelpro::search
