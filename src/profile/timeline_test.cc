// SPDX-License-Identifier: Apache-2.0
#include "profile/timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace kernelpro {
namespace {

using Kind = TimelineEvent::Kind;
using Timeline = std::vector<TimelineEvent>;

constexpr std::uint32_t kSms = 132;
constexpr std::int64_t kUs = 1000;

TimelineEvent Make(Kind kind, std::string name, std::int64_t start, std::int64_t end,
                   std::uint64_t correlation = 0) {
  TimelineEvent event;
  event.kind = kind;
  event.name = std::move(name);
  event.start_ns = start;
  event.end_ns = end;
  event.correlation = correlation;
  event.grid[0] = 1000;
  event.block[0] = 256;
  return event;
}

TimelineEvent Copy(std::int64_t start, std::int64_t end, std::uint64_t bytes, bool pageable) {
  TimelineEvent event = Make(Kind::kCopy, pageable ? "HtoD pageable" : "HtoD pinned", start, end);
  event.bytes = bytes;
  event.pageable = pageable;
  return event;
}

double At(const std::map<std::string, Metric>& metrics, const std::string& name) {
  const auto found = metrics.find("timeline." + name);
  if (found == metrics.end()) {
    ADD_FAILURE() << name << " is absent";
    return -1;
  }
  EXPECT_EQ(found->second.provenance, Provenance::kMeasured);
  return found->second.value;
}

/// A host that launches with 2 us a call and kernels of one length.
class Program {
 public:
  explicit Program(std::int64_t kernel_ns) : kernel_ns_(kernel_ns) {}

  void Launch(const std::string& name) {
    ++correlation_;
    events.push_back(Make(Kind::kLaunch, "cudaLaunchKernel", host, host + 2 * kUs, correlation_));
    host += 2 * kUs;
    gpu = std::max(gpu + 1 * kUs, host + 1 * kUs);
    events.push_back(Make(Kind::kKernel, name, gpu, gpu + kernel_ns_, correlation_));
    gpu += kernel_ns_;
  }

  void Wait() {
    const std::int64_t end = std::max(host, gpu) + 3 * kUs;
    events.push_back(Make(Kind::kSync, "cudaDeviceSynchronize", host, end, ++correlation_));
    host = end;
  }

  void Call(Kind kind, const std::string& name, std::int64_t length) {
    events.push_back(Make(kind, name, host, host + length, ++correlation_));
    host += length;
  }

  Timeline events;
  std::int64_t host = 0, gpu = -kUs;

 private:
  std::int64_t kernel_ns_;
  std::uint64_t correlation_ = 0;
};

TEST(Timeline, NothingWithoutWork) {
  EXPECT_TRUE(AnalyseTimeline({}, kSms).empty());
  const Timeline host = {Make(Kind::kSync, "cudaDeviceSynchronize", 0, 10)};
  EXPECT_TRUE(AnalyseTimeline(host, kSms).empty());
  const Timeline one = {Make(Kind::kKernel, "k", 5, 15)};
  const auto metrics = AnalyseTimeline(one, 0);
  EXPECT_EQ(At(metrics, "window_ns"), 10);
  EXPECT_EQ(At(metrics, "busy.pct"), 100);
  EXPECT_EQ(At(metrics, "sequence_repeats"), 1);
  EXPECT_FALSE(metrics.contains("timeline.underfilled.pct"));  // the GPU is not known
  EXPECT_FALSE(metrics.contains("timeline.copy_rate"));
}

TEST(Timeline, WaitAfterEachKernelAndOnceAtTheEnd) {
  Program each(20 * kUs);
  Program once(20 * kUs);
  for (int i = 0; i < 100; ++i) {
    each.Launch("k");
    each.Wait();
    once.Launch("k");
  }
  once.Wait();
  const auto bad = AnalyseTimeline(each.events, kSms);
  // A period is 26 us: the wait returns 3 us after the kernel, then launch and start take 3 us.
  EXPECT_NEAR(At(bad, "sync_gap.pct"), 100.0 * 6 / 26, 0.5);
  EXPECT_NEAR(At(bad, "launch_gap.pct"), 0, 1e-9);
  EXPECT_EQ(At(bad, "syncs"), 98);  // of 99 kernels; the last wait ends after the window
  EXPECT_EQ(At(bad, "sequence_length"), 1);
  EXPECT_EQ(At(bad, "sequence_repeats"), 100);
  const auto good = AnalyseTimeline(once.events, kSms);
  EXPECT_EQ(At(good, "sync_gap.pct"), 0);
  EXPECT_EQ(At(good, "syncs"), 0);
  EXPECT_NEAR(At(good, "busy.pct"), 100.0 * 20 / 21, 0.5);
  // The GPU's own microsecond between two kernels that were launched long before.
  EXPECT_NEAR(At(good, "queued_gap.pct"), At(good, "idle.pct"), 0.1);
}

TEST(Timeline, ManySmallKernelsAndOneFused) {
  Program many(2 * kUs);
  Program one(40 * kUs);
  for (int step = 0; step < 10; ++step) {
    for (int i = 0; i < 20; ++i) {
      many.Launch("k" + std::to_string(i));
      many.Call(Kind::kApi, "cudaGetLastError", 3 * kUs);
    }
    one.Launch("fused");
  }
  const auto bad = AnalyseTimeline(many.events, kSms);
  EXPECT_EQ(At(bad, "kernels"), 180);  // without the first step
  EXPECT_EQ(At(bad, "short_kernels.pct"), 100);
  EXPECT_EQ(At(bad, "kernel_median_ns"), 2 * kUs);
  EXPECT_EQ(At(bad, "sequence_length"), 20);
  EXPECT_EQ(At(bad, "sequence_repeats"), 10);
  EXPECT_NEAR(At(bad, "launch_gap.pct"), 60, 0.5);  // 3 us of each 5
  EXPECT_EQ(At(bad, "queued_gap.pct"), 0);
  EXPECT_NEAR(At(bad, "launch_api.pct"), 40, 0.5);
  const auto good = AnalyseTimeline(one.events, kSms);
  EXPECT_EQ(At(good, "short_kernels.pct"), 0);
  EXPECT_LT(At(good, "launch_gap.pct"), 5);
}

TEST(Timeline, WaitingForTheDriversQueueIsNoLaunchCost) {
  Program ahead(100 * kUs);
  for (int i = 0; i < 3000; ++i) {
    const std::size_t queue = 1024;
    if (i >= static_cast<int>(queue)) {  // the call returns when the kernel 1024 before begins
      const TimelineEvent& begun = ahead.events[ahead.events.size() - 2 * queue + 1];
      const std::int64_t call = ahead.host;
      ahead.host = std::max(ahead.host, begun.start_ns);
      ahead.Launch("k");
      ahead.events[ahead.events.size() - 2].start_ns = call;
    } else {
      ahead.Launch("k");
    }
  }
  const auto metrics = AnalyseTimeline(ahead.events, kSms);
  EXPECT_GT(At(metrics, "busy.pct"), 98.5);
  EXPECT_LT(At(metrics, "launch_api.pct"), 1);  // and not the 65 % that the host spends in them
}

TEST(Timeline, ExposedAndOverlappedCopies) {
  Timeline exposed;
  Timeline overlapped;
  for (std::int64_t i = 0; i < 10; ++i) {
    const std::int64_t t = i * 100 * kUs;
    exposed.push_back(Copy(t, t + 60 * kUs, 600'000, true));
    exposed.push_back(Make(Kind::kKernel, "k", t + 60 * kUs, t + 100 * kUs));
    overlapped.push_back(Copy(t, t + 60 * kUs, 600'000, false));
    overlapped.push_back(Make(Kind::kKernel, "k", t, t + 100 * kUs));
  }
  const auto bad = AnalyseTimeline(exposed, kSms);
  EXPECT_NEAR(At(bad, "copy_exposed.pct"), 100.0 * 8 * 60 / (8 * 100 + 40), 0.1);
  EXPECT_EQ(At(bad, "copy_pageable.pct"), 100);
  EXPECT_EQ(At(bad, "copy_rate"), 1e10);
  EXPECT_EQ(At(bad, "copies"), 8);  // between the second kernel and the last
  EXPECT_EQ(At(bad, "copy_bytes"), 8 * 600'000);
  EXPECT_EQ(At(bad, "idle.pct"), 0);
  const auto good = AnalyseTimeline(overlapped, kSms);
  EXPECT_EQ(At(good, "copy_exposed.pct"), 0);
  EXPECT_EQ(At(good, "copy_pageable.pct"), 0);
  EXPECT_EQ(At(good, "copies"), 9);
  Timeline inside = {Make(Kind::kKernel, "a", 0, 10), Make(Kind::kCopy, "DtoD", 10, 50),
                     Make(Kind::kKernel, "b", 50, 60)};
  const auto within = AnalyseTimeline(inside, kSms);
  EXPECT_EQ(At(within, "copies"), 0);  // no link is used
  EXPECT_EQ(At(within, "busy.pct"), 100);
}

TEST(Timeline, AllocationInTheLoopAndPool) {
  Program loop(20 * kUs);
  Program pool(20 * kUs);
  for (int i = 0; i < 20; ++i) {
    loop.Call(Kind::kAllocation, "cudaMalloc", 50 * kUs);
    loop.Launch("k");
    pool.Call(Kind::kAllocation, "cudaMallocAsync", kUs / 2);
    pool.Launch("k");
  }
  const auto bad = AnalyseTimeline(loop.events, kSms);
  // 19 kernels 52 us apart and the last one's length; the window begins 1 us into a call.
  EXPECT_NEAR(At(bad, "allocation.pct"), 100.0 * (18 * 50 - 1) / (18 * 52 + 20), 1e-9);
  EXPECT_EQ(At(bad, "allocations"), 18);  // between the second kernel and the last
  // Idle for the allocation's sake is not the launches'.
  EXPECT_LT(At(bad, "launch_gap.pct"), 7);
  EXPECT_GT(At(bad, "idle.pct"), 55);
  const auto good = AnalyseTimeline(pool.events, kSms);
  EXPECT_LT(At(good, "allocation.pct"), 3);
}

TEST(Timeline, CompilingInTheLoop) {
  Program bad(20 * kUs);
  for (int i = 0; i < 4; ++i) {
    bad.Call(Kind::kCompile, "cuModuleLoadData", 78 * kUs);
    bad.Launch("k");
  }
  const auto metrics = AnalyseTimeline(bad.events, kSms);
  // The window begins with the second kernel, 1 us into the next call, and ends 2 periods later.
  EXPECT_NEAR(At(metrics, "compile.pct"), 100.0 * (2 * 78 - 1) / (2 * 80 + 20), 1e-9);
}

TEST(Timeline, SmallGridsInOneStreamAndInEight) {
  Timeline one;
  Timeline eight;
  for (std::int64_t i = 0; i < 24; ++i) {
    TimelineEvent kernel = Make(Kind::kKernel, "k", i * 10 * kUs, (i + 1) * 10 * kUs);
    kernel.grid[0] = 16;
    one.push_back(kernel);
    kernel.stream = static_cast<std::uint32_t>(i % 8);
    kernel.start_ns = i / 8 * 10 * kUs;
    kernel.end_ns = kernel.start_ns + 10 * kUs;
    eight.push_back(kernel);
  }
  const auto bad = AnalyseTimeline(one, kSms);
  const auto good = AnalyseTimeline(eight, kSms);
  EXPECT_EQ(At(bad, "underfilled.pct"), 100);
  EXPECT_EQ(At(bad, "streams"), 1);
  EXPECT_EQ(At(good, "streams"), 8);
  EXPECT_LT(At(good, "window_ns"), At(bad, "window_ns"));
  EXPECT_EQ(At(AnalyseTimeline(one, 16), "underfilled.pct"), 0);  // a smaller GPU is full
}

TEST(Timeline, GraphReplayAndLaunches) {
  Timeline replay;
  Timeline whole;
  for (std::uint64_t step = 0; step < 5; ++step) {
    const std::int64_t t = static_cast<std::int64_t>(step) * 100 * kUs;
    replay.push_back(Make(Kind::kLaunch, "cudaGraphLaunch", t, t + 5 * kUs, step + 1));
    whole.push_back(replay.back());
    for (std::int64_t i = 0; i < 9; ++i) {
      replay.push_back(Make(Kind::kKernel, "k" + std::to_string(i), t + (i + 1) * 10 * kUs,
                            t + (i + 2) * 10 * kUs - kUs, step + 1));
      replay.back().graph = true;
    }
    whole.push_back(Make(Kind::kGraph, "graph 1", t + 10 * kUs, t + 99 * kUs, step + 1));
  }
  const auto kernels = AnalyseTimeline(replay, kSms);
  EXPECT_EQ(At(kernels, "graph_launches"), 4);
  EXPECT_EQ(At(kernels, "sequence_length"), 9);
  EXPECT_EQ(At(kernels, "sequence_repeats"), 5);
  EXPECT_EQ(At(kernels, "kernels"), 36);
  EXPECT_GT(At(kernels, "queued_gap.pct"), 5);  // between the kernels of a graph
  const auto graphs = AnalyseTimeline(whole, kSms);
  EXPECT_EQ(At(graphs, "graph_launches"), 4);
  EXPECT_EQ(At(graphs, "kernels"), 0);
  EXPECT_FALSE(graphs.contains("timeline.short_kernels.pct"));
  EXPECT_GT(At(graphs, "busy.pct"), 85);
  Program launches(9 * kUs);
  for (int i = 0; i < 45; ++i) {
    launches.Launch("k");
  }
  EXPECT_EQ(At(AnalyseTimeline(launches.events, kSms), "graph_launches"), 0);
}

TEST(Timeline, ProfilerCallsChooseTheRange) {
  Program program(20 * kUs);
  program.Launch("init");
  for (int i = 0; i < 50; ++i) {
    program.Launch("warm-up");
    program.Wait();
  }
  program.Call(Kind::kApi, "cudaProfilerStart", kUs);
  for (int i = 0; i < 5; ++i) {
    program.Launch("k" + std::to_string(i));
  }
  program.Wait();
  Program without_stop = program;
  program.Call(Kind::kApi, "cudaProfilerStop", kUs);
  program.Launch("after");
  const auto metrics = AnalyseTimeline(program.events, kSms);
  EXPECT_EQ(At(metrics, "kernels"), 5);
  EXPECT_EQ(At(metrics, "window_ns"), 5 * 20 * kUs + 4 * kUs);
  EXPECT_EQ(At(metrics, "syncs"), 0);
  EXPECT_EQ(At(AnalyseTimeline(without_stop.events, kSms), "kernels"), 5);
  Program late(20 * kUs);  // nothing ran inside: the whole run is looked at
  late.Launch("k");
  late.Wait();
  late.Call(Kind::kApi, "cudaProfilerStart", kUs);
  EXPECT_EQ(At(AnalyseTimeline(late.events, kSms), "kernels"), 1);
}

TEST(Timeline, OrderOfEventsDoesNotMatter) {
  std::mt19937 random(23);  // NOLINT(cert-msc51-cpp)
  Program program(3 * kUs);
  for (int i = 0; i < 30; ++i) {
    program.Launch(i % 2 == 0 ? "a" : "b");
    if (i % 5 == 0) {
      program.Wait();
    }
  }
  const auto before = AnalyseTimeline(program.events, kSms);
  std::shuffle(program.events.begin(), program.events.end(), random);
  const auto after = AnalyseTimeline(program.events, kSms);
  ASSERT_EQ(before.size(), after.size());
  for (const auto& [name, metric] : before) {
    EXPECT_EQ(metric.value, after.at(name).value) << name;
  }
}

}  // namespace
}  // namespace kernelpro
