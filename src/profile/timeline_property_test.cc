// SPDX-License-Identifier: Apache-2.0
// AnalyseTimeline against its definitions, word by word and tick by tick, on random timelines.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "profile/interval_set.h"
#include "profile/test_repetition.h"
#include "profile/timeline.h"

namespace kernelpro {
namespace {

using Kind = TimelineEvent::Kind;
using Timeline = std::vector<TimelineEvent>;

constexpr std::uint32_t kSms = 132;

TimelineEvent Make(Kind kind, std::string name, std::int64_t start, std::int64_t end,
                   std::uint64_t correlation) {
  TimelineEvent event;
  event.kind = kind;
  event.name = std::move(name);
  event.start_ns = start;
  event.end_ns = end;
  event.correlation = correlation;
  return event;
}

double At(const std::map<std::string, Metric>& metrics, const std::string& name) {
  return metrics.at("timeline." + name).value;
}

/// The definitions of timeline.h, word by word and tick by tick.
class Slow {
 public:
  Slow(const Timeline& events, std::int64_t begin, std::int64_t end)
      : events_(events), begin_(begin), end_(end) {}

  template <class Which>
  bool Any(std::int64_t t, const Which& which) const {
    for (const TimelineEvent& e : events_) {
      if (which(e.kind) && e.start_ns <= t && t < e.end_ns) {
        return true;
      }
    }
    return false;
  }

  template <class Which>
  double Ticks(const Which& which) const {
    double ticks = 0;
    for (std::int64_t t = begin_; t < end_; ++t) {
      ticks += which(t) ? 1 : 0;
    }
    return ticks;
  }

  static bool Gpu(Kind k) { return Work(k) || k == Kind::kCopy || k == Kind::kSet; }

  static bool Work(Kind k) { return k == Kind::kKernel || k == Kind::kGraph; }

  bool Busy(std::int64_t t) const { return Any(t, Gpu); }

  /// 's' sync, 'l' launch, 'q' queued, 'o' other, 'b' busy.
  char Cause(std::int64_t t) const {
    if (Busy(t)) {
      return 'b';
    }
    std::int64_t from = t;
    std::int64_t to = t;
    while (from > begin_ && !Busy(from - 1)) {
      --from;
    }
    while (to < end_ && !Busy(to)) {
      ++to;
    }
    for (const TimelineEvent& next : events_) {
      for (const TimelineEvent& call : events_) {
        if (Gpu(next.kind) && next.start_ns == to && !Gpu(call.kind) && next.correlation != 0 &&
            call.correlation == next.correlation && call.end_ns <= from) {
          return 'q';
        }
      }
    }
    if (Any(t, [](Kind k) { return k == Kind::kAllocation || k == Kind::kCompile; })) {
      return 'o';
    }
    for (const TimelineEvent& wait : events_) {
      if (wait.kind == Kind::kSync && wait.end_ns > from && wait.end_ns <= to &&
          wait.start_ns <= t) {
        return 's';
      }
    }
    return 'l';
  }

 private:
  const Timeline& events_;
  std::int64_t begin_, end_;
};

Timeline Random(std::mt19937& random) {
  constexpr Kind kKinds[] = {Kind::kKernel, Kind::kKernel, Kind::kKernel,     Kind::kCopy,
                             Kind::kSet,    Kind::kSync,   Kind::kAllocation, Kind::kCompile,
                             Kind::kLaunch, Kind::kGraph};
  Timeline events;
  const std::size_t count = 1 + random() % 25;
  std::set<std::uint64_t> called;
  for (std::size_t i = 0; i < count; ++i) {
    const Kind kind = kKinds[random() % std::size(kKinds)];
    const std::int64_t start = random() % 150;
    std::uint64_t correlation = random() % 12;
    if (!Slow::Gpu(kind) && !called.insert(correlation).second) {
      correlation = 0;  // one call has one number
    }
    events.push_back(
        Make(kind, random() % 2 == 0 ? "a" : "b", start, start + random() % 15, correlation));
  }
  return events;
}

/// The window by trying: work in launch order, or by start when a launch is not known.
std::optional<Interval> WindowByTrying(const Timeline& events) {
  std::vector<const TimelineEvent*> work;
  bool known = true;
  for (const TimelineEvent& e : events) {
    if (Slow::Work(e.kind)) {
      work.push_back(&e);
      known = known && e.correlation != 0;
    }
  }
  std::stable_sort(work.begin(), work.end(), [&](const auto* a, const auto* b) {
    return known && a->correlation != b->correlation ? a->correlation < b->correlation
                                                     : a->start_ns < b->start_ns;
  });
  std::vector<std::uint32_t> items;
  std::vector<double> weights;
  double total = 0;
  for (const auto* e : work) {
    items.push_back((e->kind == Kind::kGraph ? 2U : 0U) + (e->name == "a" ? 1U : 0U));
    weights.push_back(static_cast<double>(e->end_ns - e->start_ns));
    total += weights.back();
  }
  std::size_t first = 0;
  std::size_t last = work.size();
  if (const auto found = RepetitionByTrying(items, weights, 3)) {
    const std::size_t end = found->first + found->length * found->repeats;
    double held = 0;
    for (std::size_t i = found->first; i < end; ++i) {
      held += weights[i];
    }
    if (held * 2 >= total) {
      first = found->first + found->length;
      last = end;
    }
  }
  if (work.empty()) {
    return std::nullopt;
  }
  Interval window{INT64_MAX, INT64_MIN};
  for (std::size_t i = first; i < last; ++i) {
    window.begin = std::min(window.begin, work[i]->start_ns);
    window.end = std::max(window.end, work[i]->end_ns);
  }
  return window;
}

TEST(TimelineProperty, AgreesWithCountingTicks) {
  std::mt19937 random(22);  // NOLINT(cert-msc51-cpp): the same cases every time
  int with_gaps = 0;
  for (int round = 0; round < 300; ++round) {
    const Timeline events = Random(random);
    const auto metrics = AnalyseTimeline(events, kSms);
    const auto window = WindowByTrying(events);
    ASSERT_EQ(metrics.empty(), !window.has_value());
    if (!window) {
      continue;
    }
    const auto [begin, end] = *window;
    ASSERT_EQ(At(metrics, "window_ns"), static_cast<double>(end - begin)) << round;
    if (end == begin) {
      continue;
    }
    const Slow slow(events, begin, end);
    const double share = 100.0 / static_cast<double>(end - begin);
    const auto of = [&](char cause) {
      return share * slow.Ticks([&](std::int64_t t) { return slow.Cause(t) == cause; });
    };
    const auto expect = [&](const char* name, double value) {
      EXPECT_NEAR(At(metrics, name), value, 1e-9) << name << " in round " << round;
    };
    expect("busy.pct", of('b'));
    expect("idle.pct", 100 - of('b'));
    expect("sync_gap.pct", of('s'));
    expect("queued_gap.pct", of('q'));
    expect("launch_gap.pct", of('l') + of('q'));
    with_gaps += of('s') > 0 && of('l') > 0 ? 1 : 0;
    const auto exposed = [&](std::int64_t t) {
      return slow.Any(t, [](Kind k) { return k == Kind::kCopy; }) && !slow.Any(t, Slow::Work);
    };
    expect("copy_exposed.pct", share * slow.Ticks(exposed));
    for (const auto& [name, kind] : {std::pair("launch_api.pct", Kind::kLaunch),
                                     std::pair("allocation.pct", Kind::kAllocation),
                                     std::pair("compile.pct", Kind::kCompile)}) {
      const auto covered = [&, kind = kind](std::int64_t t) {
        return slow.Any(t, [&](Kind k) { return k == kind; });
      };
      expect(name, share * slow.Ticks(covered));
    }
  }
  EXPECT_GT(with_gaps, 10);  // the cases are not all trivial
}

}  // namespace
}  // namespace kernelpro
