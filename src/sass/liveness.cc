// SPDX-License-Identifier: Apache-2.0
#include "sass/liveness.h"

#include <cstddef>

namespace kernelpro::sass {
namespace {

constexpr std::size_t kMostBlocks = 50'000;
constexpr int kMostRounds = 100;

struct Effect {
  SlotSet reads;   ///< before any write in the block
  SlotSet writes;  ///< surely
};

Effect EffectOf(const ControlFlow& flow, const Block& block) {
  Effect effect;
  for (std::uint32_t i = block.first; i < block.end; ++i) {
    const Access& access = flow.access[i];
    for (const Slot slot : access.reads) {
      if (!effect.writes[slot]) {
        effect.reads.set(slot);
      }
    }
    for (const Slot slot : access.writes) {
      if (!access.guarded) {
        effect.writes.set(slot);
      }
    }
  }
  return effect;
}

}  // namespace

std::vector<SlotSet> LiveAtEnd(const ControlFlow& flow) {
  const std::size_t n = flow.blocks.size();
  if (n > kMostBlocks) {
    return std::vector<SlotSet>(n, SlotSet().set());
  }
  std::vector<Effect> effects;
  effects.reserve(n);
  for (const Block& block : flow.blocks) {
    effects.push_back(EffectOf(flow, block));
  }
  std::vector<SlotSet> at_start(n), at_end(n);
  for (int round = 0; round < kMostRounds; ++round) {
    bool changed = false;
    for (std::size_t b = n; b-- > 0;) {
      SlotSet end;
      for (const std::uint32_t next : flow.blocks[b].next) {
        end |= at_start[next];
      }
      const SlotSet start = effects[b].reads | (end & ~effects[b].writes);
      changed = changed || start != at_start[b] || end != at_end[b];
      at_start[b] = start;
      at_end[b] = end;
    }
    if (!changed) {
      return at_end;
    }
  }
  return std::vector<SlotSet>(n, SlotSet().set());
}

}  // namespace kernelpro::sass
