// SPDX-License-Identifier: Apache-2.0
#include "emulator/simt/async_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "emulator/simt/access.h"
#include "emulator/simt/faults.h"
#include "emulator/simt/operations.h"
#include "emulator/simt/race.h"

/// The decoder leaves two accesses: extra is the source (width: cp-size, operand[0]: src-size,
/// operand2: ignore-src), extra + 1 the destination.
namespace kernelpro::simt {
namespace {

/// Lanes of `on` whose `length` bytes lie in the allocation of `cache`.
LaneMask LanesInside(const Context& context, const Access& source, const AccessCache& cache,
                     LaneMask on, const std::uint32_t* length) {
  LaneMask inside = 0;
  for (LaneMask rest = on; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint64_t offset = LaneAddress(context, source, lane) - cache.base;
    const bool good =
        offset < cache.bytes && length[lane] <= cache.bytes - offset && offset <= 0xffffffffULL;
    inside |= good ? 1U << static_cast<unsigned>(lane) : 0U;
  }
  return inside;
}

void CountSource(Context& context, const Decoded& d, const Access& source, const AccessCache& cache,
                 LaneMask on) {
  LaneOffsets lanes;
  const std::byte* const slot = context.registers + source.address;
  Offsets64(reinterpret_cast<const std::uint64_t*>(slot), source.offset - cache.base,  // NOLINT
            on, source.width, lanes);
  SectorSet set;
  const SectorCount count = CountSectors(lanes, source.width, set);
  const std::uint32_t touched = static_cast<std::uint32_t>(std::popcount(on)) * source.width;
  InstructionCounters& n = context.counters[d.instruction];
  n.sectors += count.sectors;
  n.lines += count.lines;
  n.ideal_sectors += std::min(count.sectors, (touched + 31) / 32);
  n.address_bits |= lanes.bits;
  Traffic& traffic = context.machine->traffic;
  Traffic::Mark(cache.use->read, *cache.use->allocation, cache.first_sector, set);
  if (context.machine->sampling) {
    n.l1_hit_sectors += traffic.Load(*cache.use, cache.first_sector, set, source.skip_l1);
  }
}

}  // namespace

void AsyncCopies::Clear() {
  pending_.clear();
  issued_ = 0;
  std::fill(std::begin(committed_), std::end(committed_), 0U);
}

bool AsyncCopies::ReadSizes(Context& context, const Decoded& d, LaneMask on, Copy& copy) {
  const Access& source = context.code->accesses[d.extra];
  LaneMask ignored = 0;
  if (source.operand2 != kNoSlot) {
    ignored = ReadAs<LaneMask>(context.registers + source.operand2);
    ignored = source.operand2_negated ? ~ignored : ignored;
  }
  for (LaneMask rest = on; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    std::uint32_t length = source.width;
    if (source.operand[0] != kNoSlot) {
      length = ReadAs<std::uint32_t>(context.registers + source.operand[0] + lane * 4);
    }
    if (length > source.width) {
      Fault fault;
      fault.kind = FaultKind::kOutOfBounds;
      fault.message = fmt::format("asked cp.async for {} bytes of its source, but copies {}",
                                  length, source.width);
      context.machine->Report(context, d, lane, std::move(fault));
      return false;
    }
    copy.length[lane] = (ignored >> static_cast<unsigned>(lane) & 1U) != 0 ? 0 : length;
  }
  return true;
}

/// Lanes that copy nothing but zeros do not look at their source: its address may be anything.
bool AsyncCopies::FindSource(Context& context, const Decoded& d, LaneMask on, Copy& copy) {
  const Access& source = context.code->accesses[d.extra];
  AccessCache& cache = context.caches[d.extra];
  LaneMask left = 0;
  for (LaneMask rest = on; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint64_t address = LaneAddress(context, source, lane);
    if (copy.length[lane] != 0 && address % source.width != 0) {
      ReportMisaligned(context, d, lane, address, source.width, false);
      return false;
    }
    left |= copy.length[lane] != 0 ? 1U << static_cast<unsigned>(lane) : 0U;
  }
  while (left != 0) {
    const int first = std::countr_zero(left);
    const std::uint64_t address = LaneAddress(context, source, first);
    LaneMask group = LanesInside(context, source, cache, left, copy.length);
    if ((group & (left & -left)) == 0) {
      group = Refill(context, cache, address)
                  ? LanesInside(context, source, cache, left, copy.length)
                  : 0;
    }
    if ((group & (left & -left)) == 0) {
      Fault fault;
      DescribeBadAddress(*context.machine->memory, address, copy.length[first], false, fault);
      context.machine->Report(context, d, first, std::move(fault));
      return false;
    }
    for (LaneMask rest = group; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      copy.from[lane] = cache.host + (LaneAddress(context, source, lane) - cache.base);
      std::memcpy(copy.seen[lane], copy.from[lane], copy.length[lane]);
    }
    CountSource(context, d, source, cache, group);
    left &= ~group;
  }
  return true;
}

bool AsyncCopies::FindDestination(Context& context, const Decoded& d, LaneMask on, Copy& copy) {
  const Access& destination = context.code->accesses[d.extra + 1];
  const std::uint32_t bytes = destination.width;
  const std::uint64_t limit = context.cta->shared_bytes;
  LaneOffsets lanes;
  const std::uint32_t first = static_cast<std::uint32_t>(std::countr_zero(on));
  for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) {
    const bool is_on = (on >> lane & 1U) != 0;
    const std::uint64_t offset =
        LaneAddress(context, destination, static_cast<int>(is_on ? lane : first));
    if (offset % bytes != 0 || offset >= limit || bytes > limit - offset) {
      ReportSharedBounds(context, d, static_cast<int>(is_on ? lane : first), offset, bytes, true);
      return false;
    }
    lanes.at[lane] = static_cast<std::uint32_t>(offset);
  }
  lanes.all_on = on == kAllLanes;
  Summarise(bytes, lanes);
  std::copy(std::begin(lanes.at), std::end(lanes.at), std::begin(copy.to));
  const std::uint32_t wavefronts = CountWavefronts(lanes, on, bytes);
  const std::uint32_t touched = static_cast<std::uint32_t>(std::popcount(on)) * bytes;
  InstructionCounters& n = context.counters[d.instruction];
  n.wavefronts += wavefronts;
  n.ideal_wavefronts += std::min(wavefronts, (touched + 127) / 128);
  n.bytes += touched;
  return true;
}

bool AsyncCopies::Issue(Context& context, const Decoded& d, LaneMask on) {
  Copy& copy = pending_.emplace_back();
  copy.at = &d;
  copy.number = issued_++;
  copy.lanes = on;
  copy.bytes = context.code->accesses[d.extra].width;
  std::copy(std::begin(committed_), std::end(committed_), std::begin(copy.group));
  ++context.counters[d.instruction].requests;
  if (!ReadSizes(context, d, on, copy) || !FindSource(context, d, on, copy) ||
      !FindDestination(context, d, on, copy)) {
    pending_.pop_back();
    return false;
  }
  if (context.cta->race != nullptr) {
    context.cta->race->StartCopy(context, d, copy.to, on, copy.bytes);
  }
  return true;
}

void AsyncCopies::Commit(LaneMask on) {
  for (LaneMask rest = on; rest != 0; rest &= rest - 1) {
    ++committed_[std::countr_zero(rest)];
  }
}

void AsyncCopies::Do(Context& context, const Decoded& d, const Copy& copy, LaneMask lanes) {
  std::byte* const shared = context.cta->shared.data();
  LaneMask changed = 0;
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint32_t length = copy.length[lane];
    std::byte* const to = shared + copy.to[lane];
    if (length != 0) {
      std::memcpy(to, copy.from[lane], length);
      const bool same = std::memcmp(to, copy.seen[lane], length) == 0;
      changed |= same ? 0U : 1U << static_cast<unsigned>(lane);
    }
    std::memset(to + length, 0, copy.bytes - length);
  }
  context.machine->last_progress = context.machine->executed;
  if (changed != 0) {
    Fault fault;
    fault.kind = FaultKind::kRace;
    fault.fatal = false;
    fault.message =
        "waited for an asynchronous copy from global memory that somebody wrote to after the copy "
        "was issued: what it copied is undefined";
    context.machine->Report(context, d, std::countr_zero(changed), std::move(fault));
  }
}

void AsyncCopies::Wait(Context& context, const Decoded& d, LaneMask on, std::uint32_t left) {
  for (Copy& copy : pending_) {
    LaneMask done = 0;
    for (LaneMask rest = copy.lanes & on; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      const bool covered = std::uint64_t{copy.group[lane]} + left < committed_[lane];
      done |= covered ? 1U << static_cast<unsigned>(lane) : 0U;
    }
    if (done != 0) {
      Do(context, d, copy, done);
      if (context.cta->race != nullptr) {
        context.cta->race->FinishCopy(copy.to, done, copy.bytes, context.warp);
      }
      copy.lanes &= ~done;
    }
  }
  Forget();
}

void AsyncCopies::FinishIssuedBefore(Context& context, const Decoded& d, LaneMask lanes,
                                     std::uint64_t before) {
  for (Copy& copy : pending_) {
    if (const LaneMask done = copy.lanes & lanes; done != 0 && copy.number < before) {
      Do(context, d, copy, done);
      if (context.cta->race != nullptr) {
        context.cta->race->FinishCopy(copy.to, done, copy.bytes, nullptr);
      }
      copy.lanes &= ~done;
    }
  }
  Forget();
}

void AsyncCopies::Forget() {
  std::erase_if(pending_, [](const Copy& copy) { return copy.lanes == 0; });
}

bool RunAsyncCopy(Context& context, const Decoded& d, LaneMask on) {
  return context.warp->copies.Issue(context, d, on);
}

bool RunAsyncCommit(Context& context, const Decoded& /*d*/, LaneMask on) {
  context.warp->copies.Commit(on);
  return true;
}

bool RunAsyncWait(Context& context, const Decoded& d, LaneMask on) {
  context.warp->copies.Wait(context, d, on, d.extra);
  return true;
}

bool RunAsyncWaitAll(Context& context, const Decoded& d, LaneMask on) {
  context.warp->copies.Commit(on);
  context.warp->copies.Wait(context, d, on, 0);
  return true;
}

}  // namespace kernelpro::simt
