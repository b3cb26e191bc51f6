// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "emulator/simt/lanes.h"
#include "emulator/simt/machine.h"

namespace kernelpro::simt {

/// What a global or local or parameter request cost, added to its instruction's counters.
void CountBytes(InstructionCounters& counters, LaneMask on, std::uint32_t bytes);

/// Points the cache at the allocation around `address`; false when there is none.
[[nodiscard]] bool Refill(Context& context, AccessCache& cache, std::uint64_t address);

/// Address of one lane, before the span is subtracted.
[[nodiscard]] std::uint64_t LaneAddress(const Context& context, const Access& access, int lane);

/// Reports the first lane in `on` that cannot access `bytes` bytes of the allocation in `cache`
/// (already refilled for that lane, or not to be found); true when one was reported.
[[nodiscard]] bool ReportBadLane(Context& context, const Decoded& d, const Access& access,
                                 LaneMask on, std::uint32_t bytes, bool store);

void ReportReadOnly(Context& context, const Decoded& d, const Access& access, LaneMask on,
                    const AccessCache& cache);

void ReportSharedBounds(Context& context, const Decoded& d, int lane, std::uint64_t offset,
                        std::uint32_t bytes, bool store);

/// Lanes of `on` whose generic address is in the same space as the first one's, and that space.
struct SpaceGroup {
  ptx::Space space = ptx::Space::kGlobal;
  LaneMask lanes = 0;
};

[[nodiscard]] SpaceGroup GroupBySpace(const Context& context, const Access& access, LaneMask on);

// access_local.cc: not hot, one version.
[[nodiscard]] bool RunLocal(Context& context, const Decoded& d, LaneMask on);
[[nodiscard]] bool RunLaunchParameter(Context& context, const Decoded& d, LaneMask on);

template <class T>
T ReadAs(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <class T>
void WriteAs(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

}  // namespace kernelpro::simt
