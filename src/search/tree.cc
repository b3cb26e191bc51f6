// SPDX-License-Identifier: Apache-2.0
#include "search/tree.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/check.h"

namespace kernelpro::search {
namespace {

std::string_view Kind(std::string_view action) {
  return action.substr(0, action.find('('));
}

}  // namespace

void Tree::Add(TreeNode node) {
  if (node.parent != 0) {
    const auto parent = nodes_.find(node.parent);
    KP_CHECK(parent != nodes_.end()) << "node " << node.id << " has no parent in the tree";
    parent->second.children.push_back(node.id);
  }
  const NodeId id = node.id;
  nodes_.emplace(id, std::move(node));
}

void Tree::SetUntried(NodeId node, std::vector<Untried> untried) {
  nodes_.at(node).untried = std::move(untried);
}

void Tree::RemoveUntried(NodeId node, std::int64_t proposal) {
  std::erase_if(nodes_.at(node).untried,
                [proposal](const Untried& u) { return u.proposal == proposal; });
}

void Tree::SetOpen(NodeId node, bool open) {
  nodes_.at(node).open = open;
}

std::optional<NodeId> Tree::Best() const {
  std::optional<NodeId> best;
  for (const auto& [id, node] : nodes_) {
    if (node.correct && (!best || node.time_us < nodes_.at(*best).time_us)) {
      best = id;
    }
  }
  return best;
}

bool Tree::Closed(NodeId id) const {
  const TreeNode& node = nodes_.at(id);
  return !node.CanGrow() && std::all_of(node.children.begin(), node.children.end(),
                                        [this](NodeId child) { return Closed(child); });
}

double Tree::Reward(NodeId id) const {
  const TreeNode& node = nodes_.at(id);
  if (!node.correct) {
    return 0;
  }
  double low = node.log_speedup;
  double high = node.log_speedup;
  for (const auto& [other_id, other] : nodes_) {
    if (other.correct) {
      low = std::min(low, other.log_speedup);
      high = std::max(high, other.log_speedup);
    }
  }
  return high > low ? (node.log_speedup - low) / (high - low) : 0.5;
}

SubtreeStatistics Tree::Statistics(NodeId id) const {
  const TreeNode& node = nodes_.at(id);
  SubtreeStatistics total;
  if (node.counts) {
    total.visits = 1;
    total.reward_sum = Reward(id);
    total.reward_best = total.reward_sum;
  }
  for (const NodeId child : node.children) {
    const SubtreeStatistics below = Statistics(child);
    total.visits += below.visits;
    total.reward_sum += below.reward_sum;
    total.reward_best = std::max(total.reward_best, below.reward_best);
  }
  return total;
}

ActionRecord::ActionRecord(const Tree& tree) {
  for (const auto& [id, node] : tree.nodes()) {
    if (node.parent == 0 || !node.counts) {
      continue;
    }
    Count& count = kinds_[std::string(Kind(node.action))];
    ++count.tried;
    if (node.correct && node.log_speedup > tree.At(node.parent).log_speedup + kWinningLogSpeedup) {
      ++count.won;
    }
  }
}

double ActionRecord::Weight(std::string_view action) const {
  const auto found = kinds_.find(Kind(action));
  const Count count = found == kinds_.end() ? Count{} : found->second;
  return 2.0 * (count.won + 1.0) / (count.tried + 2.0);
}

}  // namespace kernelpro::search
