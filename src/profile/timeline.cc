// SPDX-License-Identifier: Apache-2.0
#include "profile/timeline.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "profile/api_call.h"
#include "profile/interval_set.h"
#include "profile/timeline_window.h"

namespace kernelpro {
namespace {

using Kind = TimelineEvent::Kind;
using Event = TimelineEvent;

constexpr std::int64_t kShortKernelNs = 10'000;
/// A launch behind so many others that have not begun delays nothing; the driver makes the host
/// wait in it once its queue (about a thousand) is full.
constexpr std::ptrdiff_t kDeepQueue = 256;

bool OnGpu(const Event& event) {
  return event.kind == Kind::kKernel || event.kind == Kind::kCopy || event.kind == Kind::kSet ||
         event.kind == Kind::kGraph;
}

/// Copies within one GPU's memory use no link.
bool IsTransfer(const Event& event) {
  return event.kind == Kind::kCopy && !event.name.starts_with("DtoD") &&
         !event.name.starts_with("DtoA") && !event.name.starts_with("AtoD") &&
         !event.name.starts_with("AtoA");
}

template <class Which>
IntervalSet Covered(std::span<const Event> events, Interval window, const Which& which) {
  std::vector<Interval> intervals;
  for (const Event& event : events) {
    if (which(event)) {
      intervals.push_back(
          {std::max(event.start_ns, window.begin), std::min(event.end_ns, window.end)});
    }
  }
  return Union(std::move(intervals));
}

/// Splits the idle time by its cause.
class GapCauses {
 public:
  explicit GapCauses(std::span<const Event> events) {
    for (const Event& event : events) {
      if (event.kind == Kind::kSync) {
        waits_.push_back({event.start_ns, event.end_ns});
      }
      if (OnGpu(event)) {
        begins_.emplace_back(event.start_ns, event.correlation);
      } else if (event.correlation != 0) {
        launched_.try_emplace(event.correlation, event.end_ns);
      }
    }
    std::sort(waits_.begin(), waits_.end(),
              [](const Interval& a, const Interval& b) { return a.end < b.end; });
    std::sort(begins_.begin(), begins_.end());
  }

  void Split(const IntervalSet& gaps) {
    std::size_t wait = 0;
    for (const Interval& gap : gaps) {
      while (wait < waits_.size() && waits_[wait].end <= gap.begin) {
        ++wait;
      }
      if (Queued(gap)) {
        queued.push_back(gap);
        continue;
      }
      std::int64_t since = gap.end;
      for (; wait < waits_.size() && waits_[wait].end <= gap.end; ++wait) {
        since = std::min(since, std::max(gap.begin, waits_[wait].begin));
      }
      launch.push_back({gap.begin, since});
      sync.push_back({since, gap.end});
    }
  }

  std::vector<Interval> launch, sync, queued;

 private:
  /// Whether the work that ends the gap had been launched before it began.
  [[nodiscard]] bool Queued(Interval gap) const {
    auto next =
        std::lower_bound(begins_.begin(), begins_.end(), std::pair(gap.end, std::uint64_t{0}));
    for (; next != begins_.end() && next->first == gap.end; ++next) {
      const auto launch_end = launched_.find(next->second);
      if (launch_end != launched_.end() && launch_end->second <= gap.begin) {
        return true;
      }
    }
    return false;
  }

  std::vector<Interval> waits_;                                 ///< by end
  std::vector<std::pair<std::int64_t, std::uint64_t>> begins_;  ///< of GPU events, correlation
  std::unordered_map<std::uint64_t, std::int64_t> launched_;    ///< correlation -> end of its call
};

/// Host time in launching calls, without those behind a deep queue.
std::vector<Interval> LaunchCalls(std::span<const Event> events) {
  std::unordered_map<std::uint64_t, std::int64_t> first_work;  // by correlation
  for (const Event& event : events) {
    if (IsWork(event) && event.correlation != 0) {
      const auto [at, is_new] = first_work.try_emplace(event.correlation, event.start_ns);
      at->second = std::min(at->second, event.start_ns);
    }
  }
  std::vector<std::int64_t> launched;
  std::vector<std::int64_t> begun;
  for (const Event& event : events) {
    const auto work = first_work.find(event.correlation);
    if (event.kind == Kind::kLaunch && work != first_work.end()) {
      launched.push_back(event.start_ns);
      begun.push_back(work->second);
    }
  }
  std::sort(launched.begin(), launched.end());
  std::sort(begun.begin(), begun.end());
  std::vector<Interval> calls;
  for (const Event& event : events) {
    if (event.kind != Kind::kLaunch) {
      continue;
    }
    const auto before = std::lower_bound(launched.begin(), launched.end(), event.start_ns);
    const auto done = std::upper_bound(begun.begin(), begun.end(), event.start_ns);
    if ((before - launched.begin()) - (done - begun.begin()) < kDeepQueue) {
      calls.push_back({event.start_ns, event.end_ns});
    }
  }
  return calls;
}

class Analysis {
 public:
  Analysis(std::span<const Event> events, std::uint32_t sm_count)
      : events_(events), sm_count_(sm_count), work_(FindTimelineWindow(events)) {}

  std::map<std::string, Metric> Run() && {
    if (work_.work.empty()) {
      return {};
    }
    length_ = static_cast<double>(work_.window.end - work_.window.begin);
    Put("window_ns", length_, "ns");
    Put("sequence_length", static_cast<double>(work_.sequence_length), "");
    Put("sequence_repeats", static_cast<double>(work_.sequence_repeats), "");
    KernelMetrics();
    BusyAndGaps();
    HostCalls();
    Copies();
    GraphLaunches();
    return std::move(metrics_);
  }

 private:
  void Put(const char* name, double value, const char* unit) {
    metrics_[std::string("timeline.") + name] = {value, unit, Provenance::kMeasured};
  }

  void PutShare(const char* name, double ns) {
    Put(name, length_ > 0 ? 100 * ns / length_ : 0, "%");
  }

  [[nodiscard]] IntervalSet Of(Kind kind) const {
    return Covered(events_, work_.window, [&](const Event& e) { return e.kind == kind; });
  }

  void KernelMetrics() {
    std::vector<double> durations;
    std::set<std::uint32_t> streams;
    double total = 0;
    double underfilled = 0;
    std::size_t brief = 0;
    for (const Event* event : work_.work) {
      streams.insert(event->stream);
      if (event->kind != Kind::kKernel) {
        continue;
      }
      const double ns = DurationNs(*event);
      durations.push_back(ns);
      total += ns;
      brief += ns < kShortKernelNs ? 1 : 0;
      const double blocks = static_cast<double>(event->grid[0]) * event->grid[1] * event->grid[2];
      underfilled += blocks < sm_count_ ? ns : 0;
    }
    const auto count = static_cast<double>(durations.size());
    Put("kernels", count, "");
    Put("streams", static_cast<double>(streams.size()), "");
    if (durations.empty()) {
      return;
    }
    std::sort(durations.begin(), durations.end());
    const std::size_t half = durations.size() / 2;
    Put("kernel_median_ns",
        durations.size() % 2 == 1 ? durations[half] : (durations[half - 1] + durations[half]) / 2,
        "ns");
    Put("short_kernels.pct", 100 * static_cast<double>(brief) / count, "%");
    if (sm_count_ > 0 && total > 0) {
      Put("underfilled.pct", 100 * underfilled / total, "%");
    }
  }

  void BusyAndGaps() {
    const IntervalSet busy = Covered(events_, work_.window, OnGpu);
    const IntervalSet gaps = Gaps(busy, work_.window);
    PutShare("busy.pct", TotalNs(busy));
    PutShare("idle.pct", TotalNs(gaps));
    GapCauses causes(events_);
    causes.Split(gaps);
    const IntervalSet other = Covered(events_, work_.window, [](const Event& e) {
      return e.kind == Kind::kAllocation || e.kind == Kind::kCompile;
    });
    const auto without_other = [&](std::vector<Interval> part) {
      const IntervalSet set = Union(std::move(part));
      return TotalNs(set) - TotalNs(Intersection(set, other));
    };
    const double queued = TotalNs(Union(std::move(causes.queued)));
    PutShare("queued_gap.pct", queued);
    PutShare("launch_gap.pct", queued + without_other(std::move(causes.launch)));
    PutShare("sync_gap.pct", without_other(std::move(causes.sync)));
  }

  [[nodiscard]] bool InWindow(std::int64_t time) const {
    return time >= work_.window.begin && time <= work_.window.end;
  }

  void HostCalls() {
    double syncs = 0;
    double allocations = 0;
    for (const Event& event : events_) {
      if (InWindow(event.end_ns)) {
        syncs += event.kind == Kind::kSync ? 1 : 0;
        allocations += event.kind == Kind::kAllocation ? 1 : 0;
      }
    }
    Put("syncs", syncs, "");
    Put("allocations", allocations, "");
    PutShare("launch_api.pct", TotalNs(Intersection(Union(LaunchCalls(events_)), {work_.window})));
    PutShare("allocation.pct", TotalNs(Of(Kind::kAllocation)));
    PutShare("compile.pct", TotalNs(Of(Kind::kCompile)));
  }

  void Copies() {
    double copies = 0;
    double bytes = 0;
    double pageable = 0;
    double time = 0;
    for (const Event& event : events_) {
      if (!IsTransfer(event) || !InWindow(event.start_ns)) {
        continue;
      }
      copies += 1;
      bytes += static_cast<double>(event.bytes);
      pageable += event.pageable ? static_cast<double>(event.bytes) : 0;
      time += DurationNs(event);
    }
    const IntervalSet copying = Covered(events_, work_.window, IsTransfer);
    const IntervalSet working = Covered(events_, work_.window, IsWork);
    Put("copies", copies, "");
    Put("copy_bytes", bytes, "byte");
    PutShare("copy_exposed.pct", TotalNs(copying) - TotalNs(Intersection(copying, working)));
    if (bytes > 0) {
      Put("copy_pageable.pct", 100 * pageable / bytes, "%");
    }
    if (bytes > 0 && time > 0) {
      Put("copy_rate", bytes / time * 1e9, "byte/s");
    }
  }

  /// By what ran: the host may have launched it long before the window began.
  void GraphLaunches() {
    std::unordered_set<std::uint64_t> ran;
    double unknown = 0;
    double launched = 0;
    for (const Event* event : work_.work) {
      if (event->graph || event->kind == Kind::kGraph) {
        if (event->correlation != 0) {
          ran.insert(event->correlation);
        } else if (event->kind == Kind::kGraph) {
          unknown += 1;
        }
      }
    }
    std::unordered_set<std::uint64_t> known;
    for (const Event& event : events_) {
      if (event.correlation != 0 && (event.graph || event.kind == Kind::kGraph)) {
        known.insert(event.correlation);
      }
    }
    for (const Event& event : events_) {
      launched += event.kind == Kind::kLaunch && IsGraphLaunch(event.name) &&
                          InWindow(event.start_ns) && !known.contains(event.correlation)
                      ? 1
                      : 0;
    }
    // A launch and a graph that nothing joins may be the same one.
    Put("graph_launches", static_cast<double>(ran.size()) + std::max(unknown, launched), "");
  }

  std::span<const Event> events_;
  std::uint32_t sm_count_;
  TimelineWindow work_;
  double length_ = 0;
  std::map<std::string, Metric> metrics_;
};

}  // namespace

std::map<std::string, Metric> AnalyseTimeline(std::span<const TimelineEvent> events,
                                              std::uint32_t sm_count) {
  return Analysis(events, sm_count).Run();
}

}  // namespace kernelpro
