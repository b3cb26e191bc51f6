// SPDX-License-Identifier: Apache-2.0
#include "sass/slicing.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "sass/opcode.h"

namespace kernelpro::sass {
namespace {

constexpr std::uint32_t kMostHops = 2;       ///< computed values between producer and stall
constexpr std::size_t kMostSteps = 200'000;  ///< blocks looked at for one stalled instruction
constexpr std::size_t kLargestFunction = 300'000;

enum class Kind { kNone, kLong, kShort, kFixed, kMatrix, kBarrier, kMembar, kSleep };

Kind KindOf(std::string_view reason) {
  const auto has = [reason](std::string_view word) { return reason.find(word) != reason.npos; };
  return has("long_scoreboard") || has("long_sb")     ? Kind::kLong
         : has("short_scoreboard") || has("short_sb") ? Kind::kShort
         : has("gmma")                                ? Kind::kMatrix
         : has("membar")                              ? Kind::kMembar
         : has("barrier")                             ? Kind::kBarrier
         : has("sleeping")                            ? Kind::kSleep
         : has("wait")                                ? Kind::kFixed
                                                      : Kind::kNone;
}

bool IsLong(const Opcode& op) {
  return op.Is("LDG", "LDL", "LD", "TEX", "TLD", "TLD4", "TXD", "TXQ", "SULD", "ATOMG", "ATOM",
               "LDGMC", "SUATOM", "SYNCS", "LDTM");
}

bool IsShort(const Opcode& op) {
  return op.Is("LDS", "LDSM", "MUFU", "SHFL", "ATOMS", "S2R", "S2UR", "LDC", "MOVM", "F2F", "F2I",
               "I2F", "FRND", "POPC") ||
         op.Is("FLO", "BREV", "MATCH", "R2UR", "REDUX", "B2R", "VOTEU", "SYNCS", "LDCU", "ULDC",
               "CREDUX");
}

bool Fits(const Opcode& op, Kind kind) {
  switch (kind) {
    case Kind::kLong:
      return IsLong(op);
    case Kind::kShort:
      return IsShort(op);
    case Kind::kFixed:
      return !IsLong(op) && !IsShort(op) && !op.Is("NOP");
    case Kind::kMatrix:
      return op.Is("HGMMA", "QGMMA", "IGMMA", "BGMMA");
    case Kind::kBarrier:
      return op.Is("BAR", "UCGABAR_WAIT");
    case Kind::kMembar:
      return op.Is("MEMBAR", "FENCE", "ERRBAR", "CGAERRBAR");
    case Kind::kSleep:
      return op.Is("NANOSLEEP");
    case Kind::kNone:
      return false;
  }
  return false;
}

struct Found {
  std::uint32_t instruction = 0;
  std::uint32_t distance = 0;
};

/// A search backward: nearest first, values computed on the way after all direct ones.
class Search {
 public:
  Search(const Function& function, const ControlFlow& flow, Kind kind)
      : list_(function.instructions), flow_(flow), kind_(kind) {}

  std::optional<Found> ByOperands(std::uint32_t stalled) {
    for (const Slot slot : flow_.access[stalled].reads) {
      From(stalled, slot, 0, 0);
    }
    // A write waits as well, for a load into the same register.
    for (const Slot slot : flow_.access[stalled].writes) {
      From(stalled, slot, 0, 0);
    }
    return Run();
  }

  std::optional<Found> Last(std::uint32_t stalled,
                            const std::function<bool(const Opcode&)>& match) {
    match_ = match;
    From(stalled, kAny, 0, 0);
    return Run();
  }

 private:
  static constexpr Slot kAny = kSlots;  ///< not a register: the last matching instruction

  struct Step {
    std::uint32_t hops, distance;
    std::uint32_t end;  ///< looks at the instructions before this one, in its block
    std::uint32_t block;
    Slot slot;

    auto operator<=>(const Step&) const = default;
  };

  /// Continues in front of `instruction`, which is `distance` away from the stalled one.
  void From(std::uint32_t instruction, Slot slot, std::uint32_t hops, std::uint32_t distance) {
    queue_.push({hops, distance, instruction, flow_.block_of[instruction], slot});
  }

  std::optional<Found> Run() {
    std::size_t steps = 0;
    std::optional<std::pair<std::uint32_t, Found>> best;  // hops
    while (!queue_.empty() && ++steps < kMostSteps) {
      const Step step = queue_.top();
      queue_.pop();
      // A step's producers are farther than the step itself, so a better one may still come.
      if (best &&
          std::pair(step.hops, step.distance) >= std::pair(best->first, best->second.distance)) {
        break;
      }
      // Keyed by where it looks from; the end of a block and the start of the next differ by block.
      if (!seen_.insert({step.block, step.end, step.slot}).second) {
        continue;
      }
      if (const auto found = InBlock(step)) {
        const auto key = std::pair(step.hops, found->distance);
        if (!best || key < std::pair(best->first, best->second.distance)) {
          best = {step.hops, *found};
        }
      }
    }
    return best ? std::optional(best->second) : std::nullopt;
  }

  /// The first write of the slot going back, if it is what is sought; otherwise new steps.
  std::optional<Found> InBlock(const Step& step) {
    const Block& block = flow_.blocks[step.block];
    std::uint32_t distance = step.distance;
    for (std::uint32_t i = step.end; i-- > block.first;) {
      ++distance;
      const Opcode op(list_[i].opcode);
      if (step.slot == kAny) {
        if (match_(op)) {
          return Found{i, distance};
        }
        continue;
      }
      const Access& access = flow_.access[i];
      if (std::ranges::find(access.writes, step.slot) == access.writes.end()) {
        continue;
      }
      if (Fits(op, kind_)) {
        return Found{i, distance};
      }
      if (step.hops < kMostHops && kind_ != Kind::kFixed) {
        for (const Slot slot : access.reads) {
          From(i, slot, step.hops + 1, distance);
        }
      }
      if (!access.guarded) {
        return std::nullopt;
      }
    }
    for (const std::uint32_t previous : block.previous) {
      const Block& before = flow_.blocks[previous];
      if (!seen_.contains({previous, before.end, step.slot})) {
        queue_.push({step.hops, distance, before.end, previous, step.slot});
      }
    }
    return std::nullopt;
  }

  const std::vector<Instruction>& list_;
  const ControlFlow& flow_;
  Kind kind_;
  std::function<bool(const Opcode&)> match_;
  std::priority_queue<Step, std::vector<Step>, std::greater<>> queue_;
  std::set<std::tuple<std::uint32_t, std::uint32_t, Slot>> seen_;
};

std::optional<Found> Seek(const Function& function, const ControlFlow& flow, std::uint32_t stalled,
                          Kind kind) {
  const Opcode op(function.instructions[stalled].opcode);
  Search search(function, flow, kind);
  if (kind == Kind::kBarrier || kind == Kind::kMembar || kind == Kind::kSleep) {
    if (Fits(op, kind)) {
      return Found{stalled, 0};
    }
    return search.Last(stalled, [kind](const Opcode& o) { return Fits(o, kind); });
  }
  if (kind == Kind::kMatrix) {
    return search.Last(stalled, [](const Opcode& o) { return Fits(o, Kind::kMatrix); });
  }
  if (kind == Kind::kLong && op.Is("DEPBAR", "LDGDEPBAR", "ARRIVES")) {
    return search.Last(stalled, [](const Opcode& o) { return o.Is("LDGSTS"); });
  }
  std::optional<Found> found = search.ByOperands(stalled);
  if (!found && kind == Kind::kFixed) {
    Search any(function, flow, kind);
    found = any.Last(stalled, [](const Opcode& o) { return Fits(o, Kind::kFixed); });
  }
  return found;
}

}  // namespace

Slicer::Slicer(const Function& function) : function_(function) {
  if (function.instructions.size() <= kLargestFunction) {
    flow_ = AnalyzeControlFlow(function);
  }
}

std::optional<Producer> Slicer::Find(std::uint64_t address, std::string_view reason) const {
  const Kind kind = KindOf(reason);
  const auto begin = function_.instructions.begin();
  const auto at =
      std::lower_bound(begin, begin + flow_.size, address,
                       [](const Instruction& i, std::uint64_t value) { return i.address < value; });
  if (kind == Kind::kNone || at == begin + flow_.size || at->address != address) {
    return std::nullopt;
  }
  const auto found = Seek(function_, flow_, static_cast<std::uint32_t>(at - begin), kind);
  if (!found) {
    return std::nullopt;
  }
  const Instruction& producer = function_.instructions[found->instruction];
  return Producer{.address = producer.address,
                  .text = producer.Text(),
                  .file = std::string(function_.FileOf(producer)),
                  .line = producer.line,
                  .distance = found->distance};
}

}  // namespace kernelpro::sass
