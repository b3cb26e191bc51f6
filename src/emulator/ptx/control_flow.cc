// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/control_flow.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "emulator/ptx/dominators.h"
#include "emulator/ptx/module.h"

namespace kernelpro::ptx {
namespace {

enum class Ending : std::uint8_t { kNone, kBranch, kLeave };

Ending EndingOf(const Instruction& instruction) {
  if (instruction.parts.empty()) {
    return Ending::kNone;
  }
  const std::string& base = instruction.parts.front();
  if (base == "bra" || base == "brx") {
    return Ending::kBranch;
  }
  if (base == "ret" || base == "exit" || base == "trap") {
    return Ending::kLeave;
  }
  return Ending::kNone;
}

bool IsGuarded(const Instruction& instruction) {
  return instruction.guard != Operand::kNoRegister;
}

std::vector<std::uint32_t> TargetsOf(const Instruction& instruction) {
  if (!instruction.branch_targets.empty()) {
    return instruction.branch_targets;
  }
  for (const Operand& operand : instruction.operands) {
    if (operand.kind == Operand::Kind::kLabel) {
      return {operand.target};
    }
  }
  return {};
}

/// Blocks in text order with successors and `leaves`; block_of filled in.
ControlFlow CutIntoBlocks(const Function& function) {
  const auto size = static_cast<std::uint32_t>(function.body.size());
  std::vector<bool> leader(std::size_t{size} + 1, false);
  leader[0] = true;
  for (std::uint32_t i = 0; i < size; ++i) {
    const Ending ending = EndingOf(function.body[i]);
    leader[i + 1] = leader[i + 1] || ending != Ending::kNone;
    if (ending == Ending::kBranch) {
      for (const std::uint32_t target : TargetsOf(function.body[i])) {
        leader[std::min(target, size)] = true;
      }
    }
  }
  ControlFlow flow;
  flow.block_of.resize(size);
  for (std::uint32_t i = 0; i < size; ++i) {
    if (leader[i]) {
      flow.blocks.emplace_back().first = i;
    }
    flow.blocks.back().end = i + 1;
    flow.block_of[i] = static_cast<std::uint32_t>(flow.blocks.size() - 1);
  }
  return flow;
}

void Connect(const Function& function, ControlFlow& flow) {
  const auto size = static_cast<std::uint32_t>(function.body.size());
  // Which block last listed a successor: keeps duplicate targets of a long brx.idx list linear.
  std::vector<std::uint32_t> listed_by(flow.blocks.size(), kNoBlock);
  for (std::uint32_t number = 0; number < flow.blocks.size(); ++number) {
    BasicBlock& block = flow.blocks[number];
    const auto add = [&](std::uint32_t instruction) {
      if (instruction >= size) {
        block.leaves = true;
        return;
      }
      const std::uint32_t to = flow.block_of[instruction];
      if (listed_by[to] != number) {
        listed_by[to] = number;
        block.successors.push_back(to);
      }
    };
    const Instruction& last = function.body[block.end - 1];
    const Ending ending = EndingOf(last);
    if (ending == Ending::kBranch) {
      std::ranges::for_each(TargetsOf(last), add);
    }
    block.leaves = block.leaves || ending == Ending::kLeave;
    if (ending == Ending::kNone || IsGuarded(last)) {
      add(block.end);
    }
  }
}

/// Reverse post-order of what is reachable from block 0. `retreats` collects the edges to a block
/// still on the depth-first path: every cycle has one.
std::vector<std::uint32_t> ReversePostOrder(
    const Adjacency& successors, std::vector<std::pair<std::uint32_t, std::uint32_t>>& retreats) {
  enum : std::uint8_t { kNew, kOpen, kDone };

  std::vector<std::uint8_t> state(successors.size(), kNew);
  std::vector<std::pair<std::uint32_t, std::size_t>> stack;
  std::vector<std::uint32_t> order;
  state[0] = kOpen;
  stack.emplace_back(0, 0);
  while (!stack.empty()) {
    auto& [node, visited] = stack.back();
    if (visited == successors[node].size()) {
      state[node] = kDone;
      order.push_back(node);
      stack.pop_back();
      continue;
    }
    // The fall-through is visited last and so is numbered first: text order where nothing decides.
    const std::uint32_t to = successors[node][visited++];
    if (state[to] == kOpen) {
      retreats.emplace_back(node, to);
    } else if (state[to] == kNew) {
      state[to] = kOpen;
      stack.emplace_back(to, 0);
    }
  }
  std::ranges::reverse(order);
  return order;
}

/// Natural loops on blocks in text order, inner loops found before the loops around them.
class LoopFinder {
 public:
  LoopFinder(const ControlFlow& flow, const std::vector<std::uint32_t>& order)
      : flow_(flow), order_(order) {}

  struct Found {
    std::vector<Loop> loops;           ///< header and latches are text-order blocks
    std::vector<std::uint32_t> inner;  ///< by block: innermost loop
  };

  Found Run(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& back_edges) {
    Adjacency latches(flow_.blocks.size());
    for (const auto& [latch, header] : back_edges) {
      latches[header].push_back(latch);
    }
    found_.inner.assign(flow_.blocks.size(), kNoBlock);
    // A header dominates its loop, so later headers in reverse post-order are never outside.
    for (auto header = order_.rbegin(); header != order_.rend(); ++header) {
      if (!latches[*header].empty()) {
        Collect(*header, latches[*header]);
      }
    }
    return std::move(found_);
  }

 private:
  /// Outermost loop found so far around `block`, with path halving.
  std::uint32_t Outermost(std::uint32_t block) {
    std::uint32_t loop = found_.inner[block];
    while (loop != kNoBlock && root_[loop] != loop) {
      root_[loop] = root_[root_[loop]];
      loop = root_[loop];
    }
    return loop;
  }

  void Collect(std::uint32_t header, const std::vector<std::uint32_t>& latches) {
    const auto self = static_cast<std::uint32_t>(found_.loops.size());
    found_.loops.push_back(Loop{.header = header, .latches = latches});
    root_.push_back(self);
    std::vector<std::uint32_t> work = latches;
    while (!work.empty()) {
      std::uint32_t block = work.back();
      work.pop_back();
      const std::uint32_t outer = Outermost(block);
      if (outer == self || !flow_.blocks[block].reachable) {
        continue;
      }
      if (outer != kNoBlock) {
        found_.loops[outer].parent = self;
        root_[outer] = self;
        block = found_.loops[outer].header;
      } else {
        found_.inner[block] = self;
      }
      if (block != header) {
        const auto& predecessors = flow_.blocks[block].predecessors;
        work.insert(work.end(), predecessors.begin(), predecessors.end());
      }
    }
    if (found_.inner[header] == kNoBlock) {
      found_.inner[header] = self;
    }
  }

  const ControlFlow& flow_;
  const std::vector<std::uint32_t>& order_;
  std::vector<std::uint32_t> root_;
  Found found_;
};

/// Text-order blocks in final order. Children of a loop (blocks and inner loops) are taken by the
/// reverse post-order of their first block: an edge that leaves an inner loop goes to a later block
/// than its source and so than the inner header, which makes this a topological order too.
std::vector<std::uint32_t> ContiguousOrder(const LoopFinder::Found& found,
                                           const std::vector<std::uint32_t>& order) {
  struct Item {
    std::uint32_t index;
    bool is_loop;
  };

  std::vector<std::vector<Item>> children(found.loops.size() + 1);  // last: outside all loops
  const auto outside = static_cast<std::uint32_t>(found.loops.size());
  const auto list_of = [&](std::uint32_t loop) -> std::vector<Item>& {
    return children[loop == kNoBlock ? outside : loop];
  };
  std::vector<bool> listed(found.loops.size(), false);
  for (const std::uint32_t block : order) {
    const std::uint32_t loop = found.inner[block];
    if (loop != kNoBlock && !listed[loop]) {  // its header: lowest in reverse post-order
      listed[loop] = true;
      list_of(found.loops[loop].parent).push_back({loop, true});
    }
    list_of(loop).push_back({block, false});
  }
  std::vector<std::uint32_t> result;
  std::vector<std::pair<std::uint32_t, std::size_t>> stack{{outside, 0}};
  while (!stack.empty()) {
    auto& [loop, next] = stack.back();
    if (next == children[loop].size()) {
      stack.pop_back();
      continue;
    }
    const Item item = children[loop][next++];
    if (item.is_loop) {
      stack.emplace_back(item.index, 0);
    } else {
      result.push_back(item.index);
    }
  }
  return result;
}

void ComputePostDominators(ControlFlow& flow, const Adjacency& successors,
                           const Adjacency& predecessors) {
  const auto exit = static_cast<std::uint32_t>(flow.blocks.size());
  Adjacency forward = successors;
  Adjacency backward = predecessors;
  forward.emplace_back();
  backward.emplace_back();
  for (std::uint32_t i = 0; i < exit; ++i) {
    if (flow.blocks[i].leaves) {
      forward[i].push_back(exit);
      backward[exit].push_back(i);
    }
  }
  const std::vector<std::uint32_t> found = ImmediateDominators(backward, forward, exit);
  for (std::uint32_t i = 0; i < exit; ++i) {
    flow.blocks[i].post_dominator = found[i] == exit ? kNoBlock : found[i];
  }
}

/// Moves every block to its place in `order` and translates all references to blocks and loops.
void Renumber(ControlFlow& flow, LoopFinder::Found& found,
              const std::vector<std::uint32_t>& order) {
  std::vector<std::uint32_t> place(flow.blocks.size(), kNoBlock);
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    place[order[i]] = i;
  }
  const auto move = [&](std::uint32_t& block) {
    block = block == kNoBlock ? kNoBlock : place[block];
  };
  // Outer loops were found last; reversed they come first.
  const auto loops = static_cast<std::uint32_t>(found.loops.size());
  const auto flip = [&](std::uint32_t& loop) {
    loop = loop == kNoBlock ? kNoBlock : loops - 1 - loop;
  };
  std::vector<BasicBlock> moved(flow.blocks.size());
  for (std::uint32_t i = 0; i < flow.blocks.size(); ++i) {
    BasicBlock block = std::move(flow.blocks[i]);
    std::ranges::for_each(block.successors, move);
    std::ranges::for_each(block.predecessors, move);
    move(block.dominator);
    move(block.post_dominator);
    block.loop = found.inner[i];
    flip(block.loop);
    moved[place[i]] = std::move(block);
  }
  flow.blocks = std::move(moved);
  std::ranges::for_each(flow.block_of, move);
  for (auto& [latch, header] : flow.back_edges) {
    move(latch);
    move(header);
  }
  std::ranges::reverse(found.loops);
  flow.loops = std::move(found.loops);
  for (Loop& loop : flow.loops) {
    flip(loop.parent);
    move(loop.header);
    std::ranges::for_each(loop.latches, move);
    loop.end = loop.header + 1;
    loop.depth = loop.parent == kNoBlock ? 1 : flow.loops[loop.parent].depth + 1;
  }
}

/// A loop ends after its last block, which may belong to a loop inside it.
void MeasureLoops(ControlFlow& flow) {
  for (std::uint32_t i = 0; i < flow.blocks.size(); ++i) {
    if (flow.blocks[i].loop != kNoBlock) {
      Loop& loop = flow.loops[flow.blocks[i].loop];
      loop.end = std::max(loop.end, i + 1);
    }
  }
  for (auto loop = flow.loops.rbegin(); loop != flow.loops.rend(); ++loop) {
    if (loop->parent != kNoBlock) {
      Loop& parent = flow.loops[loop->parent];
      parent.end = std::max(parent.end, loop->end);
    }
  }
}

}  // namespace

ControlFlow BuildControlFlow(const Function& function) {
  if (function.body.empty()) {
    return {};
  }
  ControlFlow flow = CutIntoBlocks(function);
  Connect(function, flow);
  Adjacency successors(flow.blocks.size());
  Adjacency predecessors(flow.blocks.size());
  for (std::uint32_t i = 0; i < flow.blocks.size(); ++i) {
    successors[i] = flow.blocks[i].successors;
    for (const std::uint32_t to : successors[i]) {
      predecessors[to].push_back(i);
      flow.blocks[to].predecessors.push_back(i);
    }
  }
  std::vector<std::pair<std::uint32_t, std::uint32_t>> retreats;
  std::vector<std::uint32_t> order = ReversePostOrder(successors, retreats);
  const std::vector<std::uint32_t> dominators = ImmediateDominators(successors, predecessors, 0);
  for (const std::uint32_t block : order) {
    flow.blocks[block].reachable = true;
    flow.blocks[block].dominator = dominators[block];
  }
  ComputePostDominators(flow, successors, predecessors);
  const DominatorTree tree(dominators, order);
  for (const auto& [from, to] : retreats) {
    if (tree.Dominates(to, from)) {
      flow.back_edges.emplace_back(from, to);
    } else {
      flow.irreducible = true;
    }
  }
  LoopFinder::Found found = LoopFinder(flow, order).Run(flow.back_edges);
  order = ContiguousOrder(found, order);
  for (std::uint32_t i = 0; i < flow.blocks.size(); ++i) {
    if (!flow.blocks[i].reachable) {
      order.push_back(i);
    }
  }
  Renumber(flow, found, order);
  MeasureLoops(flow);
  return flow;
}

}  // namespace kernelpro::ptx
