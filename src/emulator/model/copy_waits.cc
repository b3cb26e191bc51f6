// SPDX-License-Identifier: Apache-2.0
#include "emulator/model/copy_waits.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <vector>

#include "emulator/model/critical_path.h"
#include "emulator/ptx/control_flow.h"
#include "emulator/ptx/module.h"

namespace kernelpro::model {
namespace {

/// Segments and copies that are looked at for one wait: bounds the work on hostile kernels.
constexpr std::size_t kMostSteps = 1000;
constexpr double kUsually = 0.5;

/// Segments [begin, end) of the loop around a wait; empty outside loops.
struct LoopRange {
  std::size_t begin = 0, end = 0;
  std::size_t before = 0;  ///< the segment that leads into the loop
};

class Finder {
 public:
  Finder(const ptx::Function& kernel, std::span<const Segment> segments,
         std::span<const double> runs, std::span<const InstructionTiming> timing)
      : segments_(segments), runs_(runs), flow_(ptx::BuildControlFlow(kernel)) {
    for (std::size_t s = 0; s < segments.size(); ++s) {
      const bool ran = runs[s] > 0;
      cycles_.push_back(ran ? SegmentCycles(kernel, segments[s], timing) : 0);
      events_.push_back(ran ? CopyEvents(kernel, segments[s], timing) : std::vector<CopyEvent>());
    }
    for (const InstructionTiming& t : timing) {
      longest_ = std::max(longest_, t.copy_latency);
    }
  }

  [[nodiscard]] const std::vector<CopyEvent>& Events(std::size_t segment) const {
    return events_[segment];
  }

  [[nodiscard]] LoopRange LoopAround(std::size_t segment) const {
    const auto block_of = [this](const Segment& s) { return flow_.block_of[s.first]; };
    const std::uint32_t index = flow_.blocks[block_of(segments_[segment])].loop;
    if (index == ptx::kNoBlock) {
      return {};
    }
    const ptx::Loop& loop = flow_.loops[index];
    LoopRange range{.begin = segment, .end = segment + 1};
    while (range.begin > 0 && loop.Contains(block_of(segments_[range.begin - 1]))) {
      --range.begin;
    }
    while (range.end < segments_.size() && loop.Contains(block_of(segments_[range.end]))) {
      ++range.end;
    }
    const std::uint32_t dominator = flow_.blocks[loop.header].dominator;
    for (std::size_t s = 0; s < range.begin && dominator != ptx::kNoBlock; ++s) {
      range.before = block_of(segments_[s]) == dominator ? s : range.before;
    }
    return range;
  }

  /// When the copies are there that the `wait`-th event of the segment waits for, from the
  /// segment's start. Walks back from it: round its loop, or out of it towards the kernel's start,
  /// where `entries` is how often the loop was entered.
  [[nodiscard]] double Arrival(std::size_t segment, std::size_t wait, std::uint32_t left,
                               const LoopRange& loop, bool round, double entries) const {
    const CopyEvent& at = events_[segment][wait];
    Walk walk{.groups_left = left, .at = at.time};
    for (std::size_t e = wait; e-- > 0;) {
      walk.Pass(events_[segment][e], 0, false);
    }
    std::size_t s = segment;
    for (std::size_t step = 0; step < kMostSteps && walk.distance < longest_; ++step) {
      if (round && s == loop.begin) {
        s = loop.end;
      }
      if (s == 0) {
        break;
      }
      --s;
      const bool inside = s >= loop.begin && s < loop.end;
      const double ratio = runs_[s] / (inside ? runs_[segment] : entries);
      if (ratio <= 0) {
        continue;
      }
      // Of a loop in between, the last iteration is nearest; its others only take time.
      const double once = cycles_[s] * std::min(1.0, ratio);
      walk.distance += once;
      step += events_[s].size();
      for (const CopyEvent& event : events_[s] | std::views::reverse) {
        if (ratio >= kUsually) {
          walk.Pass(event, walk.distance, true);
        }
      }
      walk.distance += cycles_[s] * ratio - once;
    }
    return walk.arrival;
  }

 private:
  struct Walk {
    std::uint32_t groups_left = 0;  ///< newer groups that need not be there
    double at = 0;                  ///< when the warp comes to the wait
    double distance = 0;            ///< cycles from the segment looked at to that of the wait
    std::uint32_t waits = 1;        ///< passed since
    bool required = false;          ///< the group that is waited for, or an older one
    double arrival = 0;

    void Pass(const CopyEvent& event, double behind, bool earlier_segment) {
      switch (event.kind) {
        case CopyEvent::Kind::kCommit:
          required = required || groups_left == 0;
          groups_left -= groups_left == 0 ? 0 : 1;
          return;
        case CopyEvent::Kind::kWait:
          ++waits;
          return;
        case CopyEvent::Kind::kCopy:
          // Copies of the wait's own segment are followed where its schedule is made.
          if (required && earlier_segment && event.time - behind > at) {
            arrival = std::max(arrival, at + (event.time - behind - at) / waits);
          }
          return;
      }
    }
  };

  std::span<const Segment> segments_;
  std::span<const double> runs_;
  ptx::ControlFlow flow_;
  std::vector<double> cycles_;
  std::vector<std::vector<CopyEvent>> events_;
  double longest_ = 0;
};

}  // namespace

CopyWaits FindCopyWaits(const ptx::Function& kernel, std::span<const Segment> segments,
                        std::span<const double> runs, std::span<const InstructionTiming> timing) {
  CopyWaits out;
  out.steady.assign(timing.begin(), timing.end());
  out.first_runs.assign(segments.size(), 0);
  const bool waits = std::ranges::any_of(
      timing, [](const InstructionTiming& t) { return t.copies_left.has_value(); });
  if (!waits) {
    return out;
  }
  out.first = out.steady;
  const Finder finder(kernel, segments, runs, timing);
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const std::vector<CopyEvent>& events = finder.Events(s);
    const LoopRange loop = finder.LoopAround(s);
    const bool in_loop = loop.end > loop.begin;
    for (std::size_t e = 0; e < events.size(); ++e) {
      if (events[e].kind != CopyEvent::Kind::kWait) {
        continue;
      }
      const std::uint32_t i = events[e].instruction;
      const std::uint32_t left = timing[i].copies_left.value_or(0);
      const double entries = in_loop ? std::min(runs[s], runs[loop.before]) : runs[s];
      out.first_runs[s] = entries;
      if (entries > 0) {
        out.first[i].copies_arrive = finder.Arrival(s, e, left, loop, false, entries);
      }
      if (in_loop) {
        out.steady[i].copies_arrive = finder.Arrival(s, e, left, loop, true, entries);
      }
    }
  }
  return out;
}

}  // namespace kernelpro::model
