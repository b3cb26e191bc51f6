// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <string_view>
#include <utility>

#include "emulator/simt/faults.h"
#include "emulator/simt/operations.h"

/// Cross-lane instructions. The scheduler has brought the named lanes together; lanes may still
/// name different groups in one instruction (tiles of cooperative groups), so each group is handled
/// apart.
namespace kernelpro::simt {
namespace {

template <class T>
T* Lanes(const Context& context, std::uint32_t slot) {
  return reinterpret_cast<T*>(context.registers + slot);  // NOLINT: slots are aligned lane vectors
}

LaneMask Bit(int lane) {
  return 1U << static_cast<unsigned>(lane);
}

void SetPredicate(const Context& context, std::uint32_t slot, LaneMask value, LaneMask lanes) {
  LaneMask* const p = Lanes<LaneMask>(context, slot);
  *p = (*p & ~lanes) | (value & lanes);
}

/// Calls `visit(group)` for the lanes of `on` that share a member mask; false when a lane does not
/// name itself.
template <class Visit>
bool ForEachGroup(Context& context, const Decoded& d, LaneMask on, Visit visit) {
  const std::uint32_t* const masks = Lanes<std::uint32_t>(context, d.operands.src[3]);
  while (on != 0) {
    const int first = std::countr_zero(on);
    const std::uint32_t mask = masks[first];
    if ((mask & Bit(first)) == 0) {
      Fault fault;
      fault.kind = FaultKind::kBadShuffle;
      fault.message = fmt::format(
          "executed {} with member mask 0x{:08x}, which does not name its "
          "own lane {}",
          context.code->function->body[d.instruction].opcode, mask, first);
      context.machine->Report(context, d, first, std::move(fault));
      return false;
    }
    LaneMask group = 0;
    for (LaneMask rest = on; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      group |= masks[lane] == mask && (mask & Bit(lane)) != 0 ? Bit(lane) : 0U;
    }
    visit(group);
    on &= ~group;
  }
  return true;
}

void ReportUndefinedSource(Context& context, const Decoded& d, int lane, std::uint32_t source) {
  Fault fault;
  fault.kind = FaultKind::kBadShuffle;
  fault.fatal = false;
  fault.message = fmt::format(
      "shuffled a value from lane {}, which does not take part (exited, not in the member mask, or "
      "not in the block): the value is undefined",
      source);
  context.machine->Report(context, d, lane, std::move(fault));
}

enum class ShuffleMode : std::uint8_t { kUp, kDown, kBfly, kIdx };

struct Source {
  std::uint32_t lane = 0;
  bool in_range = false;
};

/// The formula of the PTX manual: c holds the clamp in bits 0-4 and the segment mask in 8-12.
template <ShuffleMode kMode>
Source SourceLane(std::uint32_t lane, std::uint32_t b, std::uint32_t c) {
  const std::uint32_t value = b & 0x1fU;
  const std::uint32_t clamp = c & 0x1fU;
  const std::uint32_t segment = c >> 8U & 0x1fU;
  const std::uint32_t most = (lane & segment) | (clamp & ~segment);
  const std::uint32_t least = lane & segment;
  if constexpr (kMode == ShuffleMode::kUp) {
    const auto j = static_cast<std::int32_t>(lane) - static_cast<std::int32_t>(value);
    const bool good = j >= static_cast<std::int32_t>(most);
    return Source{good ? static_cast<std::uint32_t>(j) : lane, good};
  } else {
    std::uint32_t j = 0;
    if constexpr (kMode == ShuffleMode::kDown) {
      j = lane + value;
    } else if constexpr (kMode == ShuffleMode::kBfly) {
      j = lane ^ value;
    } else {
      j = least | (value & ~segment & 0x1fU);
    }
    const bool good = j <= most;
    return Source{good ? j : lane, good};
  }
}

template <ShuffleMode kMode>
bool Shuffle(Context& context, const Decoded& d, LaneMask on) {
  std::uint32_t a[kWarpSize];
  std::memcpy(a, context.registers + d.operands.src[0], sizeof a);
  const std::uint32_t* const b = Lanes<std::uint32_t>(context, d.operands.src[1]);
  const std::uint32_t* const c = Lanes<std::uint32_t>(context, d.operands.src[2]);
  std::uint32_t results[kWarpSize];
  LaneMask in_range = 0;
  const bool good = ForEachGroup(context, d, on, [&](LaneMask group) {
    for (LaneMask rest = group; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
      const Source source = SourceLane<kMode>(lane, b[lane], c[lane]);
      in_range |= source.in_range ? 1U << lane : 0U;
      results[lane] = a[source.lane & 31U];
      if ((group >> source.lane & 1U) == 0) {
        ReportUndefinedSource(context, d, static_cast<int>(lane), source.lane);
      }
    }
  });
  if (!good) {
    return false;
  }
  std::uint32_t* const to = Lanes<std::uint32_t>(context, d.operands.dst);
  for (LaneMask rest = on; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    to[lane] = results[lane];
  }
  if (d.operands.has_dst2) {
    SetPredicate(context, d.operands.dst2, in_range, on);
  }
  return true;
}

LaneMask Predicate(const Context& context, const Decoded& d) {
  const LaneMask value = *Lanes<LaneMask>(context, d.operands.src[0]);
  return d.operands.src_negated ? ~value : value;
}

template <class Decide>
bool VotePredicate(Context& context, const Decoded& d, LaneMask on, Decide decide) {
  const LaneMask predicate = Predicate(context, d);
  LaneMask result = 0;
  const bool good = ForEachGroup(context, d, on, [&](LaneMask group) {
    result |= decide(predicate & group, group) ? group : 0U;
  });
  SetPredicate(context, d.operands.dst, result, on);
  return good;
}

template <class T>
bool MatchAny(Context& context, const Decoded& d, LaneMask on) {
  T a[kWarpSize];
  std::memcpy(a, context.registers + d.operands.src[0], sizeof a);
  std::uint32_t* const to = Lanes<std::uint32_t>(context, d.operands.dst);
  return ForEachGroup(context, d, on, [&](LaneMask group) {
    for (LaneMask rest = group; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      LaneMask equal = 0;
      for (LaneMask others = group; others != 0; others &= others - 1) {
        const int other = std::countr_zero(others);
        equal |= a[other] == a[lane] ? Bit(other) : 0U;
      }
      to[lane] = equal;
    }
  });
}

template <class T>
bool MatchAll(Context& context, const Decoded& d, LaneMask on) {
  T a[kWarpSize];
  std::memcpy(a, context.registers + d.operands.src[0], sizeof a);
  std::uint32_t* const to = Lanes<std::uint32_t>(context, d.operands.dst);
  LaneMask all = 0;
  const bool good = ForEachGroup(context, d, on, [&](LaneMask group) {
    bool equal = true;
    for (LaneMask rest = group; rest != 0; rest &= rest - 1) {
      equal = equal && a[std::countr_zero(rest)] == a[std::countr_zero(group)];
    }
    for (LaneMask rest = group; rest != 0; rest &= rest - 1) {
      to[std::countr_zero(rest)] = equal ? group : 0;
    }
    all |= equal ? group : 0U;
  });
  if (d.operands.has_dst2) {
    SetPredicate(context, d.operands.dst2, all, on);
  }
  return good;
}

struct AddOf {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const { return a + b; }
};

struct AndOf {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const { return a & b; }
};

struct OrOf {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const { return a | b; }
};

struct XorOf {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const { return a ^ b; }
};

template <bool kSigned, bool kMax>
struct ExtremeOf {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const {
    const bool less = kSigned ? static_cast<std::int32_t>(a) < static_cast<std::int32_t>(b) : a < b;
    return less == kMax ? b : a;
  }
};

template <class Combine>
bool ReduceWith(Context& context, const Decoded& d, LaneMask on) {
  std::uint32_t a[kWarpSize];
  std::memcpy(a, context.registers + d.operands.src[0], sizeof a);
  std::uint32_t* const to = Lanes<std::uint32_t>(context, d.operands.dst);
  return ForEachGroup(context, d, on, [&](LaneMask group) {
    std::uint32_t value = a[std::countr_zero(group)];
    for (LaneMask rest = group & (group - 1); rest != 0; rest &= rest - 1) {
      value = Combine{}(value, a[std::countr_zero(rest)]);
    }
    for (LaneMask rest = group; rest != 0; rest &= rest - 1) {
      to[std::countr_zero(rest)] = value;
    }
  });
}

}  // namespace

bool RunShuffleIdx(Context& context, const Decoded& d, LaneMask on) {
  return Shuffle<ShuffleMode::kIdx>(context, d, on);
}

bool RunShuffleUp(Context& context, const Decoded& d, LaneMask on) {
  return Shuffle<ShuffleMode::kUp>(context, d, on);
}

bool RunShuffleDown(Context& context, const Decoded& d, LaneMask on) {
  return Shuffle<ShuffleMode::kDown>(context, d, on);
}

bool RunShuffleBfly(Context& context, const Decoded& d, LaneMask on) {
  return Shuffle<ShuffleMode::kBfly>(context, d, on);
}

bool RunVoteBallot(Context& context, const Decoded& d, LaneMask on) {
  const LaneMask predicate = Predicate(context, d);
  std::uint32_t* const to = Lanes<std::uint32_t>(context, d.operands.dst);
  return ForEachGroup(context, d, on, [&](LaneMask group) {
    for (LaneMask rest = group; rest != 0; rest &= rest - 1) {
      to[std::countr_zero(rest)] = predicate & group;
    }
  });
}

bool RunVoteAny(Context& context, const Decoded& d, LaneMask on) {
  return VotePredicate(context, d, on, [](LaneMask set, LaneMask) { return set != 0; });
}

bool RunVoteAll(Context& context, const Decoded& d, LaneMask on) {
  return VotePredicate(context, d, on, [](LaneMask set, LaneMask group) { return set == group; });
}

bool RunVoteUni(Context& context, const Decoded& d, LaneMask on) {
  return VotePredicate(context, d, on,
                       [](LaneMask set, LaneMask group) { return set == group || set == 0; });
}

bool RunMatchAny32(Context& context, const Decoded& d, LaneMask on) {
  return MatchAny<std::uint32_t>(context, d, on);
}

bool RunMatchAny64(Context& context, const Decoded& d, LaneMask on) {
  return MatchAny<std::uint64_t>(context, d, on);
}

bool RunMatchAll32(Context& context, const Decoded& d, LaneMask on) {
  return MatchAll<std::uint32_t>(context, d, on);
}

bool RunMatchAll64(Context& context, const Decoded& d, LaneMask on) {
  return MatchAll<std::uint64_t>(context, d, on);
}

Operation SelectReduce(std::string_view op, ptx::Type type) {
  if (ptx::SizeOf(type) != 4 || ptx::IsFloat(type)) {
    return nullptr;
  }
  const bool is_signed = ptx::IsSigned(type);
  if (op == "add") {
    return ReduceWith<AddOf>;
  }
  if (op == "min") {
    return is_signed ? ReduceWith<ExtremeOf<true, false>> : ReduceWith<ExtremeOf<false, false>>;
  }
  if (op == "max") {
    return is_signed ? ReduceWith<ExtremeOf<true, true>> : ReduceWith<ExtremeOf<false, true>>;
  }
  if (op == "and") {
    return ReduceWith<AndOf>;
  }
  if (op == "or") {
    return ReduceWith<OrOf>;
  }
  return op == "xor" ? ReduceWith<XorOf> : nullptr;
}

bool RunActiveMask(Context& context, const Decoded& d, LaneMask on) {
  for (LaneMask rest = on; rest != 0; rest &= rest - 1) {
    Lanes<std::uint32_t>(context, d.operands.dst)[std::countr_zero(rest)] = on;
  }
  return true;
}

/// The lowest lane of each group leads.
bool RunElect(Context& context, const Decoded& d, LaneMask on) {
  LaneMask leaders = 0;
  const bool good = ForEachGroup(context, d, on, [&](LaneMask group) {
    const int leader = std::countr_zero(group);
    leaders |= Bit(leader);
    for (LaneMask rest = group; rest != 0 && d.operands.dst != kNoSlot; rest &= rest - 1) {
      Lanes<std::uint32_t>(context, d.operands.dst)[std::countr_zero(rest)] =
          static_cast<std::uint32_t>(leader);
    }
  });
  SetPredicate(context, d.operands.dst2, leaders, on);
  return good;
}

/// Only spinning code sleeps: let others run.
bool RunNanosleep(Context& context, const Decoded& /*d*/, LaneMask /*on*/) {
  context.warp->yields = true;
  context.warp->polled = true;
  return true;
}

}  // namespace kernelpro::simt
