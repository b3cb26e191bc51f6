// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "emulator/simt/memory.h"
#include "emulator/simt/report.h"

namespace kernelpro::simt {

/// The distinct 32-byte sectors of one warp-level request within one allocation. `bits` marks
/// sectors first .. first+63 (first is a multiple of 4, the sectors of a 128-byte line); when they
/// lie farther apart, the ascending list is used instead (count > 0).
struct SectorSet {
  std::uint64_t first = 0;
  std::uint64_t bits = 0;
  std::uint32_t count = 0;
  std::uint32_t list[64];
};

/// A sectored, set-associative cache with least-recently-used replacement, in 128-byte lines.
class SectoredCache {
 public:
  explicit SectoredCache(std::uint64_t bytes = 0);
  void Clear();
  /// Looks `sectors` (4 bits) of a line up; those that are present are returned. Absent ones are
  /// brought in when `allocate`.
  std::uint32_t Lookup(std::uint64_t line, std::uint32_t sectors, bool allocate);

 private:
  struct Line {
    std::uint64_t tag = ~0ULL;
    std::uint64_t used = 0;
    std::uint32_t sectors = 0;
  };

  static constexpr std::uint32_t kWays = 16;
  std::vector<Line> lines_;
  std::uint32_t sets_ = 0;
  std::uint64_t clock_ = 0;
};

/// Which sectors of an allocation were read and written.
struct AllocationUse {
  const Allocation* allocation = nullptr;
  std::vector<std::uint64_t> read, written;  ///< bitmaps, sized on first use
  std::uint64_t miss_read = 0, miss_write = 0;
};

/// Memory traffic of a launch beyond single instructions.
class Traffic {
 public:
  AllocationUse* Of(const Allocation& allocation);

  /// Sets the sectors in a bitmap; `first_sector` is where the set's numbers start in it.
  static void Mark(std::vector<std::uint64_t>& bitmap, const Allocation& allocation,
                   std::uint64_t first_sector, const SectorSet& set) {
    if (bitmap.empty()) {
      Size(bitmap, allocation);
    }
    if (set.count == 0) {
      const std::uint64_t first = first_sector + set.first;
      const std::uint64_t shift = first % 64;
      bitmap[first / 64] |= set.bits << shift;
      if (shift != 0) {
        bitmap[first / 64 + 1] |= set.bits >> (64 - shift);
      }
      return;
    }
    for (std::uint32_t i = 0; i < set.count; ++i) {
      const std::uint64_t sector = first_sector + set.list[i];
      bitmap[sector / 64] |= 1ULL << (sector % 64);
    }
  }

  /// One warp-level request with `lanes` atomic operations on the sector at this device address.
  void Atomic(std::uint64_t sector, std::uint32_t lanes);

  void StartCohort(std::uint64_t l1_bytes, std::uint64_t l2_bytes);
  /// Through the simulated L1 and this cohort's share of L2; returns the sectors that hit in L1.
  std::uint32_t Load(AllocationUse& use, std::uint64_t first_sector, const SectorSet& set,
                     bool skip_l1);
  void Store(AllocationUse& use, std::uint64_t first_sector, const SectorSet& set);

  [[nodiscard]] std::vector<AllocationTraffic> Summary() const;
  [[nodiscard]] AtomicTraffic Atomics() const;

 private:
  static void Size(std::vector<std::uint64_t>& bitmap, const Allocation& allocation);

  std::vector<std::unique_ptr<AllocationUse>> by_id_;

  struct SectorAtomics {
    std::uint64_t operations = 0, requests = 0;
  };

  std::unordered_map<std::uint64_t, SectorAtomics> atomic_sectors_;
  SectoredCache l1_, l2_;
};

}  // namespace kernelpro::simt
