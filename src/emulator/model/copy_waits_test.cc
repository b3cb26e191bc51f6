// SPDX-License-Identifier: Apache-2.0
#include "emulator/model/copy_waits.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "emulator/model/critical_path.h"
#include "emulator/model/test_kernel.h"
#include "emulator/ptx/module.h"

namespace kernelpro::model {
namespace {

constexpr double kLatency = 600;
constexpr double kCompute = 100;
constexpr double kRefill = 8;  // of a taken branch

/// One slot an instruction; copies take 600 cycles, the "compute" (a sine here) 100.
std::vector<InstructionTiming> Timing(const ptx::Function& kernel) {
  std::vector<InstructionTiming> out;
  for (const ptx::Instruction& op : kernel.body) {
    InstructionTiming timing{.slots = 1};
    if (op.Has("wait_group")) {
      timing.copies_left = static_cast<std::uint32_t>(op.operands[0].bits);
    } else if (op.Has("commit_group")) {
      timing.commits_copies = true;
    } else if (op.Has("global")) {
      timing.copy_latency = kLatency;
    } else if (op.parts.front() == "sin") {
      timing.slots = kCompute;
    }
    out.push_back(timing);
  }
  return out;
}

struct Cost {
  double first = 0, steady = 0;  ///< cycles of one pass over the loop
};

constexpr std::string_view kCopy = "cp.async.cg.shared.global [%r1],[%l1],16;";

/// The loop is everything from the label `top` on but the last segment.
Cost LoopCost(const std::string& prologue, const std::string& loop, double iterations) {
  const ptx::Function kernel = TestKernel(prologue + "top: " + loop + " @%p1 bra top; ret;");
  const std::vector<Segment> segments = CutIntoSegments(kernel);
  std::vector<double> runs(segments.size(), iterations);
  const std::size_t begin = prologue.empty() ? 0 : 1;
  if (begin == 1) {
    runs[0] = 1;
  }
  runs.back() = 1;
  const CopyWaits waits = FindCopyWaits(kernel, segments, runs, Timing(kernel));
  Cost cost;
  for (std::size_t s = begin; s + 1 < segments.size(); ++s) {
    cost.first += SegmentCycles(kernel, segments[s], waits.first);
    cost.steady += SegmentCycles(kernel, segments[s], waits.steady);
  }
  return cost;
}

std::string Groups(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += std::string(kCopy) + "cp.async.commit_group;";
  }
  return text;
}

/// The ring of `stages` tiles: wait for the oldest, compute, fetch the one after the newest.
Cost Ring(int stages, std::string_view work) {
  return LoopCost(Groups(stages - 1),
                  "cp.async.wait_group " + std::to_string(stages - 2) + "; bar.sync 0;" +
                      std::string(work) + Groups(1),
                  50);
}

constexpr std::string_view kOneUnit = "sin.approx.f32 %f1,%f2;";

TEST(CopyWaits, EachMoreStageHidesAShareOfTheLatency) {
  // One iteration without the wait: wait, barrier, work, copy, commit, branch: 100 + 5 slots and
  // the refill. A copy is issued behind the work, 102 slots after the barrier's segment began, and
  // is waited for d iterations later, d = stages - 1: from its issue on it needs 600 cycles, which
  // d iterations share.
  const double tail = 2 + kRefill;  // behind the issue of the copy: commit, branch
  for (const int stages : {2, 3, 4}) {
    const double d = stages - 1;
    const double period = (kLatency + kCompute + 5 + kRefill - tail) / d;
    EXPECT_NEAR(Ring(stages, kOneUnit).steady, period, 10) << stages;
  }
  // With enough stages nothing is left to wait for.
  EXPECT_NEAR(Ring(10, kOneUnit).steady, kCompute + 5 + kRefill, 1e-9);
}

TEST(CopyWaits, WorkBetweenCommitAndWaitHidesTheLatency) {
  const std::string work =
      "sin.approx.f32 %f1,%f2; sin.approx.f32 %f1,%f2; sin.approx.f32 %f1,%f2;"
      "sin.approx.f32 %f1,%f2; sin.approx.f32 %f1,%f2; sin.approx.f32 %f1,%f2;"
      "sin.approx.f32 %f1,%f2;";
  // Two stages, the next tile fetched in front of the work: 700 cycles of work cover 600.
  const Cost covered =
      LoopCost(Groups(1), "cp.async.wait_group 0; bar.sync 0;" + Groups(1) + work, 50);
  EXPECT_NEAR(covered.steady, 7 * kCompute + 5 + kRefill, 1e-9);
  // Behind the work: each iteration pays work and latency.
  const Cost exposed =
      LoopCost(Groups(1), "cp.async.wait_group 0; bar.sync 0;" + work + Groups(1), 50);
  EXPECT_NEAR(exposed.steady, 7 * kCompute + kLatency, 20);
}

TEST(CopyWaits, TheFirstTileIsWaitedForOnce) {
  const Cost cost = Ring(10, kOneUnit);
  EXPECT_GT(cost.first, kLatency);
  EXPECT_LT(cost.first, kLatency + kCompute + 20);
}

TEST(CopyWaits, ACopyAndItsCommitMayLieInDifferentBlocks) {
  const Cost cost = LoopCost(Groups(1),
                             "cp.async.wait_group 0; bar.sync 0; sin.approx.f32 %f1,%f2;"
                             "@%p2 bra skip;" +
                                 std::string(kCopy) + "skip: cp.async.commit_group;",
                             50);
  EXPECT_NEAR(cost.steady, kLatency + kCompute, 30);
}

TEST(CopyWaits, AnInnerLoopCoversWithAllItsIterations) {
  const ptx::Function kernel =
      TestKernel(Groups(1) + "top: cp.async.wait_group 0; bar.sync 0;" + Groups(1) +
                 "inner: sin.approx.f32 %f1,%f2; @%p2 bra inner; @%p1 bra top; ret;");
  const std::vector<Segment> segments = CutIntoSegments(kernel);
  ASSERT_EQ(segments.size(), 6U);
  const auto wait_of = [&](double inner) {
    const std::vector<double> runs = {1, 50, 50, 50 * inner, 50, 1};
    const CopyWaits waits = FindCopyWaits(kernel, segments, runs, Timing(kernel));
    return SegmentCycles(kernel, segments[1], waits.steady);
  };
  EXPECT_GT(wait_of(2), 300);
  EXPECT_LT(wait_of(8), 10);
}

TEST(CopyWaits, NoWaitChangesNothing) {
  const ptx::Function kernel = TestKernel(Groups(3) + "ret;");
  const std::vector<Segment> segments = CutIntoSegments(kernel);
  const std::vector<double> runs(segments.size(), 1);
  const CopyWaits waits = FindCopyWaits(kernel, segments, runs, Timing(kernel));
  EXPECT_EQ(waits.first_runs, std::vector<double>(segments.size(), 0));
  EXPECT_LT(SegmentCycles(kernel, segments[0], waits.steady), 10);
}

}  // namespace
}  // namespace kernelpro::model
