// SPDX-License-Identifier: Apache-2.0
#include "sass/loop_figures.h"

#include <algorithm>
#include <bitset>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "sass/liveness.h"
#include "sass/opcode.h"

namespace kernelpro::sass {
namespace {

bool Touches(const std::vector<Slot>& slots, const SlotSet& set) {
  return std::ranges::any_of(slots, [&](Slot slot) { return set[slot]; });
}

/// What stands three times behind cp.async.wait_group on sm_80 and sm_90: LDS RZ, [RZ].
bool IsDummy(const Instruction& instruction) {
  return instruction.operands.starts_with("RZ,");
}

bool IsGlobalLoad(const Opcode& op) {
  return op.Is("LDG", "LD");
}

/// Loads that must be done again because others may have written: volatile and acquire.
bool IsStrong(const Opcode& op) {
  return op.Has("STRONG") || op.Has("MMIO");
}

/// Other threads' writes may become visible here.
bool Synchronises(const Opcode& op) {
  return op.Is("BAR", "MEMBAR", "SYNCS", "DEPBAR", "WARPSYNC", "ATOM", "ATOMG", "ATOMS", "CALL",
               "UCGABAR_WAIT", "WARPGROUP");
}

class Loads {
 public:
  Loads(const Function& function, const ControlFlow& flow, const std::vector<std::uint32_t>& body)
      : list_(function.instructions), flow_(flow), body_(body) {}

  LoadFigures Read() {
    Bytes();
    if (ldgs_ > 0) {
      Batch();
      UseDistance();
    }
    Addresses();
    Invariants();
    return figures_;
  }

 private:
  void Bytes() {
    for (const std::uint32_t i : body_) {
      const Opcode op(list_[i].opcode);
      if (IsGlobalLoad(op)) {
        figures_.ldg_bytes += BytesPerLane(op);
        ++ldgs_;
      } else if (op.Is("LDS", "LDSM") && !IsDummy(list_[i])) {
        figures_.lds_bytes += BytesPerLane(op);
      }
    }
  }

  /// Two passes, so that a batch may begin before the back edge and end behind it.
  void Batch() {
    SlotSet pending;
    std::uint32_t in_flight = 0, most = 0;
    for (int pass = 0; pass < 2; ++pass) {
      for (const std::uint32_t i : body_) {
        const Access& access = flow_.access[i];
        if (Touches(access.reads, pending) || Touches(access.writes, pending)) {
          pending.reset();
          in_flight = 0;
        }
        if (IsGlobalLoad(Opcode(list_[i].opcode))) {
          most = std::max(most, ++in_flight);
          for (const Slot slot : access.writes) {
            pending.set(slot);
          }
        }
      }
    }
    figures_.ldg_batch = std::min(most, ldgs_);
  }

  void UseDistance() {
    std::vector<std::uint32_t> issued(kSlots, kNone);  // by which step of the walk
    std::uint32_t step = 0, least = kNone;
    for (int pass = 0; pass < 2; ++pass) {
      for (const std::uint32_t i : body_) {
        const Access& access = flow_.access[i];
        for (const Slot slot : access.reads) {
          if (issued[slot] != kNone) {
            least = std::min(least, step - issued[slot]);
          }
        }
        const bool load = IsGlobalLoad(Opcode(list_[i].opcode));
        for (const Slot slot : access.writes) {
          issued[slot] = load ? step : kNone;
        }
        ++step;
      }
    }
    if (least != kNone) {
      figures_.ldg_use_distance = least;
    }
  }

  struct Seen {
    std::uint32_t block = 0;
    std::string_view guard;
  };

  /// Value numbers by counting the writes of each register; a branch between two loads can only
  /// hide a repetition, never make one up, because the earlier load must dominate the later.
  void Addresses() {
    std::vector<std::uint32_t> version(kSlots, 0);
    std::uint32_t epoch = 0;
    using Place = std::tuple<bool, Slot, std::uint32_t, Slot, std::uint32_t, std::uint32_t>;
    std::map<std::tuple<Place, std::int64_t, unsigned>, Seen> seen;
    std::map<Place, std::map<std::int64_t, std::pair<unsigned, std::uint32_t>>> narrow;
    constexpr Slot kNo = kSlots;
    for (const std::uint32_t i : body_) {
      const Opcode op(list_[i].opcode);
      epoch += Synchronises(op) ? 1U : 0U;
      const bool global = IsGlobalLoad(op);
      const bool load = (global || op.Is("LDS")) && !IsDummy(list_[i]);
      const auto address = load ? AddressOf(list_[i]) : std::nullopt;
      if (address && !IsStrong(op)) {
        const Slot base = address->base.value_or(kNo), uniform = address->uniform.value_or(kNo);
        const Place place = {global,
                             base,
                             base == kNo ? 0 : version[base],
                             uniform,
                             uniform == kNo ? 0 : version[uniform],
                             epoch};
        const unsigned width = BytesPerLane(op);
        const Seen here = {flow_.block_of[i], list_[i].predicate};
        const auto [earlier, fresh] = seen.try_emplace({place, address->offset, width}, here);
        const bool again = !fresh && flow_.Dominates(earlier->second.block, here.block) &&
                           (earlier->second.guard.empty() || earlier->second.guard == here.guard);
        figures_.duplicate_loads += again ? 1U : 0U;
        if (global && width <= 4 && fresh) {
          narrow[place][address->offset] = {width, i};
        }
      }
      for (const Slot slot : flow_.access[i].writes) {
        ++version[slot];
      }
    }
    for (const auto& [place, offsets] : narrow) {
      CountRuns(offsets);
    }
  }

  void CountRuns(const std::map<std::int64_t, std::pair<unsigned, std::uint32_t>>& offsets) {
    bool joined = false;  // Whether the previous one already has a neighbour.
    for (auto at = offsets.begin(); at != offsets.end(); ++at) {
      const auto next = std::next(at);
      const bool joins = next != offsets.end() && next->second.first == at->second.first &&
                         next->first - at->first == static_cast<std::int64_t>(at->second.first);
      figures_.narrow_runs += joined || joins ? 1U : 0U;
      joined = joins;
    }
  }

  void Invariants() {
    SlotSet written;
    bool shared_changes = false;
    for (const std::uint32_t i : body_) {
      for (const Slot slot : flow_.access[i].writes) {
        written.set(slot);
      }
      const Opcode op(list_[i].opcode);
      shared_changes = shared_changes || Synchronises(op) ||
                       op.Is("STS", "STSM", "LDGSTS", "ST", "UBLKCP", "UTMALDG");
    }
    for (const std::uint32_t i : body_) {
      const Opcode op(list_[i].opcode);
      const bool candidate = !IsDummy(list_[i]) && ((IsGlobalLoad(op) && !IsStrong(op)) ||
                                                    (op.Is("LDS") && !shared_changes));
      figures_.invariant_loads += candidate && !Touches(flow_.access[i].address, written) ? 1U : 0U;
    }
  }

  const std::vector<Instruction>& list_;
  const ControlFlow& flow_;
  const std::vector<std::uint32_t>& body_;
  std::uint32_t ldgs_ = 0;
  LoadFigures figures_;
};

}  // namespace

LoadFigures LoadFiguresOf(const Function& function, const ControlFlow& flow,
                          const std::vector<std::uint32_t>& body) {
  return Loads(function, flow, body).Read();
}

bool IsStagedCopy(const Function& function, const ControlFlow& flow,
                  const std::vector<std::uint32_t>& body) {
  SlotSet loaded;  // Registers that hold, or were computed from, a value of LDG.
  bool stored = false, barrier = false, read = false;
  // Twice: a software pipeline stores what the iteration before has loaded.
  for (int pass = 0; pass < 2; ++pass) {
    for (const std::uint32_t i : body) {
      const Opcode op(function.instructions[i].opcode);
      const Access& access = flow.access[i];
      if (op.Is("LDGSTS", "UTMALDG", "UBLKCP")) {
        return false;
      }
      stored = stored || (op.Is("STS") && Touches(access.data, loaded));
      barrier = barrier || (stored && op.Is("BAR"));
      read = read || (barrier && op.Is("LDS", "LDSM"));
      const bool taint =
          IsGlobalLoad(op) || (!op.Is("LDS", "LDSM") && Touches(access.reads, loaded));
      for (const Slot slot : access.writes) {
        loaded.set(slot, taint || (access.guarded && loaded[slot]));
      }
    }
  }
  return read;
}

ChainFigures ChainFiguresOf(const Function& function, const ControlFlow& flow,
                            const std::vector<std::uint32_t>& body) {
  constexpr int kWarm = 8, kRounds = 16;
  std::vector<double> ready(kSlots, 0);
  std::vector<double> at_warm;
  ChainFigures figures;
  for (int round = 0; round < kRounds; ++round) {
    double end = 0;
    for (const std::uint32_t i : body) {
      const Access& access = flow.access[i];
      double start = 0;
      for (const Slot slot : access.reads) {
        start = std::max(start, ready[slot]);
      }
      const double done = start + Latency(Opcode(function.instructions[i].opcode));
      for (const Slot slot : access.writes) {
        ready[slot] = access.guarded ? std::max(ready[slot], done) : done;
      }
      end = std::max(end, done);
    }
    if (round == 0) {
      figures.critical_path = end;
    } else if (round == kWarm - 1) {
      at_warm = ready;
    }
  }
  // What the last iterations add, each, to any register: the chain that all of them share.
  for (std::size_t slot = 0; slot < kSlots; ++slot) {
    figures.recurrence =
        std::max(figures.recurrence, (ready[slot] - at_warm[slot]) / (kRounds - kWarm));
  }
  return figures;
}

namespace {

/// ".FTZ.RZ" and the like must agree, or one FFMA rounds differently.
std::string_view Modifiers(std::string_view opcode) {
  const std::size_t dot = opcode.find('.');
  return dot == opcode.npos ? std::string_view() : opcode.substr(dot);
}

bool IsFusible(const Function& function, const ControlFlow& flow, const Block& block,
               std::uint32_t multiply, const SlotSet& live_out) {
  const Instruction& from = function.instructions[multiply];
  const Access& wrote = flow.access[multiply];
  if (wrote.writes.size() != 1) {
    return false;
  }
  const Slot slot = wrote.writes[0];
  bool used = false;
  for (std::uint32_t i = multiply + 1; i < block.end; ++i) {
    const Access& access = flow.access[i];
    const auto uses = std::ranges::count(access.reads, slot);
    if (uses > 0) {
      const Instruction& to = function.instructions[i];
      if (used || uses > 1 || !Opcode(to.opcode).Is("FADD") || to.predicate != from.predicate ||
          Modifiers(to.opcode) != Modifiers(from.opcode) ||
          to.operands.find('|') != std::string::npos) {
        return false;
      }
      used = true;
    }
    if (std::ranges::find(access.writes, slot) != access.writes.end()) {
      return used && !access.guarded;
    }
  }
  return used && !live_out[slot];
}

}  // namespace

std::vector<bool> FusibleMultiplies(const Function& function, const ControlFlow& flow) {
  constexpr std::uint32_t kFarthest = 2000;  // Bounds the search in blocks without end.
  std::vector<bool> fusible(flow.size, false);
  const std::vector<SlotSet> live = LiveAtEnd(flow);
  for (std::size_t b = 0; b < flow.blocks.size(); ++b) {
    Block block = flow.blocks[b];
    const std::uint32_t end = block.end;
    for (std::uint32_t i = block.first; i < end; ++i) {
      if (Opcode(function.instructions[i].opcode).Is("FMUL")) {
        block.end = std::min(end, i + kFarthest);
        const bool whole = block.end == end;
        fusible[i] = IsFusible(function, flow, block, i, whole ? live[b] : SlotSet().set());
      }
    }
  }
  return fusible;
}

bool HasBankConflict(const Instruction& instruction, const Access& access) {
  if (!Opcode(instruction.opcode).Is("FFMA", "DFMA", "IMAD") || access.plain.size() != 3) {
    return false;
  }
  const std::set<Slot> distinct(access.plain.begin(), access.plain.end());
  return distinct.size() == 3 && std::ranges::all_of(distinct, [&](Slot slot) {
           return slot % 2 == *distinct.begin() % 2;
         });
}

bool IsDivision(const Instruction& instruction) {
  const Opcode op(instruction.opcode);
  if (op.Is("CALL")) {
    const std::string_view to = instruction.operands;
    return to.find("div_u") != to.npos || to.find("div_s") != to.npos ||
           to.find("rem_u") != to.npos || to.find("rem_s") != to.npos;
  }
  // I2F.RP rounds up, which only the reciprocal of a divisor needs.
  return op.Is("I2F") && op.Has("RP");
}

bool IsWideInteger(const Instruction& instruction) {
  const Opcode op(instruction.opcode);
  return IsInteger(op) && (op.Has("WIDE") || op.Has("X") || op.Has("EX") || op.Has("64") ||
                           op.Has("U64") || op.Has("S64"));
}

}  // namespace kernelpro::sass
