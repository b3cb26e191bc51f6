// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "emulator/simt/access.h"
#include "emulator/simt/faults.h"

namespace kernelpro::simt {

std::uint64_t LaneAddress(const Context& context, const Access& access, int lane) {
  const std::byte* const slot = context.registers + access.address;
  if (access.address_64) {
    return ReadAs<std::uint64_t>(slot + lane * 8) + access.offset;
  }
  return static_cast<std::uint32_t>(ReadAs<std::uint32_t>(slot + lane * 4) + access.offset);
}

bool Refill(Context& context, AccessCache& cache, std::uint64_t address) {
  const Allocation* allocation = context.machine->memory->Find(address);
  if (allocation == nullptr) {
    return false;
  }
  // In an allocation of more than 4 GiB the span starts at its last multiple of 2 GiB.
  const std::uint64_t skipped = (address - allocation->address) >> 31U << 31U;
  const std::uint64_t start =
      allocation->bytes > 0xffffffffULL ? (skipped == 0 ? 0 : skipped - (1ULL << 31U)) : 0;
  cache.base = allocation->address + start;
  cache.bytes = std::min<std::uint64_t>(allocation->bytes - start, 1ULL << 32U);
  cache.host = allocation->host + start;
  cache.first_sector = start / 32;
  cache.read_only = allocation->read_only;
  cache.use = context.machine->traffic.Of(*allocation);
  return true;
}

bool ReportBadLane(Context& context, const Decoded& d, const Access& access, LaneMask on,
                   std::uint32_t bytes, bool store) {
  for (LaneMask rest = on; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint64_t address = LaneAddress(context, access, lane);
    if (address % bytes != 0) {
      ReportMisaligned(context, d, lane, address, bytes, store);
      return true;
    }
    const Allocation* allocation = context.machine->memory->Find(address);
    if (allocation == nullptr || bytes > allocation->bytes - (address - allocation->address)) {
      Fault fault;
      DescribeBadAddress(*context.machine->memory, address, bytes, store, fault);
      context.machine->Report(context, d, lane, std::move(fault));
      return true;
    }
  }
  return false;
}

void ReportReadOnly(Context& context, const Decoded& d, const Access& access, LaneMask on,
                    const AccessCache& cache) {
  const int lane = std::countr_zero(on);
  const Allocation& allocation = *cache.use->allocation;
  Fault fault;
  fault.kind = FaultKind::kWriteToReadOnly;
  fault.address = LaneAddress(context, access, lane);
  fault.allocation = fmt::format("{}+{}", allocation.name, fault.address - allocation.address);
  fault.message = fmt::format("wrote at offset {} of '{}', which is read only",
                              fault.address - allocation.address, allocation.name);
  context.machine->Report(context, d, lane, std::move(fault));
}

void ReportSharedBounds(Context& context, const Decoded& d, int lane, std::uint64_t offset,
                        std::uint32_t bytes, bool store) {
  const std::uint64_t limit = context.cta->shared_bytes;
  if (offset % bytes != 0) {
    ReportMisaligned(context, d, lane, offset, bytes, store);
    return;
  }
  Fault fault;
  fault.kind = FaultKind::kSharedOutOfBounds;
  fault.address = offset;
  fault.message = fmt::format(
      "{} {} bytes at offset {} of shared memory, of which the block has {} bytes ({} static, {} "
      "dynamic)",
      store ? "wrote" : "read", bytes, offset, limit, context.machine->kernel->static_shared,
      context.machine->config->dynamic_shared);
  context.machine->Report(context, d, lane, std::move(fault));
}

SpaceGroup GroupBySpace(const Context& context, const Access& access, LaneMask on) {
  const auto space_of = [&](int lane) {
    const std::uint64_t address = LaneAddress(context, access, lane);
    if (address - kSharedWindow < kWindowBytes) {
      return ptx::Space::kShared;
    }
    if (address - kLocalWindow < kWindowBytes) {
      return ptx::Space::kLocal;
    }
    return address - kParamWindow < kWindowBytes ? ptx::Space::kParam : ptx::Space::kGlobal;
  };
  SpaceGroup group{space_of(std::countr_zero(on)), 0};
  for (LaneMask rest = on; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    group.lanes |= space_of(lane) == group.space ? 1U << static_cast<unsigned>(lane) : 0U;
  }
  return group;
}

namespace {

/// Element `e` of one lane, between memory and register.
void MoveElement(Context& context, const Access& access, std::uint32_t e, int lane,
                 std::byte* host) {
  if (access.value[e] == kNoSlot) {
    return;
  }
  const std::uint32_t lane_bytes = access.value_64[e] ? 8 : 4;
  std::byte* const slot =
      context.registers + access.value[e] + static_cast<std::uint32_t>(lane) * lane_bytes;
  if (access.is_store) {
    std::memcpy(host, slot, access.width);
    return;
  }
  std::uint64_t value = 0;
  std::memcpy(&value, host, access.width);
  if (access.sign_extend && access.width < 8) {
    const unsigned shift = 64U - access.width * 8U;
    value = static_cast<std::uint64_t>(static_cast<std::int64_t>(value << shift) >> shift);
  }
  std::memcpy(slot, &value, lane_bytes);
}

/// Local memory lies interleaved on the chip: the same word of 32 threads is one 128-byte line, so
/// a sector holds one word of eight neighbouring lanes.
void CountLocal(InstructionCounters& n, const std::uint64_t* offsets, LaneMask on,
                std::uint32_t bytes) {
  std::uint64_t keys[kWarpSize * 4];
  std::size_t count = 0;
  for (LaneMask rest = on; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    for (std::uint64_t word = offsets[lane] / 4; word <= (offsets[lane] + bytes - 1) / 4; ++word) {
      keys[count++] = word * 4 + lane / 8;
    }
  }
  std::sort(keys, keys + count);
  const auto end = std::unique(keys, keys + count);
  const auto sectors = static_cast<std::uint64_t>(end - keys);
  n.sectors += sectors;
  std::uint64_t lines = 0;
  for (std::uint64_t i = 0; i < sectors; ++i) {
    lines += i == 0 || keys[i] / 4 != keys[i - 1] / 4 ? 1U : 0U;
  }
  n.lines += lines;
  CountBytes(n, on, bytes);
  n.ideal_sectors += std::min<std::uint64_t>(
      sectors, (static_cast<std::uint64_t>(std::popcount(on)) * bytes + 31) / 32);
}

}  // namespace

void CountBytes(InstructionCounters& counters, LaneMask on, std::uint32_t bytes) {
  counters.bytes += static_cast<std::uint64_t>(std::popcount(on)) * bytes;
}

bool RunLocal(Context& context, const Decoded& d, LaneMask on) {
  const Access& access = context.code->accesses[d.extra];
  const std::uint32_t bytes = access.width * std::uint32_t{access.elements};
  const std::uint64_t window = access.space == ptx::Space::kGeneric ? kLocalWindow : 0;
  const std::uint64_t limit = context.cta->local_bytes;
  InstructionCounters& n = context.counters[d.instruction];
  ++n.requests;
  std::uint64_t offsets[kWarpSize] = {};
  for (LaneMask rest = on; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint64_t offset = LaneAddress(context, access, lane) - window;
    offsets[lane] = offset;
    n.address_bits |= static_cast<std::uint32_t>(offset);
    if (offset >= limit || bytes > limit - offset || offset % bytes != 0) {
      Fault fault;
      fault.kind = offset % bytes != 0 ? FaultKind::kMisaligned : FaultKind::kLocalOutOfBounds;
      fault.address = offset;
      fault.message = fmt::format("{} {} bytes at offset {} of its local memory of {} bytes",
                                  access.is_store ? "wrote" : "read", bytes, offset, limit);
      context.machine->Report(context, d, lane, std::move(fault));
      return false;
    }
    const std::uint64_t thread =
        context.warp->index * std::uint64_t{kWarpSize} + static_cast<std::uint64_t>(lane);
    std::byte* const host = context.cta->local.data() + thread * limit + offset;
    for (std::uint32_t e = 0; e < access.elements; ++e) {
      MoveElement(context, access, e, lane, host + e * access.width);
    }
  }
  CountLocal(n, offsets, on, bytes);
  return true;
}

/// The launch's parameter block through an address: structs indexed at run time, vector loads.
bool RunLaunchParameter(Context& context, const Decoded& d, LaneMask on) {
  const Access& access = context.code->accesses[d.extra];
  const std::uint32_t bytes = access.width * std::uint32_t{access.elements};
  const std::uint64_t window = access.space == ptx::Space::kGeneric ? kParamWindow : 0;
  const std::vector<std::byte>& parameters = context.machine->config->parameters;
  InstructionCounters& n = context.counters[d.instruction];
  ++n.requests;
  CountBytes(n, on, bytes);
  for (LaneMask rest = on; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint64_t offset = LaneAddress(context, access, lane) - window;
    if (access.is_store || offset >= parameters.size() || bytes > parameters.size() - offset) {
      Fault fault;
      fault.kind = access.is_store ? FaultKind::kWriteToReadOnly : FaultKind::kOutOfBounds;
      fault.address = offset;
      fault.message =
          fmt::format("{} {} bytes at offset {} of the kernel's {} bytes of parameters",
                      access.is_store ? "wrote" : "read", bytes, offset, parameters.size());
      context.machine->Report(context, d, lane, std::move(fault));
      return false;
    }
    for (std::uint32_t e = 0; e < access.elements; ++e) {
      std::uint64_t copy = 0;
      std::memcpy(&copy, parameters.data() + offset + e * access.width, access.width);
      MoveElement(context, access, e, lane, reinterpret_cast<std::byte*>(&copy));  // NOLINT
    }
  }
  return true;
}

}  // namespace kernelpro::simt
