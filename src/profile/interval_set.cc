// SPDX-License-Identifier: Apache-2.0
#include "profile/interval_set.h"

#include <algorithm>
#include <cstddef>

namespace kernelpro {

IntervalSet Union(std::vector<Interval> intervals) {
  std::erase_if(intervals, [](const Interval& i) { return i.end <= i.begin; });
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  IntervalSet set;
  for (const Interval& interval : intervals) {
    if (!set.empty() && interval.begin <= set.back().end) {
      set.back().end = std::max(set.back().end, interval.end);
    } else {
      set.push_back(interval);
    }
  }
  return set;
}

IntervalSet Intersection(const IntervalSet& a, const IntervalSet& b) {
  IntervalSet common;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const std::int64_t begin = std::max(a[i].begin, b[j].begin);
    const std::int64_t end = std::min(a[i].end, b[j].end);
    if (begin < end) {
      common.push_back({begin, end});
    }
    a[i].end < b[j].end ? ++i : ++j;
  }
  return common;
}

IntervalSet Gaps(const IntervalSet& set, Interval window) {
  IntervalSet gaps;
  std::int64_t from = window.begin;
  for (const Interval& interval : set) {
    if (interval.begin >= window.end) {
      break;
    }
    if (interval.begin > from) {
      gaps.push_back({from, interval.begin});
    }
    from = std::max(from, interval.end);
  }
  if (from < window.end) {
    gaps.push_back({from, window.end});
  }
  return gaps;
}

double TotalNs(const IntervalSet& set) {
  double total = 0;
  for (const Interval& interval : set) {
    total += static_cast<double>(interval.end - interval.begin);
  }
  return total;
}

}  // namespace kernelpro
