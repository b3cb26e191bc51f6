// SPDX-License-Identifier: Apache-2.0
#include "emulator/simt/lanes.h"

#include <algorithm>

namespace kernelpro::simt {

std::uint32_t SortSectors(const LaneOffsets& lanes, std::uint32_t* list) {
  bool ascending = true;
  for (int i = 0; i < kWarpSize; ++i) {
    list[i] = lanes.at[i] >> 5U;
    ascending = ascending && (i == 0 || list[i] >= list[i - 1]);
  }
  if (!ascending) {
    std::sort(list, list + kWarpSize);
  }
  return static_cast<std::uint32_t>(std::unique(list, list + kWarpSize) - list);
}

std::uint32_t BankDegree(const LaneOffsets& lanes, LaneMask on, std::uint32_t words) {
  std::uint32_t word_of[kWarpSize * 4];
  std::uint8_t next[kWarpSize * 4];
  std::uint8_t head[32];
  std::uint8_t depth[32] = {};
  std::fill(std::begin(head), std::end(head), std::uint8_t{0xff});
  std::uint32_t degree = 0;
  std::uint8_t count = 0;
  for (LaneMask rest = on; rest != 0; rest &= rest - 1) {
    const std::uint32_t first = lanes.at[std::countr_zero(rest)] / 4;
    for (std::uint32_t w = 0; w < words; ++w) {
      const std::uint32_t word = first + w;
      const std::uint32_t bank = word % 32;
      std::uint8_t known = head[bank];
      while (known != 0xff && word_of[known] != word) {
        known = next[known];
      }
      if (known != 0xff) {
        continue;
      }
      word_of[count] = word;
      next[count] = head[bank];
      head[bank] = count++;
      degree = std::max<std::uint32_t>(degree, ++depth[bank]);
    }
  }
  return degree;
}

}  // namespace kernelpro::simt
