// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace kernelpro {

/// A part of a sequence that repeats itself: `repeats` times the `length` items from `first` on.
struct Repetition {
  std::size_t first = 0, length = 0, repeats = 0;
};

/// The repetition with at least `least` whole repeats that holds the most weight; among equals the
/// shortest, then the earliest. Nothing when none is repeated that often. O(n log n).
///
/// All maximal repetitions of a sequence are found from its longest Lyndon words under both orders
/// (Bannai et al., "The 'Runs' Theorem", 2017); common prefixes are compared by hashes, so that an
/// equality is wrong with a chance below 2^-40 on sequences that were not made to fool them.
[[nodiscard]] std::optional<Repetition> FindRepetition(std::span<const std::uint32_t> items,
                                                       std::span<const double> weights,
                                                       std::size_t least);

}  // namespace kernelpro
