// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace kernelpro {

/// Half-open, in ns.
struct Interval {
  std::int64_t begin = 0, end = 0;
  friend bool operator==(const Interval&, const Interval&) = default;
};

/// Intervals that neither overlap nor touch, by time.
using IntervalSet = std::vector<Interval>;

/// The union; empty intervals vanish. O(n log n).
[[nodiscard]] IntervalSet Union(std::vector<Interval> intervals);
/// Linear in both.
[[nodiscard]] IntervalSet Intersection(const IntervalSet& a, const IntervalSet& b);
/// What of `window` is not in the set.
[[nodiscard]] IntervalSet Gaps(const IntervalSet& set, Interval window);
[[nodiscard]] double TotalNs(const IntervalSet& set);

}  // namespace kernelpro
