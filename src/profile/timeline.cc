// SPDX-License-Identifier: Apache-2.0
#include "profile/timeline.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "profile/api_call.h"
#include "profile/interval_set.h"
#include "profile/repetition.h"

namespace kernelpro {
namespace {

using Kind = TimelineEvent::Kind;
using Event = TimelineEvent;

constexpr std::int64_t kShortKernelNs = 10'000;
constexpr std::size_t kRepeats = 3;

bool OnGpu(const Event& event) {
  return event.kind == Kind::kKernel || event.kind == Kind::kCopy || event.kind == Kind::kSet ||
         event.kind == Kind::kGraph;
}

bool IsWork(const Event& event) {
  return event.kind == Kind::kKernel || event.kind == Kind::kGraph;
}

/// Copies within one GPU's memory use no link.
bool IsTransfer(const Event& event) {
  return event.kind == Kind::kCopy && !event.name.starts_with("DtoD") &&
         !event.name.starts_with("DtoA") && !event.name.starts_with("AtoD") &&
         !event.name.starts_with("AtoA");
}

double Duration(const Event& event) {
  return event.end_ns > event.start_ns ? static_cast<double>(event.end_ns - event.start_ns) : 0;
}

struct Work {
  std::vector<const Event*> in_window;
  Interval window;
  std::size_t sequence_length = 0, sequence_repeats = 1;
};

bool IsCall(const Event& event, std::string_view runtime, std::string_view driver) {
  return event.kind == Kind::kApi && (event.name == runtime || event.name == driver);
}

/// From the first cudaProfilerStart to the last cudaProfilerStop after it; everything without them.
Interval ProfiledRange(std::span<const Event> events) {
  Interval range{INT64_MAX, INT64_MIN};
  for (const Event& event : events) {
    if (IsCall(event, "cudaProfilerStart", "cuProfilerStart")) {
      range.begin = std::min(range.begin, event.end_ns);
    } else if (IsCall(event, "cudaProfilerStop", "cuProfilerStop")) {
      range.end = std::max(range.end, event.start_ns);
    }
  }
  if (range.begin == INT64_MAX) {
    return {INT64_MIN, INT64_MAX};
  }
  return {range.begin, range.end > range.begin ? range.end : INT64_MAX};
}

/// The order of the launches where it is known, as that of the GPU is left to chance when there
/// are several streams.
std::vector<const Event*> WorkInOrder(std::span<const Event> events) {
  std::vector<const Event*> work;
  const Interval range = ProfiledRange(events);
  const auto inside = [&](const Event* e) {
    return e->start_ns >= range.begin && e->start_ns <= range.end;
  };
  for (const Event& event : events) {
    if (IsWork(event)) {
      work.push_back(&event);
    }
  }
  if (std::any_of(work.begin(), work.end(), inside)) {
    std::erase_if(work, [&](const Event* e) { return !inside(e); });
  }
  const bool launches_known =
      std::all_of(work.begin(), work.end(), [](const Event* e) { return e->correlation != 0; });
  std::stable_sort(work.begin(), work.end(), [&](const Event* a, const Event* b) {
    return std::tuple(launches_known ? a->correlation : 0, a->start_ns) <
           std::tuple(launches_known ? b->correlation : 0, b->start_ns);
  });
  return work;
}

std::optional<Repetition> Repeated(const std::vector<const Event*>& work) {
  const auto key = [](const Event& e) {
    return std::tuple(e.kind, std::string_view(e.name), e.grid[0], e.grid[1], e.grid[2], e.block[0],
                      e.block[1], e.block[2]);
  };
  std::map<decltype(key(*work.front())), std::uint32_t> numbers;
  std::vector<std::uint32_t> items;
  std::vector<double> weights;
  double total = 0;
  for (const Event* event : work) {
    const auto number = static_cast<std::uint32_t>(numbers.size());
    items.push_back(numbers.try_emplace(key(*event), number).first->second);
    weights.push_back(Duration(*event));
    total += weights.back();
  }
  const std::optional<Repetition> found = FindRepetition(items, weights, kRepeats);
  if (!found) {
    return std::nullopt;
  }
  double held = 0;
  for (std::size_t i = 0; i < found->length * found->repeats; ++i) {
    held += weights[found->first + i];
  }
  return held * 2 >= total ? found : std::nullopt;
}

Work FindWindow(std::span<const Event> events) {
  Work work;
  work.in_window = WorkInOrder(events);
  if (work.in_window.empty()) {
    return work;
  }
  work.sequence_length = work.in_window.size();
  if (const std::optional<Repetition> repetition = Repeated(work.in_window)) {
    work.sequence_length = repetition->length;
    work.sequence_repeats = repetition->repeats;
    const auto begin = work.in_window.begin() + static_cast<std::ptrdiff_t>(repetition->first);
    const auto count = static_cast<std::ptrdiff_t>(repetition->length * repetition->repeats);
    work.in_window = {begin + static_cast<std::ptrdiff_t>(repetition->length), begin + count};
  }
  work.window = {INT64_MAX, INT64_MIN};
  for (const Event* event : work.in_window) {
    work.window.begin = std::min(work.window.begin, event->start_ns);
    work.window.end = std::max({work.window.end, event->start_ns, event->end_ns});
  }
  return work;
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

class Analysis {
 public:
  Analysis(std::span<const Event> events, std::uint32_t sm_count)
      : events_(events), sm_count_(sm_count), work_(FindWindow(events)) {}

  std::map<std::string, Metric> Run() && {
    if (work_.in_window.empty()) {
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
    for (const Event* event : work_.in_window) {
      streams.insert(event->stream);
      if (event->kind != Kind::kKernel) {
        continue;
      }
      const double ns = Duration(*event);
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
    PutShare("launch_api.pct", TotalNs(Of(Kind::kLaunch)));
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
      time += Duration(event);
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
    for (const Event* event : work_.in_window) {
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
  Work work_;
  double length_ = 0;
  std::map<std::string, Metric> metrics_;
};

}  // namespace

std::map<std::string, Metric> AnalyseTimeline(std::span<const TimelineEvent> events,
                                              std::uint32_t sm_count) {
  return Analysis(events, sm_count).Run();
}

}  // namespace kernelpro
