// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "profile/repetition.h"

namespace kernelpro {

/// FindRepetition by trying every beginning and length: cubic, for tests.
inline std::optional<Repetition> RepetitionByTrying(const std::vector<std::uint32_t>& items,
                                                    const std::vector<double>& weights,
                                                    std::size_t least) {
  std::optional<Repetition> best;
  double best_weight = 0;
  for (std::size_t length = 1; length <= items.size(); ++length) {
    for (std::size_t first = 0; first + length <= items.size(); ++first) {
      std::size_t end = first + length;
      while (end < items.size() && items[end] == items[end - length]) {
        ++end;
      }
      const std::size_t repeats = (end - first) / length;
      // Only where the stretch cannot be begun earlier.
      if (repeats < least || (first > 0 && items[first - 1] == items[first - 1 + length])) {
        continue;
      }
      double weight = 0;
      for (std::size_t i = first; i < first + repeats * length; ++i) {
        weight += weights[i];
      }
      if (!best || weight > best_weight) {
        best = {first, length, repeats};
        best_weight = weight;
      }
    }
  }
  return best;
}

}  // namespace kernelpro
