// SPDX-License-Identifier: Apache-2.0
#include "emulator/simt/access.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "emulator/simt/operations.h"
#include "emulator/simt/race.h"

/// ld and st on global, shared and generic addresses: the hot part. All lanes are checked at once
/// against the span that the instruction touched last; only when that fails are lanes looked at one
/// by one.
namespace kernelpro::simt {
namespace {

template <unsigned kWidth>
using Unsigned = std::conditional_t<
    kWidth == 1, std::uint8_t,
    std::conditional_t<kWidth == 2, std::uint16_t,
                       std::conditional_t<kWidth == 4, std::uint32_t, std::uint64_t>>>;

template <class Lane, unsigned kWidth>
KP_SIMT_INLINE Lane Extend(Unsigned<kWidth> value, bool sign) {
  if constexpr (sizeof(Lane) > kWidth) {
    if (sign) {
      return static_cast<Lane>(static_cast<std::make_signed_t<Lane>>(
          static_cast<std::make_signed_t<Unsigned<kWidth>>>(value)));
    }
  }
  return static_cast<Lane>(value);
}

/// One element of a half-warp whose lanes are all on.
template <class Lane, unsigned kWidth>
KP_SIMT_INLINE void GatherHalf(const std::byte* host, const LaneOffsets& lanes, int half,
                               std::uint32_t stride, bool sign, Lane* to) {
  const std::uint32_t* const at = lanes.at + half * 16;
  to += half * 16;
  if (lanes.spread[half] == 0) {
    const Lane value = Extend<Lane, kWidth>(ReadAs<Unsigned<kWidth>>(host + at[0]), sign);
    for (int i = 0; i < 16; ++i) {
      to[i] = value;
    }
    return;
  }
  if constexpr (sizeof(Lane) == kWidth) {
    if (lanes.apart[half] == 0 && stride == kWidth) {
      std::memcpy(to, host + at[0], 16 * kWidth);
      return;
    }
  }
  for (int i = 0; i < 16; ++i) {
    to[i] = Extend<Lane, kWidth>(ReadAs<Unsigned<kWidth>>(host + at[i]), sign);
  }
}

/// One element of every lane, from memory into a register.
template <class Lane, unsigned kWidth>
KP_SIMT_INLINE void Gather(const std::byte* host, const LaneOffsets& lanes, LaneMask on,
                           std::uint32_t stride, bool sign, Lane* to) {
  if (on == kAllLanes) {
    GatherHalf<Lane, kWidth>(host, lanes, 0, stride, sign, to);
    GatherHalf<Lane, kWidth>(host, lanes, 1, stride, sign, to);
    return;
  }
  for (LaneMask rest = on; rest != 0; rest &= rest - 1) {
    const int i = std::countr_zero(rest);
    to[i] = Extend<Lane, kWidth>(ReadAs<Unsigned<kWidth>>(host + lanes.at[i]), sign);
  }
}

template <unsigned kWidth>
KP_SIMT_INLINE void LoadValues(Context& context, const Access& access, const std::byte* host,
                               const LaneOffsets& lanes, LaneMask on) {
  const std::uint32_t stride = kWidth * access.elements;
  for (unsigned e = 0; e < access.elements; ++e) {
    if (access.value[e] == kNoSlot) {
      continue;
    }
    std::byte* const slot = context.registers + access.value[e];
    const std::byte* const from = host + e * kWidth;
    if (access.value_64[e]) {
      Gather<std::uint64_t, kWidth>(from, lanes, on, stride, access.sign_extend,
                                    reinterpret_cast<std::uint64_t*>(slot));  // NOLINT
    } else if constexpr (kWidth <= 4) {
      Gather<std::uint32_t, kWidth>(from, lanes, on, stride, access.sign_extend,
                                    reinterpret_cast<std::uint32_t*>(slot));  // NOLINT
    }
  }
}

/// Ascending lanes, so that the highest one wins where several store to one place.
template <unsigned kWidth>
KP_SIMT_INLINE void StoreValues(const Context& context, const Access& access, std::byte* host,
                                const LaneOffsets& lanes, LaneMask on) {
  if constexpr (kWidth == 4) {
    if (access.elements == 1 && !access.value_64[0] && lanes.Contiguous(4)) {
      std::memcpy(host + lanes.at[0], context.registers + access.value[0], 4 * kWarpSize);
      return;
    }
  }
  for (LaneMask rest = on; rest != 0; rest &= rest - 1) {
    const auto i = static_cast<unsigned>(std::countr_zero(rest));
    for (unsigned e = 0; e < access.elements; ++e) {
      const std::byte* const slot = context.registers + access.value[e];
      const auto value = access.value_64[e]
                             ? static_cast<Unsigned<kWidth>>(ReadAs<std::uint64_t>(slot + i * 8))
                             : static_cast<Unsigned<kWidth>>(ReadAs<std::uint32_t>(slot + i * 4));
      WriteAs(host + lanes.at[i] + e * kWidth, value);
    }
  }
}

template <bool kStore, unsigned kWidth>
KP_SIMT_INLINE void MoveValues(Context& context, const Access& access, std::byte* host,
                               const LaneOffsets& lanes, LaneMask on) {
  if constexpr (kStore) {
    StoreValues<kWidth>(context, access, host, lanes, on);
  } else {
    LoadValues<kWidth>(context, access, host, lanes, on);
  }
}

KP_SIMT_INLINE void AddressOffsets(const Context& context, const Access& access,
                                   std::uint64_t delta, LaneMask on, std::uint32_t bytes,
                                   LaneOffsets& lanes) {
  const std::byte* const slot = context.registers + access.address;
  if (access.address_64) {
    Offsets64(reinterpret_cast<const std::uint64_t*>(slot), delta, on, bytes, lanes);  // NOLINT
  } else {
    Offsets32(reinterpret_cast<const std::uint32_t*>(slot),  // NOLINT
              static_cast<std::uint32_t>(delta), on, bytes, lanes);
  }
}

/// Traffic of one global request within one allocation.
template <bool kStore>
KP_SIMT_INLINE void CountGlobal(Context& context, const Access& access, InstructionCounters& n,
                                const AccessCache& cache, const LaneOffsets& lanes, LaneMask on,
                                std::uint32_t bytes) {
  SectorSet set;
  const SectorCount count = CountSectors(lanes, bytes, set);
  const auto touched = static_cast<std::uint32_t>(std::popcount(on)) * bytes;
  n.sectors += count.sectors;
  n.lines += count.lines;
  n.ideal_sectors += std::min(count.sectors, (touched + 31) / 32);
  n.bytes += touched;
  n.address_bits |= lanes.bits;
  Traffic& traffic = context.machine->traffic;
  Traffic::Mark(kStore ? cache.use->written : cache.use->read, *cache.use->allocation,
                cache.first_sector, set);
  if (context.machine->sampling) {
    if constexpr (kStore) {
      traffic.Store(*cache.use, cache.first_sector, set);
    } else {
      n.l1_hit_sectors += traffic.Load(*cache.use, cache.first_sector, set, access.skip_l1);
    }
  }
}

KP_SIMT_INLINE bool Fits(const LaneOffsets& lanes, const AccessCache& cache, std::uint32_t bytes) {
  return lanes.inside_4g && std::uint64_t{lanes.highest} + bytes <= cache.bytes &&
         (lanes.bits & (bytes - 1)) == 0;
}

/// Lanes in several allocations, or far apart in a large one, or at fault.
template <bool kStore, unsigned kWidth>
bool GlobalByGroups(Context& context, const Decoded& d, LaneMask on) {
  const Access& access = context.code->accesses[d.extra];
  AccessCache& cache = context.caches[d.extra];
  const std::uint32_t bytes = kWidth * access.elements;
  while (on != 0) {
    const int first = std::countr_zero(on);
    if (!Refill(context, cache, LaneAddress(context, access, first))) {
      return !ReportBadLane(context, d, access, on, bytes, kStore);
    }
    LaneMask group = 0;
    for (LaneMask rest = on; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      const std::uint64_t offset = LaneAddress(context, access, lane) - cache.base;
      const bool good = offset < cache.bytes && bytes <= cache.bytes - offset &&
                        offset <= 0xffffffffULL && offset % bytes == 0;
      group |= good ? 1U << static_cast<unsigned>(lane) : 0U;
    }
    if ((group >> static_cast<unsigned>(first) & 1U) == 0) {
      return !ReportBadLane(context, d, access, on, bytes, kStore);
    }
    if (kStore && cache.read_only) {
      ReportReadOnly(context, d, access, group, cache);
      return false;
    }
    LaneOffsets lanes;
    AddressOffsets(context, access, access.offset - cache.base, group, bytes, lanes);
    MoveValues<kStore, kWidth>(context, access, cache.host, lanes, group);
    CountGlobal<kStore>(context, access, context.counters[d.instruction], cache, lanes, group,
                        bytes);
    on &= ~group;
  }
  return true;
}

template <bool kStore, unsigned kWidth>
KP_SIMT_INLINE bool GlobalBody(Context& context, const Decoded& d, LaneMask on) {
  const Access& access = context.code->accesses[d.extra];
  AccessCache& cache = context.caches[d.extra];
  const std::uint32_t bytes = kWidth * access.elements;
  InstructionCounters& n = context.counters[d.instruction];
  ++n.requests;
  context.warp->polled = context.warp->polled || access.strong;
  if constexpr (kStore) {
    context.machine->last_progress = context.machine->executed;
  }
  LaneOffsets lanes;
  AddressOffsets(context, access, access.offset - cache.base, on, bytes, lanes);
  if (!Fits(lanes, cache, bytes) || (kStore && cache.read_only)) {
    return GlobalByGroups<kStore, kWidth>(context, d, on);
  }
  MoveValues<kStore, kWidth>(context, access, cache.host, lanes, on);
  CountGlobal<kStore>(context, access, n, cache, lanes, on, bytes);
  return true;
}

int FirstOutside(const LaneOffsets& lanes, LaneMask on, std::uint64_t limit, std::uint32_t bytes) {
  for (LaneMask rest = on; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    if (std::uint64_t{lanes.at[lane]} + bytes > limit || lanes.at[lane] % bytes != 0) {
      return lane;
    }
  }
  return std::countr_zero(on);
}

bool SharedFault(Context& context, const Decoded& d, const LaneOffsets& lanes, LaneMask on,
                 std::uint32_t bytes, bool store) {
  const std::uint64_t limit = context.cta->shared_bytes;
  const int lane = FirstOutside(lanes, on, limit, bytes);
  ReportSharedBounds(context, d, lane, lanes.at[lane], bytes, store);
  return false;
}

void CheckRaces(Context& context, const Decoded& d, const Access& access, const LaneOffsets& lanes,
                LaneMask on, std::uint32_t bytes, bool store) {
  RaceDetector& race = *context.cta->race;
  if (access.strong) {
    race.Acquire(context, lanes.at, on);
  }
  if (store) {
    race.Write(context, d, lanes.at, on, bytes);
  } else {
    race.Read(context, d, lanes.at, on, bytes);
  }
  if (access.strong && store) {
    race.ReleaseTo(context, lanes.at, on);
  }
}

template <bool kStore, unsigned kWidth>
KP_SIMT_INLINE bool SharedBody(Context& context, const Decoded& d, LaneMask on) {
  const Access& access = context.code->accesses[d.extra];
  const std::uint32_t bytes = kWidth * access.elements;
  InstructionCounters& n = context.counters[d.instruction];
  ++n.requests;
  context.warp->polled = context.warp->polled || access.strong;
  if constexpr (kStore) {
    context.machine->last_progress = context.machine->executed;
  }
  const std::uint64_t window = access.space == ptx::Space::kGeneric ? kSharedWindow : 0;
  LaneOffsets lanes;
  AddressOffsets(context, access, access.offset - window, on, bytes, lanes);
  if (!lanes.inside_4g || std::uint64_t{lanes.highest} + bytes > context.cta->shared_bytes ||
      (lanes.bits & (bytes - 1)) != 0) {
    return SharedFault(context, d, lanes, on, bytes, kStore);
  }
  if (context.cta->race != nullptr) {
    CheckRaces(context, d, access, lanes, on, bytes, kStore);
  }
  MoveValues<kStore, kWidth>(context, access, context.cta->shared.data(), lanes, on);
  const std::uint32_t wavefronts = CountWavefronts(lanes, on, bytes);
  const auto touched = static_cast<std::uint32_t>(std::popcount(on)) * bytes;
  n.wavefronts += wavefronts;
  n.ideal_wavefronts += std::min(wavefronts, (touched + 127) / 128);
  n.bytes += touched;
  n.address_bits |= lanes.bits;
  return true;
}

template <bool kStore, unsigned kWidth>
bool GlobalBase(Context& context, const Decoded& d, LaneMask on) {
  return GlobalBody<kStore, kWidth>(context, d, on);
}

template <bool kStore, unsigned kWidth>
bool SharedBase(Context& context, const Decoded& d, LaneMask on) {
  return SharedBody<kStore, kWidth>(context, d, on);
}

template <bool kStore, unsigned kWidth>
KP_SIMT_V3 bool GlobalV3(Context& context, const Decoded& d, LaneMask on) {
  return GlobalBody<kStore, kWidth>(context, d, on);
}

template <bool kStore, unsigned kWidth>
KP_SIMT_V3 bool SharedV3(Context& context, const Decoded& d, LaneMask on) {
  return SharedBody<kStore, kWidth>(context, d, on);
}

template <bool kStore, unsigned kWidth>
Operation Global() {
  return HasV3() ? GlobalV3<kStore, kWidth> : GlobalBase<kStore, kWidth>;
}

template <bool kStore, unsigned kWidth>
Operation Shared() {
  return HasV3() ? SharedV3<kStore, kWidth> : SharedBase<kStore, kWidth>;
}

/// The space is found at run time; usually all lanes are in one.
template <bool kStore, unsigned kWidth>
bool Generic(Context& context, const Decoded& d, LaneMask on) {
  const Access& access = context.code->accesses[d.extra];
  while (on != 0) {
    const SpaceGroup group = GroupBySpace(context, access, on);
    bool good = false;
    switch (group.space) {
      case ptx::Space::kShared:
        good = Shared<kStore, kWidth>()(context, d, group.lanes);
        break;
      case ptx::Space::kLocal:
        good = RunLocal(context, d, group.lanes);
        break;
      case ptx::Space::kParam:
        good = RunLaunchParameter(context, d, group.lanes);
        break;
      default:
        good = Global<kStore, kWidth>()(context, d, group.lanes);
    }
    if (!good) {
      return false;
    }
    on &= ~group.lanes;
  }
  return true;
}

template <bool kStore, unsigned kWidth>
Operation SelectSpace(ptx::Space space) {
  switch (space) {
    case ptx::Space::kGlobal:
    case ptx::Space::kConst:
      return Global<kStore, kWidth>();
    case ptx::Space::kShared:
      return Shared<kStore, kWidth>();
    case ptx::Space::kLocal:
      return RunLocal;
    case ptx::Space::kParam:
      return kStore ? nullptr : RunLaunchParameter;
    case ptx::Space::kGeneric:
      return Generic<kStore, kWidth>;
    default:
      return nullptr;
  }
}

template <unsigned kWidth>
Operation SelectDirection(const Access& access) {
  return access.is_store ? SelectSpace<true, kWidth>(access.space)
                         : SelectSpace<false, kWidth>(access.space);
}

}  // namespace

Operation SelectAccess(const Access& access) {
  switch (access.width) {
    case 1:
      return SelectDirection<1>(access);
    case 2:
      return SelectDirection<2>(access);
    case 4:
      return SelectDirection<4>(access);
    case 8:
      return SelectDirection<8>(access);
    default:
      return nullptr;
  }
}

}  // namespace kernelpro::simt
