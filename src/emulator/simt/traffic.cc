// SPDX-License-Identifier: Apache-2.0
#include "emulator/simt/traffic.h"

#include <algorithm>
#include <bit>

namespace kernelpro::simt {
namespace {

constexpr std::uint64_t kLineBytes = 128;

/// Calls `visit(line, sectors)` for each 128-byte line of the set; lines are numbered over the
/// whole address space so that allocations do not alias.
template <class Visit>
void ForEachLine(std::uint64_t first_sector, const SectorSet& set, Visit visit) {
  if (set.count == 0) {
    std::uint64_t line = (first_sector + set.first) / 4;
    for (std::uint64_t bits = set.bits; bits != 0; bits >>= 4U, ++line) {
      if (const auto sectors = static_cast<std::uint32_t>(bits & 0xfU); sectors != 0) {
        visit(line, sectors);
      }
    }
    return;
  }
  for (std::uint32_t i = 0; i < set.count;) {
    const std::uint64_t line = (first_sector + set.list[i]) / 4;
    std::uint32_t sectors = 0;
    for (; i < set.count && (first_sector + set.list[i]) / 4 == line; ++i) {
      sectors |= 1U << ((first_sector + set.list[i]) % 4);
    }
    visit(line, sectors);
  }
}

std::uint64_t Count(const std::vector<std::uint64_t>& bitmap) {
  std::uint64_t count = 0;
  for (const std::uint64_t word : bitmap) {
    count += static_cast<std::uint64_t>(std::popcount(word));
  }
  return count;
}

std::uint64_t CountPairs(const std::vector<std::uint64_t>& bitmap) {
  std::uint64_t count = 0;
  for (const std::uint64_t word : bitmap) {
    count += static_cast<std::uint64_t>(std::popcount((word | word >> 1U) & 0x5555555555555555ULL));
  }
  return count;
}

}  // namespace

SectoredCache::SectoredCache(std::uint64_t bytes)
    : lines_(bytes / kLineBytes / kWays * kWays),
      sets_(static_cast<std::uint32_t>(bytes / kLineBytes / kWays)) {}

void SectoredCache::Clear() {
  std::fill(lines_.begin(), lines_.end(), Line{});
}

std::uint32_t SectoredCache::Lookup(std::uint64_t line, std::uint32_t sectors, bool allocate) {
  if (sets_ == 0) {
    return 0;
  }
  // Hashed sets, as the hardware's, so that power-of-two strides do not fall into one.
  const std::uint64_t hash = line * 0x9e3779b97f4a7c15ULL;
  Line* const set = &lines_[(hash >> 32U) % sets_ * kWays];
  ++clock_;
  Line* victim = set;
  for (std::uint32_t way = 0; way < kWays; ++way) {
    Line& entry = set[way];
    if (entry.tag == line) {
      const std::uint32_t hit = entry.sectors & sectors;
      entry.used = clock_;
      if (allocate) {
        entry.sectors |= sectors;
      }
      return hit;
    }
    if (entry.used < victim->used) {
      victim = &entry;
    }
  }
  if (allocate) {
    *victim = Line{.tag = line, .used = clock_, .sectors = sectors};
  }
  return 0;
}

void Traffic::Size(std::vector<std::uint64_t>& bitmap, const Allocation& allocation) {
  bitmap.resize(allocation.bytes / 32 / 64 + 3);
}

AllocationUse* Traffic::Of(const Allocation& allocation) {
  if (by_id_.size() <= allocation.id) {
    by_id_.resize(allocation.id + 1);
  }
  auto& use = by_id_[allocation.id];
  if (use == nullptr) {
    use = std::make_unique<AllocationUse>();
    use->allocation = &allocation;
  }
  return use.get();
}

void Traffic::Atomic(std::uint64_t sector, std::uint32_t lanes) {
  SectorAtomics& use = atomic_sectors_[sector];
  use.operations += lanes;
  ++use.requests;
}

void Traffic::StartCohort(std::uint64_t l1_bytes, std::uint64_t l2_bytes) {
  l1_ = SectoredCache(l1_bytes);
  l2_ = SectoredCache(l2_bytes);
}

std::uint32_t Traffic::Load(AllocationUse& use, std::uint64_t first_sector, const SectorSet& set,
                            bool skip_l1) {
  const std::uint64_t base = use.allocation->address / 32 + first_sector;
  std::uint32_t hits = 0;
  ForEachLine(base, set, [&](std::uint64_t line, std::uint32_t sectors) {
    const std::uint32_t hit = skip_l1 ? 0 : l1_.Lookup(line, sectors, true);
    hits += static_cast<std::uint32_t>(std::popcount(hit));
    if (const std::uint32_t missed = sectors & ~hit; missed != 0) {
      const std::uint32_t found = l2_.Lookup(line, missed, true);
      use.miss_read += static_cast<std::uint64_t>(std::popcount(missed & ~found));
    }
  });
  return hits;
}

void Traffic::Store(AllocationUse& use, std::uint64_t first_sector, const SectorSet& set) {
  const std::uint64_t base = use.allocation->address / 32 + first_sector;
  ForEachLine(base, set, [&](std::uint64_t line, std::uint32_t sectors) {
    // L1 writes through, and a store takes a line of it (Volta and later fetch the rest only when
    // it is read): streams of stores push out what loads brought in.
    static_cast<void>(l1_.Lookup(line, 0, true));
    const std::uint32_t found = l2_.Lookup(line, sectors, true);
    use.miss_write += static_cast<std::uint64_t>(std::popcount(sectors & ~found));
  });
}

std::vector<AllocationTraffic> Traffic::Summary() const {
  std::vector<AllocationTraffic> summary;
  for (const auto& use : by_id_) {
    if (use == nullptr) {
      continue;
    }
    summary.push_back(AllocationTraffic{.name = use->allocation->name,
                                        .total_sectors = (use->allocation->bytes + 31) / 32,
                                        .unique_read = Count(use->read),
                                        .unique_write = Count(use->written),
                                        .unique_read_granules = CountPairs(use->read),
                                        .miss_read = use->miss_read,
                                        .miss_write = use->miss_write});
  }
  return summary;
}

AtomicTraffic Traffic::Atomics() const {
  AtomicTraffic atomics;
  for (const auto& [sector, use] : atomic_sectors_) {
    atomics.operations += use.operations;
    atomics.hottest_sector_operations = std::max(atomics.hottest_sector_operations, use.operations);
    atomics.hottest_sector_requests = std::max(atomics.hottest_sector_requests, use.requests);
  }
  return atomics;
}

}  // namespace kernelpro::simt
