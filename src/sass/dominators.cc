// SPDX-License-Identifier: Apache-2.0
#include "sass/dominators.h"

#include <algorithm>
#include <utility>

namespace kernelpro::sass {
namespace {

/// Works on depth-first numbers, not on block numbers.
class LengauerTarjan {
 public:
  explicit LengauerTarjan(ControlFlow* flow) : flow_(*flow) {}

  std::vector<std::uint32_t> Run() {
    Number();
    const std::size_t n = order_.size();
    semi_.resize(n);
    best_.resize(n);
    ancestor_.assign(n, kNone);
    std::vector<std::uint32_t> dominator(n, kNone);
    std::vector<std::vector<std::uint32_t>> bucket(n);
    for (std::uint32_t i = 0; i < n; ++i) {
      semi_[i] = best_[i] = i;
    }
    for (std::uint32_t w = static_cast<std::uint32_t>(n); w-- > 1;) {
      for (const std::uint32_t block : flow_.blocks[order_[w]].previous) {
        if (const std::uint32_t v = number_[block]; v != kNone) {
          semi_[w] = std::min(semi_[w], semi_[Best(v)]);
        }
      }
      bucket[semi_[w]].push_back(w);
      ancestor_[w] = parent_[w];
      for (const std::uint32_t v : std::exchange(bucket[parent_[w]], {})) {
        const std::uint32_t u = Best(v);
        dominator[v] = semi_[u] < semi_[v] ? u : parent_[w];
      }
    }
    for (std::uint32_t w = 1; w < n; ++w) {
      if (dominator[w] != semi_[w]) {
        dominator[w] = dominator[dominator[w]];
      }
      flow_.blocks[order_[w]].dominator = order_[dominator[w]];
    }
    return order_;
  }

 private:
  void Number() {
    number_.assign(flow_.blocks.size(), kNone);
    std::vector<std::pair<std::uint32_t, std::uint32_t>> stack = {{0, kNone}};  // block, parent
    while (!stack.empty()) {
      const auto [block, parent] = stack.back();
      stack.pop_back();
      if (number_[block] != kNone) {
        continue;
      }
      const auto number = static_cast<std::uint32_t>(order_.size());
      number_[block] = number;
      order_.push_back(block);
      parent_.push_back(parent);
      flow_.blocks[block].reachable = true;
      const std::vector<std::uint32_t>& next = flow_.blocks[block].next;
      for (auto n = next.rbegin(); n != next.rend(); ++n) {
        if (number_[*n] == kNone) {
          stack.emplace_back(*n, number);
        }
      }
    }
  }

  /// The vertex of least semidominator on the way up from v, the root of its tree left out.
  std::uint32_t Best(std::uint32_t v) {
    if (ancestor_[v] == kNone) {
      return v;
    }
    std::vector<std::uint32_t>& path = path_;
    path.clear();
    for (std::uint32_t u = v; ancestor_[ancestor_[u]] != kNone; u = ancestor_[u]) {
      path.push_back(u);
    }
    for (auto u = path.rbegin(); u != path.rend(); ++u) {
      const std::uint32_t above = ancestor_[*u];
      if (semi_[best_[above]] < semi_[best_[*u]]) {
        best_[*u] = best_[above];
      }
      ancestor_[*u] = ancestor_[above];
    }
    return best_[v];
  }

  ControlFlow& flow_;
  std::vector<std::uint32_t> order_, number_, parent_, semi_, best_, ancestor_, path_;
};

/// In and out times of a walk of the dominator tree: a dominates b when b's lie within a's.
void TimeTree(ControlFlow* flow) {
  const std::size_t n = flow->blocks.size();
  flow->dominator_in.assign(n, 0);
  flow->dominator_out.assign(n, 0);
  std::vector<std::vector<std::uint32_t>> children(n);
  for (std::uint32_t b = 0; b < n; ++b) {
    if (flow->blocks[b].dominator != kNone) {
      children[flow->blocks[b].dominator].push_back(b);
    }
  }
  std::uint32_t time = 0;
  std::vector<std::pair<std::uint32_t, bool>> stack = {{0, false}};
  while (!stack.empty()) {
    const auto [block, done] = stack.back();
    stack.pop_back();
    ++time;
    if (done) {
      flow->dominator_out[block] = time;
      continue;
    }
    flow->dominator_in[block] = time;
    stack.emplace_back(block, true);
    for (const std::uint32_t child : children[block]) {
      stack.emplace_back(child, false);
    }
  }
}

}  // namespace

std::vector<std::uint32_t> FindDominators(ControlFlow* flow) {
  if (flow->blocks.empty()) {
    return {};
  }
  std::vector<std::uint32_t> order = LengauerTarjan(flow).Run();
  TimeTree(flow);
  return order;
}

}  // namespace kernelpro::sass
