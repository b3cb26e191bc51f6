// SPDX-License-Identifier: Apache-2.0
#include "profile/activity_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/file.h"
#include "profile/activity_record.h"
#include "profile/api_call.h"
#include "profile/kernel_name.h"
#include "profile/metric_names.h"
#include "profile/timeline.h"

namespace kernelpro {
namespace {

using Event = ActivityRecords::Event;
using Kind = TimelineEvent::Kind;

constexpr std::uint64_t kLargestFile = 512ULL << 20U;
/// Of a name that is repeated in every event of a timeline.
constexpr std::size_t kEventName = 200;

struct Launches {
  std::vector<const Event*> events;
  double total_ns = 0;
  bool one_shape = true;
};

auto Shape(const Event& e) {
  const TimelineEvent& t = e.event;
  return std::tuple(t.grid[0], t.grid[1], t.grid[2], t.block[0], t.block[1], t.block[2],
                    e.registers, e.shared_static, e.shared_dynamic, e.local);
}

double Median(const std::vector<const Event*>& events) {
  std::vector<double> durations;
  durations.reserve(events.size());
  for (const Event* event : events) {
    durations.push_back(static_cast<double>(event->event.end_ns - event->event.start_ns));
  }
  std::sort(durations.begin(), durations.end());
  const std::size_t half = durations.size() / 2;
  return durations.size() % 2 == 1 ? durations[half] : (durations[half - 1] + durations[half]) / 2;
}

void AddShape(const Event& event, KernelProfile* kernel) {
  const auto add = [&](std::string_view name, double value, const char* unit) {
    kernel->metrics[std::string(name)] = {value, unit, Provenance::kMeasured};
  };
  const auto product = [](const std::uint32_t(&dim)[3]) {
    return static_cast<double>(dim[0]) * dim[1] * dim[2];
  };
  add(metric::kGridSize, product(event.event.grid), "");
  add(metric::kBlockSize, product(event.event.block), "thread");
  add(metric::kRegisters, event.registers, "register/thread");
  add(metric::kSharedStatic, event.shared_static, "byte/block");
  add(metric::kSharedDynamic, event.shared_dynamic, "byte/block");
  add("launch__local_mem_per_thread", event.local, "byte/thread");
}

class Joiner {
 public:
  Joiner(ActivityRecords records, std::string label)
      : records_(std::move(records)), label_(std::move(label)) {}

  Profile Join() && {
    profile_.source = label_;
    ChooseDevice();
    DropInnerCalls();
    NameCalls();
    AddKernels();
    MakeTimeline();
    AddNotes();
    return std::move(profile_);
  }

 private:
  const ActivityRecords::Name& NameOf(std::uint64_t id) const {
    static const ActivityRecords::Name kUnknown = {"?", ""};
    const auto found = records_.names.find(id);
    return found == records_.names.end() ? kUnknown : found->second;
  }

  /// Several GPUs at once have no common window: the busiest is looked at.
  void ChooseDevice() {
    std::map<std::uint32_t, double> time;
    for (const Event& event : records_.gpu) {
      const bool works = event.event.kind == Kind::kKernel || event.event.kind == Kind::kGraph;
      time[event.device] +=
          works ? static_cast<double>(event.event.end_ns - event.event.start_ns) : 0;
    }
    std::uint32_t chosen = 0;
    double most = -1;
    for (const auto& [device, ns] : time) {
      if (ns > most) {
        chosen = device;
        most = ns;
      }
    }
    const std::size_t before = records_.gpu.size();
    std::erase_if(records_.gpu, [&](const Event& event) { return event.device != chosen; });
    if (time.size() > 1) {
      profile_.notes.push_back(
          fmt::format("The program used {} GPUs; this is GPU {}, which ran kernels the longest. {} "
                      "records of the others are left out.",
                      time.size(), chosen, before - records_.gpu.size()));
    }
    if (const auto found = records_.devices.find(chosen); found != records_.devices.end()) {
      profile_.device = found->second.name;
      sms_ = found->second.sms;
    }
  }

  void DropInnerCalls() {
    std::vector<Event>& calls = records_.api;
    std::sort(calls.begin(), calls.end(), [](const Event& a, const Event& b) {
      return std::tuple(a.thread, a.event.start_ns, b.event.end_ns, b.runtime) <
             std::tuple(b.thread, b.event.start_ns, a.event.end_ns, a.runtime);
    });
    std::uint64_t thread = 0;
    std::int64_t runtime_end = INT64_MIN;
    std::vector<Event> kept;
    kept.reserve(calls.size());
    for (Event& call : calls) {
      if (call.thread != thread) {
        thread = call.thread;
        runtime_end = INT64_MIN;
      }
      const std::string_view name = PlainApiName(NameOf(call.name_id).name);
      call.event.kind = ApiKind(name);
      const bool inner = call.event.end_ns <= runtime_end;
      if (!inner || call.event.kind == Kind::kCompile) {
        call.event.name = name.substr(0, kEventName);
        kept.push_back(std::move(call));
      }
      if (!inner && kept.back().runtime) {
        runtime_end = kept.back().event.end_ns;
      }
    }
    calls = std::move(kept);
  }

  /// Which calls wait, and how much memory was asked for.
  void NameCalls() {
    std::unordered_map<std::uint64_t, const Event*> copies;
    for (const Event& event : records_.gpu) {
      if (event.event.kind == Kind::kCopy && event.host_side) {
        copies[event.event.correlation] = &event;
      }
    }
    for (Event& call : records_.api) {
      TimelineEvent& e = call.event;
      if (const auto bytes = records_.allocated.find(e.correlation);
          e.kind == Kind::kAllocation && bytes != records_.allocated.end()) {
        e.bytes = bytes->second;
      }
      if (e.kind != Kind::kApi) {
        continue;
      }
      const auto copy = copies.find(e.correlation);
      // A copy to pageable memory is awaited even when it is called asynchronous.
      const bool waits_for_copy =
          copy != copies.end() &&
          (IsBlockingCopy(e.name) || (copy->second->event.pageable && copy->second->to_host));
      if (waits_for_copy || records_.waits.contains(e.correlation)) {
        e.kind = Kind::kSync;
      }
    }
  }

  void AddKernels() {
    std::map<std::uint64_t, Launches> by_name;
    double total = 0;
    for (Event& event : records_.gpu) {
      if (event.event.kind != Kind::kKernel) {
        continue;
      }
      const ActivityRecords::Name& name = NameOf(event.name_id);
      event.event.name =
          WithoutParameters(name.plain.empty() ? name.name : name.plain).substr(0, kEventName);
      Launches& launches = by_name[event.name_id];
      launches.one_shape = launches.one_shape && (launches.events.empty() ||
                                                  Shape(*launches.events.front()) == Shape(event));
      launches.events.push_back(&event);
      launches.total_ns += static_cast<double>(event.event.end_ns - event.event.start_ns);
    }
    for (const auto& [id, launches] : by_name) {
      total += launches.total_ns;
    }
    for (const auto& [id, launches] : by_name) {
      profile_.kernels.push_back(MakeKernel(id, launches, total));
    }
    std::stable_sort(
        profile_.kernels.begin(), profile_.kernels.end(),
        [](const KernelProfile& a, const KernelProfile& b) { return a.time_us > b.time_us; });
  }

  KernelProfile MakeKernel(std::uint64_t id, const Launches& launches, double total) const {
    const Event& first = *launches.events.front();
    KernelProfile kernel;
    kernel.name = first.event.name;
    kernel.mangled = NameOf(id).name;
    std::copy_n(first.event.grid, 3, kernel.grid);
    std::copy_n(first.event.block, 3, kernel.block);
    kernel.time_us = launches.total_ns * 1e-3;
    kernel.time_provenance = Provenance::kMeasured;
    kernel.time_share = total > 0 ? launches.total_ns / total : 1;
    kernel.metrics[std::string(metric::kDuration)] = {launches.total_ns, "ns",
                                                      Provenance::kMeasured};
    kernel.metrics["timeline.instances"] = {static_cast<double>(launches.events.size()), "",
                                            Provenance::kMeasured};
    kernel.metrics["timeline.kernel_median_ns"] = {Median(launches.events), "ns",
                                                   Provenance::kMeasured};
    if (launches.one_shape) {
      AddShape(first, &kernel);
    }
    return kernel;
  }

  void MakeTimeline() {
    for (std::vector<Event>* events : {&records_.gpu, &records_.api, &records_.host}) {
      for (Event& event : *events) {
        profile_.timeline.push_back(std::move(event.event));
      }
      events->clear();
    }
    std::stable_sort(
        profile_.timeline.begin(), profile_.timeline.end(),
        [](const TimelineEvent& a, const TimelineEvent& b) { return a.start_ns < b.start_ns; });
    if (!profile_.timeline.empty()) {
      const std::int64_t origin = profile_.timeline.front().start_ns;
      for (TimelineEvent& event : profile_.timeline) {
        event.start_ns -= origin;
        event.end_ns -= origin;
      }
    }
    profile_.system = AnalyseTimeline(profile_.timeline, sms_);
  }

  void AddNotes() {
    auto& notes = profile_.notes;
    if (profile_.kernels.empty()) {
      notes.emplace_back("No kernel was recorded.");
    }
    if (records_.cut) {
      notes.push_back(
          fmt::format("Line {} of {} is cut short and was left out.", records_.cut_line, label_));
    }
    if (!records_.ended) {
      notes.emplace_back(
          "The program ended without its exit handlers (_exit or a signal): the last fraction of "
          "a second may be missing from the trace.");
    }
    if (records_.dropped > 0) {
      notes.push_back(
          fmt::format("{} records came after the limit and were dropped: the trace "
                      "covers the beginning of the run only.",
                      records_.dropped));
    } else if (records_.limited) {
      notes.emplace_back("Records came after the limit and were dropped.");
    }
    if (records_.incomplete > 0) {
      notes.push_back(
          fmt::format("{} activities had not ended when the program did.", records_.incomplete));
    }
    if (!records_.refused.empty()) {
      notes.push_back(
          fmt::format("CUPTI did not give all kinds of records: {}.", records_.refused));
    }
    if (records_.unknown > 0) {
      notes.push_back(fmt::format(
          "{} lines of a type that this version does not know were skipped.", records_.unknown));
    }
    const bool graphs = std::any_of(profile_.timeline.begin(), profile_.timeline.end(),
                                    [](const TimelineEvent& e) { return e.graph; });
    if (graphs) {
      notes.emplace_back(
          "Kernels inside graphs were recorded one by one, which slows a graph down; record graphs "
          "as a whole to see how long they take.");
    }
    if (records_.tracing_ns > 0) {
      notes.push_back(fmt::format("Tracing itself cost the host {:.3f} ms over the whole run.",
                                  records_.tracing_ns * 1e-6));
    }
  }

  ActivityRecords records_;
  std::string label_;
  Profile profile_;
  std::uint32_t sms_ = 0;
};

}  // namespace

Result<Profile> ParseActivityTrace(std::string_view text, std::string label) {
  KP_ASSIGN_OR_RETURN(ActivityRecords records, ParseActivityRecords(text, label));
  return Joiner(std::move(records), std::move(label)).Join();
}

Result<Profile> ReadActivityTrace(const std::filesystem::path& path) {
  KP_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kLargestFile));
  return ParseActivityTrace(text, path.string());
}

}  // namespace kernelpro
