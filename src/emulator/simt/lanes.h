// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "emulator/simt/handler.h"
#include "emulator/simt/isa.h"
#include "emulator/simt/traffic.h"

/// Where the lanes of a warp access memory, and what that costs. Written for the vectoriser: plain
/// loops over 32 lanes; lanes that are off repeat the first one that is on.
namespace kernelpro::simt {

struct LaneOffsets {
  alignas(64) std::uint32_t at[kWarpSize];  ///< from the start of the span
  std::uint32_t lowest = 0, highest = 0;
  std::uint32_t bits = 0;  ///< OR of the offsets
  bool inside_4g = false;  ///< every offset fits `at`
  bool all_on = false;
  /// By half-warp: 0 when every lane is right behind the one before, or at the same place (where
  /// blocks are 16 wide, a warp is two rows).
  std::uint32_t apart[2] = {1, 1}, spread[2] = {1, 1};

  [[nodiscard]] bool Contiguous(std::uint32_t stride) const {
    return all_on && (apart[0] | apart[1]) == 0 && at[16] - at[0] == 16 * stride;
  }
};

/// The summary of out.at; `stride` is the bytes of one lane's access.
KP_SIMT_INLINE void Summarise(std::uint32_t stride, LaneOffsets& out) {
  constexpr int kHalf = kWarpSize / 2;
  std::uint32_t lowest = out.at[0];
  std::uint32_t highest = out.at[0];
  std::uint32_t bits = 0;
  std::uint32_t apart0 = 0;
  std::uint32_t apart1 = 0;
  std::uint32_t spread0 = 0;
  std::uint32_t spread1 = 0;
  const std::uint32_t first0 = out.at[0];
  const std::uint32_t first1 = out.at[kHalf];
  for (int i = 0; i < kHalf; ++i) {
    const std::uint32_t a = out.at[i];
    const std::uint32_t b = out.at[i + kHalf];
    const std::uint32_t step = static_cast<std::uint32_t>(i) * stride;
    const std::uint32_t low = a < b ? a : b;
    const std::uint32_t high = a > b ? a : b;
    lowest = low < lowest ? low : lowest;
    highest = high > highest ? high : highest;
    bits |= a | b;
    spread0 |= a ^ first0;
    spread1 |= b ^ first1;
    apart0 |= (a - first0) ^ step;
    apart1 |= (b - first1) ^ step;
  }
  out.lowest = lowest;
  out.highest = highest;
  out.bits = bits;
  out.apart[0] = apart0;
  out.apart[1] = apart1;
  out.spread[0] = spread0;
  out.spread[1] = spread1;
}

/// Offsets of 64-bit lane addresses (address + delta).
KP_SIMT_INLINE void Offsets64(const std::uint64_t* address, std::uint64_t delta, LaneMask on,
                              std::uint32_t stride, LaneOffsets& out) {
  std::uint64_t high = 0;
  out.all_on = on == kAllLanes;
  if (on == kAllLanes) {
    for (int i = 0; i < kWarpSize; ++i) {
      const std::uint64_t o = address[i] + delta;
      out.at[i] = static_cast<std::uint32_t>(o);
      high |= o >> 32U;
    }
  } else {
    const std::uint64_t first = address[std::countr_zero(on)] + delta;
    for (int i = 0; i < kWarpSize; ++i) {
      const std::uint64_t o =
          (on >> static_cast<unsigned>(i) & 1U) != 0 ? address[i] + delta : first;
      out.at[i] = static_cast<std::uint32_t>(o);
      high |= o >> 32U;
    }
  }
  out.inside_4g = high == 0;
  Summarise(stride, out);
}

/// The same for 32-bit addresses; sums wrap as the hardware's do.
KP_SIMT_INLINE void Offsets32(const std::uint32_t* address, std::uint32_t delta, LaneMask on,
                              std::uint32_t stride, LaneOffsets& out) {
  const std::uint32_t first = address[std::countr_zero(on)] + delta;
  out.all_on = on == kAllLanes;
  for (int i = 0; i < kWarpSize; ++i) {
    const std::uint32_t o = address[i] + delta;
    out.at[i] = (on >> static_cast<unsigned>(i) & 1U) != 0 ? o : first;
  }
  out.inside_4g = true;
  Summarise(stride, out);
}

/// Ascending distinct sector numbers when they lie too far apart for a bit set.
std::uint32_t SortSectors(const LaneOffsets& lanes, std::uint32_t* list);

struct SectorCount {
  std::uint32_t sectors = 0, lines = 0;
};

/// Sectors of one half-warp as bits from sector `first`.
KP_SIMT_INLINE std::uint64_t HalfSectors(const LaneOffsets& lanes, int half, std::uint32_t first,
                                         std::uint32_t bytes) {
  const std::uint32_t* const at = lanes.at + half * 16;
  if (lanes.spread[half] == 0) {
    return 1ULL << ((at[0] >> 5U) - first);
  }
  if (lanes.apart[half] == 0) {
    const std::uint32_t from = (at[0] >> 5U) - first;
    const std::uint32_t to = ((at[15] + bytes - 1) >> 5U) - first;
    return (~0ULL << from) & (~0ULL >> (63U - to));
  }
  // The vector types make it variable shifts of four lanes.
  using Four32 [[gnu::vector_size(16)]] = std::uint32_t;
  using Four64 [[gnu::vector_size(32)]] = std::uint64_t;
  const Four64 one = {1, 1, 1, 1};
  Four64 bits = {0, 0, 0, 0};
  for (int i = 0; i < 16; i += 4) {
    Four32 offsets;
    std::memcpy(&offsets, at + i, sizeof offsets);
    bits |= one << __builtin_convertvector((offsets >> 5U) - first, Four64);
  }
  return bits[0] | bits[1] | bits[2] | bits[3];
}

/// The distinct sectors of a request whose lanes access `bytes` (naturally aligned, so never more
/// than one sector a lane).
KP_SIMT_INLINE SectorCount CountSectors(const LaneOffsets& lanes, std::uint32_t bytes,
                                        SectorSet& set) {
  const std::uint32_t first = lanes.lowest >> 5U & ~3U;
  const std::uint32_t last = (lanes.highest + bytes - 1) >> 5U;
  set.first = first;
  set.count = 0;
  if (last - first < 64) {
    const std::uint64_t bits =
        HalfSectors(lanes, 0, first, bytes) | HalfSectors(lanes, 1, first, bytes);
    set.bits = bits;
    const std::uint64_t lines =
        (bits | bits >> 1U | bits >> 2U | bits >> 3U) & 0x1111111111111111ULL;
    return SectorCount{static_cast<std::uint32_t>(std::popcount(bits)),
                       static_cast<std::uint32_t>(std::popcount(lines))};
  }
  set.first = 0;
  set.bits = 0;
  set.count = SortSectors(lanes, set.list);
  SectorCount count{set.count, 1};
  for (std::uint32_t i = 1; i < set.count; ++i) {
    count.lines += set.list[i] / 4 != set.list[i - 1] / 4 ? 1U : 0U;
  }
  return count;
}

/// Most distinct words in one bank, over the words of the lanes in `on`.
std::uint32_t BankDegree(const LaneOffsets& lanes, LaneMask on, std::uint32_t words);

/// Cycles of the shared memory's data stage: 32 banks of 4 bytes, equal words are broadcast.
/// 64-bit accesses go by half-warps unless the whole warp fits one cycle; 128-bit accesses always
/// go by half-warps (as ncu counts on sm_90).
KP_SIMT_INLINE std::uint32_t CountWavefronts(const LaneOffsets& lanes, LaneMask on,
                                             std::uint32_t bytes) {
  constexpr LaneMask kHalf = 0xffffU;
  if (lanes.Contiguous(bytes)) {
    return bytes <= 4 ? 1 : bytes / 4;
  }
  if ((lanes.highest + bytes - 1) / 4 - lanes.lowest / 4 < 32) {
    return bytes <= 8 || (on & kHalf) == 0 || (on & ~kHalf) == 0 ? 1 : 2;
  }
  if (bytes <= 8) {
    if (bytes <= 4) {
      LaneMask banks = 0;
      for (int i = 0; i < kWarpSize; ++i) {
        banks |= 1U << (lanes.at[i] / 4 % 32);
      }
      // Lanes that are off repeat one that is on, so they set no bank of their own.
      if (std::popcount(banks) == std::popcount(on)) {
        return 1;
      }
      return BankDegree(lanes, on, 1);
    }
    if (const std::uint32_t whole = BankDegree(lanes, on, 2); whole == 1) {
      return 1;
    }
  }
  const std::uint32_t words = bytes / 4;
  std::uint32_t wavefronts = 0;
  if ((on & kHalf) != 0) {
    wavefronts += BankDegree(lanes, on & kHalf, words);
  }
  if ((on & ~kHalf) != 0) {
    wavefronts += BankDegree(lanes, on & ~kHalf, words);
  }
  return wavefronts;
}

}  // namespace kernelpro::simt
