// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/result.h"

namespace kernelpro {

/// SplitMix64 (Steele et al., OOPSLA 2014): small, fast, and any stream can be forked from a seed
/// and an index, so the same seed gives the same run. Not for secrets: those come from SecretSeed.
class Rng {
 public:
  explicit Rng(std::uint64_t seed) : state_(seed) {}

  [[nodiscard]] std::uint64_t Next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31U);
  }

  /// Uniform in [0, 1) with 53 random bits.
  [[nodiscard]] double Uniform() { return static_cast<double>(Next() >> 11U) * 0x1.0p-53; }

  /// Uniform in [0, bound); bound > 0. Lemire's multiplication without rejection: the bias of less
  /// than bound / 2^64 is far below anything that is measured here.
  [[nodiscard]] std::uint64_t Below(std::uint64_t bound) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<Wide>(Next()) * bound) >> 64U);
  }

  /// An independent stream for part `index` of the work.
  [[nodiscard]] Rng Fork(std::uint64_t index) const {
    Rng mixed(state_ ^ (index * 0xd1342543de82ef95ULL + 0x632be59bd9b4e019ULL));
    return Rng(mixed.Next());
  }

 private:
  std::uint64_t state_;
};

/// 64 bits that a candidate cannot predict (getrandom).
[[nodiscard]] Result<std::uint64_t> SecretSeed();

}  // namespace kernelpro
