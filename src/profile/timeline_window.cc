// SPDX-License-Identifier: Apache-2.0
#include "profile/timeline_window.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>

#include "profile/repetition.h"

namespace kernelpro {
namespace {

using Event = TimelineEvent;
using Kind = TimelineEvent::Kind;

constexpr std::size_t kRepeats = 3;

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
    weights.push_back(DurationNs(*event));
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

}  // namespace

bool IsWork(const Event& event) {
  return event.kind == Kind::kKernel || event.kind == Kind::kGraph;
}

double DurationNs(const Event& event) {
  return event.end_ns > event.start_ns ? static_cast<double>(event.end_ns - event.start_ns) : 0;
}

TimelineWindow FindTimelineWindow(std::span<const TimelineEvent> events) {
  TimelineWindow found;
  found.work = WorkInOrder(events);
  if (found.work.empty()) {
    return found;
  }
  found.sequence_length = found.work.size();
  if (const std::optional<Repetition> repetition = Repeated(found.work)) {
    found.sequence_length = repetition->length;
    found.sequence_repeats = repetition->repeats;
    const auto begin = found.work.begin() + static_cast<std::ptrdiff_t>(repetition->first);
    const auto count = static_cast<std::ptrdiff_t>(repetition->length * repetition->repeats);
    found.work = {begin + static_cast<std::ptrdiff_t>(repetition->length), begin + count};
  }
  found.window = {INT64_MAX, INT64_MIN};
  for (const Event* event : found.work) {
    found.window.begin = std::min(found.window.begin, event->start_ns);
    found.window.end = std::max({found.window.end, event->start_ns, event->end_ns});
  }
  return found;
}

}  // namespace kernelpro
