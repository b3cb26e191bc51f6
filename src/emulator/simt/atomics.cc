// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include "emulator/simt/access.h"
#include "emulator/simt/faults.h"
#include "emulator/simt/operations.h"
#include "emulator/simt/race.h"

/// atom and red. Lanes go one after the other, lowest first: one of the orders that the hardware
/// could take, and always the same.
namespace kernelpro::simt {
namespace {

/// Bits of one element, updated by another; `compare` only for cas.
using Update = std::uint64_t (*)(std::uint64_t old, std::uint64_t operand, std::uint64_t compare);

template <class T>
T As(std::uint64_t bits) {
  if constexpr (sizeof(T) == 8) {
    return std::bit_cast<T>(bits);
  } else {
    return std::bit_cast<T>(static_cast<std::uint32_t>(bits));
  }
}

template <class T>
std::uint64_t BitsOf(T value) {
  if constexpr (sizeof(T) == 8) {
    return std::bit_cast<std::uint64_t>(value);
  } else {
    return std::bit_cast<std::uint32_t>(value);
  }
}

template <class T>
std::uint64_t Add(std::uint64_t old, std::uint64_t operand, std::uint64_t /*compare*/) {
  if constexpr (std::is_integral_v<T>) {
    return BitsOf<T>(static_cast<T>(As<T>(old) + As<T>(operand)));
  } else {
    const T sum = As<T>(old) + As<T>(operand);
    return std::isnan(sum) && sizeof(T) == 4 ? 0x7fffffffULL : BitsOf<T>(sum);
  }
}

template <class T>
std::uint64_t Min(std::uint64_t old, std::uint64_t operand, std::uint64_t /*compare*/) {
  return As<T>(operand) < As<T>(old) ? operand : old;
}

template <class T>
std::uint64_t Max(std::uint64_t old, std::uint64_t operand, std::uint64_t /*compare*/) {
  return As<T>(old) < As<T>(operand) ? operand : old;
}

std::uint64_t Inc(std::uint64_t old, std::uint64_t operand, std::uint64_t /*compare*/) {
  return old >= operand ? 0 : old + 1;
}

std::uint64_t Dec(std::uint64_t old, std::uint64_t operand, std::uint64_t /*compare*/) {
  return old == 0 || old > operand ? operand : old - 1;
}

std::uint64_t And(std::uint64_t old, std::uint64_t operand, std::uint64_t /*compare*/) {
  return old & operand;
}

std::uint64_t Or(std::uint64_t old, std::uint64_t operand, std::uint64_t /*compare*/) {
  return old | operand;
}

std::uint64_t Xor(std::uint64_t old, std::uint64_t operand, std::uint64_t /*compare*/) {
  return old ^ operand;
}

std::uint64_t Exch(std::uint64_t /*old*/, std::uint64_t operand, std::uint64_t /*compare*/) {
  return operand;
}

/// PTX: atom.cas d, [a], b, c stores c where the old value equals b.
std::uint64_t Cas(std::uint64_t old, std::uint64_t operand, std::uint64_t compare) {
  return old == compare ? operand : old;
}

/// On global memory atom.add.f32 takes subnormal inputs and results for zeros of their sign; on
/// shared memory it does not (PTX manual).
std::uint64_t AddFlushed(std::uint64_t old, std::uint64_t operand, std::uint64_t compare) {
  const auto flush = [](std::uint64_t bits) {
    return (bits & 0x7f800000U) == 0 ? bits & 0x80000000U : bits;
  };
  return flush(Add<float>(flush(old), flush(operand), compare));
}

/// The adders of 16-bit floats are the arithmetic handlers, run on one lane.
AluHandler HalfAdder(ptx::Type type) {
  ptx::Instruction add;
  add.parts = {"add", std::string(ptx::Name(type))};
  add.opcode = fmt::format("add.{}", ptx::Name(type));
  return SelectAlu(add).run;
}

template <ptx::Type kType>
std::uint64_t AddHalves(std::uint64_t old, std::uint64_t operand, std::uint64_t /*compare*/) {
  static const AluHandler kAdder = HalfAdder(kType);
  alignas(128) std::byte block[3 * 128] = {};
  WriteAs(block + 128, static_cast<std::uint32_t>(old));
  WriteAs(block + 256, static_cast<std::uint32_t>(operand));
  AluOperands operands;
  operands.src[0] = 128;
  operands.src[1] = 256;
  kAdder(block, operands, 1);
  return ReadAs<std::uint32_t>(block) &
         (kType == ptx::Type::kF16 || kType == ptx::Type::kBF16 ? 0xffffU : 0xffffffffU);
}

template <ptx::Type kType>
Update HalfAdd() {
  return HalfAdder(kType) == nullptr ? nullptr : AddHalves<kType>;
}

Update SelectFloat(AtomicOp op, ptx::Type type) {
  using ptx::Type;
  if (op != AtomicOp::kAdd) {
    return nullptr;
  }
  switch (type) {
    case Type::kF32:
      return Add<float>;
    case Type::kF64:
      return Add<double>;
    case Type::kF16:
      return HalfAdd<Type::kF16>();
    case Type::kF16x2:
      return HalfAdd<Type::kF16x2>();
    case Type::kBF16:
      return HalfAdd<Type::kBF16>();
    case Type::kBF16x2:
      return HalfAdd<Type::kBF16x2>();
    default:
      return nullptr;
  }
}

template <class T>
Update SelectOrdered(AtomicOp op) {
  switch (op) {
    case AtomicOp::kAdd:
      return Add<std::make_unsigned_t<T>>;
    case AtomicOp::kMin:
      return Min<T>;
    case AtomicOp::kMax:
      return Max<T>;
    default:
      return nullptr;
  }
}

Update SelectUpdate(AtomicOp op, ptx::Type type) {
  using ptx::Type;
  switch (op) {
    case AtomicOp::kExch:
      return Exch;
    case AtomicOp::kCas:
      return Cas;
    case AtomicOp::kAnd:
      return And;
    case AtomicOp::kOr:
      return Or;
    case AtomicOp::kXor:
      return Xor;
    case AtomicOp::kInc:
      return type == Type::kU32 ? Inc : nullptr;
    case AtomicOp::kDec:
      return type == Type::kU32 ? Dec : nullptr;
    default:
      break;
  }
  switch (type) {
    case Type::kU32:
      return SelectOrdered<std::uint32_t>(op);
    case Type::kS32:
      return SelectOrdered<std::int32_t>(op);
    case Type::kU64:
      return SelectOrdered<std::uint64_t>(op);
    case Type::kS64:
      return SelectOrdered<std::int64_t>(op);
    default:
      return SelectFloat(op, type);
  }
}

std::uint64_t Value(const Context& context, std::uint32_t slot, bool is_64, int lane) {
  return is_64 ? ReadAs<std::uint64_t>(context.registers + slot + lane * 8)
               : ReadAs<std::uint32_t>(context.registers + slot + lane * 4);
}

/// The access proper, for lanes whose addresses have been checked.
template <AtomicOp kOp, ptx::Type kType, bool kGlobal>
bool Apply(Context& context, const Access& access, std::byte* host, int lane) {
  constexpr bool kFlushes = kGlobal && kOp == AtomicOp::kAdd && kType == ptx::Type::kF32;
  static const Update kUpdate = kFlushes ? AddFlushed : SelectUpdate(kOp, kType);
  bool changed = false;
  const bool is_64 = access.width == 8;
  for (std::uint32_t e = 0; e < access.elements; ++e) {
    std::byte* const at = host + e * access.width;
    std::uint64_t old = 0;
    std::memcpy(&old, at, access.width);
    const std::uint64_t first =
        Value(context, access.operand[e], is_64, lane) & (~0ULL >> (64U - access.width * 8U));
    const std::uint64_t second =
        kOp == AtomicOp::kCas ? Value(context, access.operand2, is_64, lane) : first;
    const std::uint64_t now = kUpdate(old, second, first);
    std::memcpy(at, &now, access.width);
    changed = changed || std::memcmp(&old, &now, access.width) != 0;
    if (access.value[e] != kNoSlot) {
      std::byte* const slot = context.registers + access.value[e];
      if (access.value_64[e]) {
        WriteAs(slot + lane * 8, old);
      } else {
        WriteAs(slot + lane * 4, static_cast<std::uint32_t>(old));
      }
    }
  }
  return changed;
}

/// Requests, sectors, and contention: every lane's operation lands on a 32-byte sector.
void CountGlobalAtomic(Context& context, const Access& access, const Decoded& d, LaneMask on) {
  InstructionCounters& n = context.counters[d.instruction];
  const std::uint32_t bytes = access.width * std::uint32_t{access.elements};
  std::uint64_t sectors[kWarpSize];
  std::uint32_t lanes[kWarpSize];
  std::uint32_t count = 0;
  std::uint32_t lines = 0;
  for (LaneMask rest = on; rest != 0; rest &= rest - 1) {
    const std::uint64_t address = LaneAddress(context, access, std::countr_zero(rest));
    n.address_bits |= static_cast<std::uint32_t>(address);
    const std::uint64_t sector = address / 32;
    std::uint32_t i = 0;
    bool line_known = false;
    for (; i < count && sectors[i] != sector; ++i) {
      line_known = line_known || sectors[i] / 4 == sector / 4;
    }
    if (i < count) {
      ++lanes[i];
      continue;
    }
    lines += line_known ? 0U : 1U;
    sectors[count] = sector;
    lanes[count++] = 1;
  }
  n.sectors += count;
  n.lines += lines;
  n.ideal_sectors +=
      std::min(count, (static_cast<std::uint32_t>(std::popcount(on)) * bytes + 31) / 32);
  CountBytes(n, on, bytes);
  AccessCache& cache = context.caches[d.extra];
  for (std::uint32_t i = 0; i < count; ++i) {
    context.machine->traffic.Atomic(sectors[i] * 32, lanes[i]);
    const Allocation* allocation = context.machine->memory->Find(sectors[i] * 32);
    if (allocation == nullptr) {
      continue;
    }
    AllocationUse& use = cache.use != nullptr && cache.use->allocation == allocation
                             ? *cache.use
                             : *context.machine->traffic.Of(*allocation);
    const std::uint64_t sector = sectors[i] - allocation->address / 32;
    SectorSet set;
    set.first = sector & ~3ULL;
    set.bits = 1ULL << (sector & 3ULL);
    Traffic::Mark(use.read, *allocation, 0, set);
    Traffic::Mark(use.written, *allocation, 0, set);
    if (context.machine->sampling) {
      context.machine->traffic.Store(use, 0, set);
    }
  }
}

template <AtomicOp kOp, ptx::Type kType>
bool GlobalAtomic(Context& context, const Decoded& d, LaneMask on) {
  const Access& access = context.code->accesses[d.extra];
  AccessCache& cache = context.caches[d.extra];
  const std::uint32_t bytes = access.width * std::uint32_t{access.elements};
  ++context.counters[d.instruction].requests;
  context.warp->polled = true;
  for (LaneMask rest = on; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint64_t address = LaneAddress(context, access, lane);
    std::uint64_t offset = address - cache.base;
    if (offset >= cache.bytes || bytes > cache.bytes - offset || address % bytes != 0) {
      const bool found = Refill(context, cache, address);
      offset = address - cache.base;
      if (!found || bytes > cache.bytes - offset || address % bytes != 0) {
        return !ReportBadLane(context, d, access, 1U << static_cast<unsigned>(lane), bytes, true);
      }
    }
    if (cache.read_only) {
      ReportReadOnly(context, d, access, 1U << static_cast<unsigned>(lane), cache);
      return false;
    }
    if (Apply<kOp, kType, true>(context, access, cache.host + offset, lane)) {
      context.machine->last_progress = context.machine->executed;
    }
  }
  CountGlobalAtomic(context, access, d, on);
  return true;
}

/// Lanes that hit the same bank go one after the other, also when they hit the same word.
std::uint32_t AtomicWavefronts(const std::uint32_t* offsets, LaneMask on) {
  std::uint32_t depth[32] = {};
  std::uint32_t most = 0;
  for (LaneMask rest = on; rest != 0; rest &= rest - 1) {
    most = std::max(most, ++depth[offsets[std::countr_zero(rest)] / 4 % 32]);
  }
  return most;
}

template <AtomicOp kOp, ptx::Type kType>
bool SharedAtomic(Context& context, const Decoded& d, LaneMask on) {
  const Access& access = context.code->accesses[d.extra];
  const std::uint32_t bytes = access.width * std::uint32_t{access.elements};
  const std::uint64_t window = access.space == ptx::Space::kGeneric ? kSharedWindow : 0;
  Cta& cta = *context.cta;
  InstructionCounters& n = context.counters[d.instruction];
  ++n.requests;
  context.warp->polled = true;
  std::uint32_t offsets[kWarpSize] = {};
  for (LaneMask rest = on; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint64_t offset = LaneAddress(context, access, lane) - window;
    if (offset >= cta.shared_bytes || bytes > cta.shared_bytes - offset || offset % bytes != 0) {
      ReportSharedBounds(context, d, lane, offset, bytes, true);
      return false;
    }
    offsets[lane] = static_cast<std::uint32_t>(offset);
    n.address_bits |= offsets[lane];
  }
  if (cta.race != nullptr) {
    cta.race->Acquire(context, offsets, on);
    cta.race->Read(context, d, offsets, on, bytes);
    cta.race->Write(context, d, offsets, on, bytes);
    cta.race->ReleaseTo(context, offsets, on);
  }
  for (LaneMask rest = on; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    if (Apply<kOp, kType, false>(context, access, cta.shared.data() + offsets[lane], lane)) {
      context.machine->last_progress = context.machine->executed;
    }
  }
  const std::uint32_t wavefronts = AtomicWavefronts(offsets, on);
  n.wavefronts += wavefronts;
  n.ideal_wavefronts += 1;
  CountBytes(n, on, bytes);
  return true;
}

template <AtomicOp kOp, ptx::Type kType>
bool GenericAtomic(Context& context, const Decoded& d, LaneMask on) {
  const Access& access = context.code->accesses[d.extra];
  while (on != 0) {
    const SpaceGroup group = GroupBySpace(context, access, on);
    const bool good = group.space == ptx::Space::kShared
                          ? SharedAtomic<kOp, kType>(context, d, group.lanes)
                          : GlobalAtomic<kOp, kType>(context, d, group.lanes);
    if (!good) {
      return false;
    }
    on &= ~group.lanes;
  }
  return true;
}

template <AtomicOp kOp, ptx::Type kType>
Operation SelectSpace(ptx::Space space) {
  switch (space) {
    case ptx::Space::kGlobal:
      return GlobalAtomic<kOp, kType>;
    case ptx::Space::kShared:
      return SharedAtomic<kOp, kType>;
    case ptx::Space::kGeneric:
      return GenericAtomic<kOp, kType>;
    default:
      return nullptr;
  }
}

template <AtomicOp kOp>
Operation SelectType(const Access& access) {
  using ptx::Type;
  switch (access.type) {
    case Type::kB16:
    case Type::kU16:
      return SelectSpace<kOp, Type::kB16>(access.space);
    case Type::kB32:
      return SelectSpace<kOp, Type::kB32>(access.space);
    case Type::kB64:
      return SelectSpace<kOp, Type::kB64>(access.space);
    case Type::kU32:
      return SelectSpace<kOp, Type::kU32>(access.space);
    case Type::kS32:
      return SelectSpace<kOp, Type::kS32>(access.space);
    case Type::kU64:
      return SelectSpace<kOp, Type::kU64>(access.space);
    case Type::kS64:
      return SelectSpace<kOp, Type::kS64>(access.space);
    case Type::kF32:
      return SelectSpace<kOp, Type::kF32>(access.space);
    case Type::kF64:
      return SelectSpace<kOp, Type::kF64>(access.space);
    case Type::kF16:
      return SelectSpace<kOp, Type::kF16>(access.space);
    case Type::kF16x2:
      return SelectSpace<kOp, Type::kF16x2>(access.space);
    case Type::kBF16:
      return SelectSpace<kOp, Type::kBF16>(access.space);
    case Type::kBF16x2:
      return SelectSpace<kOp, Type::kBF16x2>(access.space);
    default:
      return nullptr;
  }
}

}  // namespace

Operation SelectAtomic(const Access& access) {
  if (SelectUpdate(access.op, access.type) == nullptr) {
    return nullptr;
  }
  switch (access.op) {
    case AtomicOp::kAdd:
      return SelectType<AtomicOp::kAdd>(access);
    case AtomicOp::kMin:
      return SelectType<AtomicOp::kMin>(access);
    case AtomicOp::kMax:
      return SelectType<AtomicOp::kMax>(access);
    case AtomicOp::kInc:
      return SelectType<AtomicOp::kInc>(access);
    case AtomicOp::kDec:
      return SelectType<AtomicOp::kDec>(access);
    case AtomicOp::kAnd:
      return SelectType<AtomicOp::kAnd>(access);
    case AtomicOp::kOr:
      return SelectType<AtomicOp::kOr>(access);
    case AtomicOp::kXor:
      return SelectType<AtomicOp::kXor>(access);
    case AtomicOp::kExch:
      return SelectType<AtomicOp::kExch>(access);
    case AtomicOp::kCas:
      return SelectType<AtomicOp::kCas>(access);
  }
  return nullptr;
}

}  // namespace kernelpro::simt
