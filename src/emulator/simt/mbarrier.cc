// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "emulator/simt/access.h"
#include "emulator/simt/faults.h"
#include "emulator/simt/operations.h"
#include "emulator/simt/race.h"

/// mbarrier objects. Their 64 bits are opaque to programs; here they hold a mark that no
/// uninitialised memory has, the phase, the arrivals that the phase still lacks, and those that the
/// next one needs. A state is the object before an arrival.
///
/// Arrivals that wait for copies (cp.async.mbarrier.arrive) come as late as they can: when somebody
/// asks whether the phase is complete.
namespace kernelpro::simt {
namespace {

constexpr std::uint64_t kMark = 0x5;
/// Times round a loop of waits before other warps get their turn.
constexpr std::uint64_t kTriesInARow = 64;
constexpr std::uint32_t kMostCount = (1U << 20U) - 1;

struct Object {
  std::uint32_t expected = 0, pending = 0;
  std::uint32_t phase = 0;  ///< 20 bits
  bool valid = false;
};

Object Unpack(std::uint64_t bits) {
  const auto field = [&](unsigned shift) {
    return static_cast<std::uint32_t>(bits >> shift) & kMostCount;
  };
  return Object{field(0), field(20), field(40), bits >> 60U == kMark};
}

std::uint64_t Pack(const Object& object) {
  return kMark << 60U | std::uint64_t{object.phase & kMostCount} << 40U |
         std::uint64_t{object.pending & kMostCount} << 20U | (object.expected & kMostCount);
}

std::byte* At(Context& context, std::uint32_t offset) {
  return context.cta->shared.data() + offset;
}

bool Fail(Context& context, const Decoded& d, int lane, FaultKind kind, std::string what) {
  Fault fault;
  fault.kind = kind;
  fault.message = std::move(what);
  context.machine->Report(context, d, lane, std::move(fault));
  return false;
}

/// Offset of the lane's object in shared memory; false on a fault.
bool Locate(Context& context, const Decoded& d, int lane, std::uint32_t* offset) {
  const Access& access = context.code->accesses[d.extra];
  const std::uint64_t window = access.space == ptx::Space::kGeneric ? kSharedWindow : 0;
  const std::uint64_t at = LaneAddress(context, access, lane) - window;
  const std::uint64_t limit = context.cta->shared_bytes;
  if (at % 8 != 0 || at >= limit || limit - at < 8) {
    ReportSharedBounds(context, d, lane, at, 8, true);
    return false;
  }
  *offset = static_cast<std::uint32_t>(at);
  return true;
}

/// The same for an object that must have been initialised.
bool Find(Context& context, const Decoded& d, int lane, std::uint32_t* offset, Object* object) {
  if (!Locate(context, d, lane, offset)) {
    return false;
  }
  *object = Unpack(ReadAs<std::uint64_t>(At(context, *offset)));
  return object->valid || Fail(context, d, lane, FaultKind::kUninitialized,
                               fmt::format("used the mbarrier at offset {} of shared memory, which "
                                           "is not initialised",
                                           *offset));
}

std::uint32_t Operand32(const Context& context, const Access& access, int lane,
                        std::uint32_t absent) {
  return access.operand[0] == kNoSlot
             ? absent
             : ReadAs<std::uint32_t>(context.registers + access.operand[0] + lane * 4);
}

/// The race detector takes one offset a lane.
struct OneLane {
  std::uint32_t offsets[kWarpSize] = {};
  LaneMask on = 0;

  OneLane(int lane, std::uint32_t offset) : on(1U << static_cast<unsigned>(lane)) {
    offsets[lane] = offset;
  }
};

void NoteWrite(Context& context, const Decoded& d, int lane, std::uint32_t offset) {
  if (context.cta->race != nullptr) {
    const OneLane at(lane, offset);
    context.cta->race->Write(context, d, at.offsets, at.on, 8);
  }
}

/// Arrivals and waits only need the object to be there; what they order is said apart.
void NoteUse(Context& context, const Decoded& d, int lane, std::uint32_t offset) {
  if (context.cta->race != nullptr) {
    const OneLane at(lane, offset);
    context.cta->race->Read(context, d, at.offsets, at.on, 8);
  }
}

void Release(Context& context, int lane, std::uint32_t offset) {
  if (context.cta->race != nullptr) {
    const OneLane at(lane, offset);
    context.cta->race->ReleaseTo(context, at.offsets, at.on);
  }
}

bool Arrive(Context& context, const Decoded& d, int lane, std::uint32_t offset, Object object,
            std::uint32_t count) {
  if (count == 0 || count > object.pending) {
    return Fail(context, d, lane, FaultKind::kDivergentBarrier,
                fmt::format("arrived {} times at the mbarrier at offset {}, whose phase lacks {} "
                            "arrivals",
                            count, offset, object.pending));
  }
  object.pending -= count;
  if (object.pending == 0) {
    ++object.phase;
    object.pending = object.expected;
  }
  WriteAs(At(context, offset), Pack(object));
  context.machine->last_progress = context.machine->executed;
  return true;
}

bool ArriveAll(Context& context, const Decoded& d, LaneMask on, bool drop) {
  const Access& access = context.code->accesses[d.extra];
  for (LaneMask rest = on; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    std::uint32_t offset = 0;
    Object object;
    if (!Find(context, d, lane, &offset, &object)) {
      return false;
    }
    NoteUse(context, d, lane, offset);
    Release(context, lane, offset);
    if (access.value[0] != kNoSlot) {
      WriteAs(context.registers + access.value[0] + lane * 8, Pack(object));
    }
    const std::uint32_t count = Operand32(context, access, lane, 1);
    if (drop) {
      object.expected -= std::min(count, object.expected);
    }
    if (!Arrive(context, d, lane, offset, object, count)) {
      return false;
    }
  }
  return true;
}

/// Copies whose arrival the object waits for are done now, at the last moment.
bool TakeArrivals(Context& context, const Decoded& d, int lane, std::uint32_t offset) {
  std::vector<AsyncArrival>& arrivals = context.cta->arrivals;
  for (const AsyncArrival& arrival : arrivals) {
    if (arrival.barrier != offset) {
      continue;
    }
    arrival.warp->copies.FinishIssuedBefore(context, d, arrival.lanes, arrival.before);
    const Object object = Unpack(ReadAs<std::uint64_t>(At(context, offset)));
    const auto count = static_cast<std::uint32_t>(std::popcount(arrival.lanes));
    if (!Arrive(context, d, lane, offset, object, count)) {
      return false;
    }
  }
  std::erase_if(arrivals, [&](const AsyncArrival& a) { return a.barrier == offset; });
  return true;
}

bool WaitAll(Context& context, const Decoded& d, LaneMask on, bool parity) {
  const Access& access = context.code->accesses[d.extra];
  LaneMask complete = 0;
  std::uint64_t asked = 0;
  std::uint32_t offset = 0;
  Object object;
  for (LaneMask rest = on; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    // Lanes usually ask for one object; loops of waits are most of what runs here.
    if (const std::uint64_t address = LaneAddress(context, access, lane);
        rest == on || address != asked) {
      if (!Find(context, d, lane, &offset, &object) || !TakeArrivals(context, d, lane, offset) ||
          !Find(context, d, lane, &offset, &object)) {
        return false;
      }
      NoteUse(context, d, lane, offset);
      asked = address;
    }
    bool done = false;
    if (parity) {
      done = (object.phase & 1U) != (Operand32(context, access, lane, 0) & 1U);
    } else {
      const auto state = ReadAs<std::uint64_t>(context.registers + access.operand[0] + lane * 8);
      done = Unpack(state).phase != object.phase;
    }
    complete |= done ? 1U << static_cast<unsigned>(lane) : 0U;
    if (done && context.cta->race != nullptr) {
      const OneLane at(lane, offset);
      context.cta->race->Acquire(context, at.offsets, at.on);
    }
  }
  if (complete != on) {
    context.warp->polled = true;
    context.warp->yields = context.warp->back_edges >= kTriesInARow;
  }
  if (access.value[0] != kNoSlot) {
    std::byte* const slot = context.registers + access.value[0];
    WriteAs(slot, (ReadAs<LaneMask>(slot) & ~on) | complete);
  }
  return true;
}

bool CopyArrive(Context& context, const Decoded& d, LaneMask on, bool increments) {
  for (LaneMask rest = on; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    std::uint32_t offset = 0;
    Object object;
    if (!Find(context, d, lane, &offset, &object)) {
      return false;
    }
    if (increments) {
      ++object.pending;
      WriteAs(At(context, offset), Pack(object));
    }
    NoteUse(context, d, lane, offset);
    Release(context, lane, offset);
    context.cta->arrivals.push_back(AsyncArrival{
        offset, context.warp, 1U << static_cast<unsigned>(lane), context.warp->copies.issued()});
  }
  return true;
}

}  // namespace

bool RunMBarrierInit(Context& context, const Decoded& d, LaneMask on) {
  const Access& access = context.code->accesses[d.extra];
  for (LaneMask rest = on; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    std::uint32_t offset = 0;
    if (!Locate(context, d, lane, &offset)) {
      return false;
    }
    const std::uint32_t count = Operand32(context, access, lane, 0);
    if (count == 0 || count > kMostCount) {
      return Fail(context, d, lane, FaultKind::kDivergentBarrier,
                  fmt::format("initialised an mbarrier for {} arrivals: 1 to {} are allowed", count,
                              kMostCount));
    }
    NoteWrite(context, d, lane, offset);
    WriteAs(At(context, offset), Pack(Object{.expected = count, .pending = count}));
  }
  return true;
}

bool RunMBarrierInvalidate(Context& context, const Decoded& d, LaneMask on) {
  for (LaneMask rest = on; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    std::uint32_t offset = 0;
    Object object;
    if (!Find(context, d, lane, &offset, &object)) {
      return false;
    }
    NoteWrite(context, d, lane, offset);
    std::memset(At(context, offset), 0xff, 8);
  }
  return true;
}

bool RunMBarrierArrive(Context& context, const Decoded& d, LaneMask on) {
  return ArriveAll(context, d, on, false);
}

bool RunMBarrierArriveDrop(Context& context, const Decoded& d, LaneMask on) {
  return ArriveAll(context, d, on, true);
}

bool RunMBarrierWaitState(Context& context, const Decoded& d, LaneMask on) {
  return WaitAll(context, d, on, false);
}

bool RunMBarrierWaitParity(Context& context, const Decoded& d, LaneMask on) {
  return WaitAll(context, d, on, true);
}

bool RunMBarrierCopyArrive(Context& context, const Decoded& d, LaneMask on) {
  return CopyArrive(context, d, on, true);
}

bool RunMBarrierCopyArriveNoInc(Context& context, const Decoded& d, LaneMask on) {
  return CopyArrive(context, d, on, false);
}

}  // namespace kernelpro::simt
