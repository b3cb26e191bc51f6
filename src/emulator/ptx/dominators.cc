// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/dominators.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace kernelpro::ptx {
namespace {

constexpr std::uint32_t kNone = 0xffffffffU;

/// Works on depth-first numbers throughout; `vertex_` and `number_` translate.
class LengauerTarjan {
 public:
  LengauerTarjan(const Adjacency& successors, const Adjacency& predecessors)
      : successors_(successors), predecessors_(predecessors), number_(successors.size(), kNone) {}

  std::vector<std::uint32_t> Run(std::uint32_t root) {
    Number(root);
    const auto count = static_cast<std::uint32_t>(vertex_.size());
    ancestor_.assign(count, kNone);
    Adjacency bucket(count);
    std::vector<std::uint32_t> dominator(count, kNone);
    for (std::uint32_t i = count; i-- > 1;) {
      for (const std::uint32_t node : predecessors_[vertex_[i]]) {
        if (number_[node] != kNone) {
          semi_[i] = std::min(semi_[i], semi_[Evaluate(number_[node])]);
        }
      }
      bucket[semi_[i]].push_back(i);
      ancestor_[i] = parent_[i];
      for (const std::uint32_t v : std::exchange(bucket[parent_[i]], {})) {
        const std::uint32_t u = Evaluate(v);
        dominator[v] = semi_[u] < semi_[v] ? u : parent_[i];
      }
    }
    std::vector<std::uint32_t> result(successors_.size(), kNone);
    for (std::uint32_t i = 1; i < count; ++i) {
      if (dominator[i] != semi_[i]) {
        dominator[i] = dominator[dominator[i]];
      }
      result[vertex_[i]] = vertex_[dominator[i]];
    }
    return result;
  }

 private:
  void Visit(std::uint32_t node, std::uint32_t parent) {
    number_[node] = static_cast<std::uint32_t>(vertex_.size());
    semi_.push_back(number_[node]);
    label_.push_back(number_[node]);
    parent_.push_back(parent);
    vertex_.push_back(node);
  }

  void Number(std::uint32_t root) {
    std::vector<std::pair<std::uint32_t, std::size_t>> stack;
    Visit(root, kNone);
    stack.emplace_back(root, 0);
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      if (next == successors_[node].size()) {
        stack.pop_back();
        continue;
      }
      const std::uint32_t to = successors_[node][next++];
      if (number_[to] == kNone) {
        Visit(to, number_[node]);
        stack.emplace_back(to, 0);
      }
    }
  }

  std::uint32_t Evaluate(std::uint32_t v) {
    if (ancestor_[v] == kNone) {
      return v;
    }
    path_.clear();
    for (std::uint32_t u = v; ancestor_[ancestor_[u]] != kNone; u = ancestor_[u]) {
      path_.push_back(u);
    }
    while (!path_.empty()) {
      const std::uint32_t u = path_.back();
      path_.pop_back();
      const std::uint32_t above = ancestor_[u];
      if (semi_[label_[above]] < semi_[label_[u]]) {
        label_[u] = label_[above];
      }
      ancestor_[u] = ancestor_[above];
    }
    return label_[v];
  }

  const Adjacency& successors_;
  const Adjacency& predecessors_;
  std::vector<std::uint32_t> number_;
  std::vector<std::uint32_t> vertex_;
  std::vector<std::uint32_t> parent_;
  std::vector<std::uint32_t> semi_;
  std::vector<std::uint32_t> label_;
  std::vector<std::uint32_t> ancestor_;
  std::vector<std::uint32_t> path_;
};

}  // namespace

std::vector<std::uint32_t> ImmediateDominators(const Adjacency& successors,
                                               const Adjacency& predecessors, std::uint32_t root) {
  return LengauerTarjan(successors, predecessors).Run(root);
}

DominatorTree::DominatorTree(const std::vector<std::uint32_t>& dominators,
                             const std::vector<std::uint32_t>& order)
    : first_(dominators.size(), 0), size_(dominators.size(), 0) {
  for (auto node = order.rbegin(); node != order.rend(); ++node) {
    size_[*node] += 1;
    if (dominators[*node] != kNone) {
      size_[dominators[*node]] += size_[*node];
    }
  }
  // A child's interval lies inside its parent's; `used` is how much of the parent is given away.
  std::vector<std::uint32_t> used(dominators.size(), 1);
  for (const std::uint32_t node : order) {
    const std::uint32_t parent = dominators[node];
    if (parent != kNone) {
      first_[node] = first_[parent] + used[parent];
      used[parent] += size_[node];
    }
  }
}

bool DominatorTree::Dominates(std::uint32_t a, std::uint32_t b) const {
  return first_[b] >= first_[a] && first_[b] - first_[a] < size_[a];
}

}  // namespace kernelpro::ptx
