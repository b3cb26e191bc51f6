// SPDX-License-Identifier: Apache-2.0
#include "search/policy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace kernelpro::search {
namespace {

/// The untried child with the highest prior, weighted by what such actions have brought so far; 0
/// when there is none and one is to be asked for. The random term only breaks ties.
std::int64_t BestUntried(const Tree& tree, NodeId id, Rng& rng) {
  const ActionRecord record(tree);
  std::int64_t best = 0;
  double best_score = -1;
  for (const Untried& untried : tree.At(id).untried) {
    const double score = untried.prior * record.Weight(untried.action) + 1e-6 * rng.Uniform();
    if (score > best_score) {
      best_score = score;
      best = untried.proposal;
    }
  }
  return best;
}

/// Correct nodes that can still have children, fastest first.
std::vector<NodeId> OpenByTime(const Tree& tree) {
  std::vector<NodeId> open;
  for (const auto& [id, node] : tree.nodes()) {
    if (node.correct && node.CanGrow()) {
      open.push_back(id);
    }
  }
  std::stable_sort(open.begin(), open.end(),
                   [&tree](NodeId a, NodeId b) { return tree.At(a).time_us < tree.At(b).time_us; });
  return open;
}

/// Upper confidence bounds for trees (Kocsis & Szepesvari 2006) with progressive widening (Coulom
/// 2007): a node may have ceil(c * visits^alpha) children, more when it was a success.
class Mcts final : public Policy {
 public:
  [[nodiscard]] std::string_view name() const override { return "mcts"; }

  [[nodiscard]] std::optional<Choice> Choose(const Tree& tree, Rng& rng) const override {
    NodeId id = store::kRoot;
    while (!tree.Closed(id)) {
      const TreeNode& node = tree.At(id);
      const std::optional<NodeId> below = BestOpenChild(tree, node);
      if (node.CanGrow() && (!below || node.children.size() < Width(tree, node))) {
        return Choice{id, BestUntried(tree, id, rng)};
      }
      id = *below;  // Not closed and unable to grow: some child is open.
    }
    return std::nullopt;
  }

 private:
  static constexpr double kExploration = 0.5;
  static constexpr double kWidth = 1.0;
  static constexpr double kWidthOfSuccess = 1.6;
  static constexpr double kWidthExponent = 0.6;

  static std::size_t Width(const Tree& tree, const TreeNode& node) {
    const bool root = node.parent == 0;
    const bool success =
        root || node.log_speedup > tree.At(node.parent).log_speedup + kWinningLogSpeedup;
    const double visits = tree.Statistics(node.id).visits;
    if (node.open) {
      // Here a child costs a question to a model, and the node never runs out of children. The
      // seed, the slowest of all, gets its 2nd, 3rd, 4th child when there are 4, 9, 16 nodes.
      return static_cast<std::size_t>((success && !root ? kWidthOfSuccess : kWidth) *
                                      std::sqrt(visits));
    }
    const double factor = success ? kWidthOfSuccess : kWidth;
    return static_cast<std::size_t>(std::ceil(factor * std::pow(visits, kWidthExponent)));
  }

  /// Half the mean, half the best of a subtree: the mean alone drowns one great kernel among the
  /// failures that led to it, the best alone never leaves a subtree that has peaked.
  static std::optional<NodeId> BestOpenChild(const Tree& tree, const TreeNode& node) {
    const double log_visits = std::log(std::max(1U, tree.Statistics(node.id).visits));
    std::optional<NodeId> best;
    double best_bound = 0;
    for (const NodeId child : node.children) {
      if (tree.Closed(child)) {
        continue;
      }
      const SubtreeStatistics s = tree.Statistics(child);
      const double visits = std::max(1U, s.visits);
      const double bound = 0.5 * (s.reward_sum / visits + s.reward_best) +
                           kExploration * std::sqrt(log_visits / visits);
      if (!best || bound > best_bound) {
        best = child;
        best_bound = bound;
      }
    }
    return best;
  }
};

/// Always goes on from the fastest kernel that has something left to try.
class Greedy final : public Policy {
 public:
  [[nodiscard]] std::string_view name() const override { return "greedy"; }

  [[nodiscard]] std::optional<Choice> Choose(const Tree& tree, Rng& rng) const override {
    const std::vector<NodeId> open = OpenByTime(tree);
    if (open.empty()) {
      return std::nullopt;
    }
    return Choice{open[0], BestUntried(tree, open[0], rng)};
  }
};

/// Shares its tries among the few fastest open kernels: the one with the fewest children is next.
class Beam final : public Policy {
 public:
  [[nodiscard]] std::string_view name() const override { return "beam"; }

  [[nodiscard]] std::optional<Choice> Choose(const Tree& tree, Rng& rng) const override {
    std::vector<NodeId> open = OpenByTime(tree);
    if (open.empty()) {
      return std::nullopt;
    }
    open.resize(std::min(open.size(), kWidth));
    const NodeId next = *std::min_element(open.begin(), open.end(), [&tree](NodeId a, NodeId b) {
      return tree.At(a).children.size() < tree.At(b).children.size();
    });
    return Choice{next, BestUntried(tree, next, rng)};
  }

 private:
  static constexpr std::size_t kWidth = 4;
};

/// The yardstick for the others: any open kernel, any of its untried children.
class Random final : public Policy {
 public:
  [[nodiscard]] std::string_view name() const override { return "random"; }

  [[nodiscard]] std::optional<Choice> Choose(const Tree& tree, Rng& rng) const override {
    const std::vector<NodeId> open = OpenByTime(tree);
    if (open.empty()) {
      return std::nullopt;
    }
    const NodeId id = open[rng.Below(open.size())];
    const std::vector<Untried>& untried = tree.At(id).untried;
    return Choice{id, untried.empty() ? 0 : untried[rng.Below(untried.size())].proposal};
  }
};

}  // namespace

std::vector<std::string_view> PolicyNames() {
  return {"mcts", "greedy", "beam", "random"};
}

Result<std::unique_ptr<Policy>> MakePolicy(std::string_view name) {
  std::unique_ptr<Policy> policy;
  if (name == "mcts") {
    policy = std::make_unique<Mcts>();
  } else if (name == "greedy") {
    policy = std::make_unique<Greedy>();
  } else if (name == "beam") {
    policy = std::make_unique<Beam>();
  } else if (name == "random") {
    policy = std::make_unique<Random>();
  } else {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("there is no search '{}'; choose from {}",
                                                         name, fmt::join(PolicyNames(), ", ")));
  }
  return policy;
}

}  // namespace kernelpro::search
