// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernelpro/profile.h"
#include "profile/interval_set.h"

namespace kernelpro {

/// The part of a timeline that is looked at: timeline.h says how it is chosen.
struct TimelineWindow {
  std::vector<const TimelineEvent*> work;  ///< kernels and whole graphs; empty: there is no window
  Interval window;
  std::size_t sequence_length = 0, sequence_repeats = 1;
};

/// Points into `events`.
[[nodiscard]] TimelineWindow FindTimelineWindow(std::span<const TimelineEvent> events);

/// A kernel, or a graph that was traced as a whole.
[[nodiscard]] bool IsWork(const TimelineEvent& event);

/// Never negative.
[[nodiscard]] double DurationNs(const TimelineEvent& event);

}  // namespace kernelpro
