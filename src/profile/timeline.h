// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "kernelpro/profile.h"

namespace kernelpro {

/// What a timeline says about the whole run, as `timeline.*` metrics (measured). Events in any
/// order, of one GPU, with times between -2^61 and 2^61 ns. Pure; O(n log n).
///
/// The window: "work" is every kernel, and every graph that was traced as a whole, in the order of
/// the launches; where the program called cudaProfilerStart, only what ran from then to the last
/// cudaProfilerStop (all of it, should that be nothing). When a sequence of work (same names, grids
/// and blocks) repeats at least three times and holds half of the work's time, the window goes from
/// the second repeat's beginning to the last one's end: the first pays for warming up. Else from
/// the first work's beginning to the last end. All shares are of the window, in "%".
///
///   window_ns          its length
///   kernels, streams   kernels in it (of graphs traced as a whole: none), and their streams
///   kernel_median_ns   short_kernels.pct: share of kernels, by count, below 10 us
///   sequence_length, sequence_repeats   of the repeated sequence; without one the number of pieces
///                      of work, and 1
///   busy.pct           some kernel, graph, copy or set runs; idle.pct is the rest, and it splits:
///   sync_gap.pct       idle from a host's wait to the next work: the whole gap when a waiting call
///                      that began before it returns in it, else from the call on
///   launch_gap.pct     idle while the host launches or computes, and queued gaps
///   queued_gap.pct     the part of launch_gap.pct in which the next work had been launched before
///                      the gap began: the GPU's own time between two kernels
///   (the rest of idle) allocation and code loading
///   launch_api.pct, allocation.pct, compile.pct   host time in such calls, overlaps counted once;
///                      launches behind 256 others that have not begun are not counted: there the
///                      host is far ahead, and waits in the call once the driver's queue is full
///   copies, copy_bytes, copy_rate   copies over a link (not within the GPU's memory); rate is
///   bytes
///                      by the sum of their durations
///   copy_exposed.pct   time of copies that no kernel or graph covers
///   copy_pageable.pct  of their bytes
///   syncs, allocations host calls that end in the window
///   graph_launches     graphs that ran in the window or were launched in it
///   underfilled.pct    of kernel time (sum of durations): grids of fewer blocks than `sm_count`
///
/// Absent: everything without work; kernel_median_ns, short_kernels.pct and underfilled.pct without
/// kernels (the last also with sm_count 0: unknown); copy_rate and copy_pageable.pct without
/// copies. A wait that ends after the last work (the one at a program's end) is outside the window.
[[nodiscard]] std::map<std::string, Metric> AnalyseTimeline(std::span<const TimelineEvent> events,
                                                            std::uint32_t sm_count);

}  // namespace kernelpro
