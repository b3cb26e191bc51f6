// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <vector>

#include "emulator/simt/engine_test_util.h"

namespace kernelpro::simt {
namespace {

using testing::HasSubstr;

const Fault* Find(const LaunchReport& report, FaultKind kind) {
  for (const Fault& fault : report.faults) {
    if (fault.kind == kind) {
      return &fault;
    }
  }
  return nullptr;
}

TEST(Faults, WriteJustPastTheEnd) {
  Gpu gpu("faults");
  const auto y = gpu.Allocate<float>(1000, "y");
  const LaunchReport report = gpu.Run("off_by_one", {.grid = {8}, .block = {128}}, y, 1000);
  const Fault* fault = Find(report, FaultKind::kOutOfBounds);
  ASSERT_NE(fault, nullptr) << Faults(report);
  EXPECT_TRUE(fault->fatal);
  EXPECT_FALSE(report.Completed());
  EXPECT_EQ(fault->kernel, "off_by_one");
  EXPECT_EQ(fault->cta, (Dim3{7, 0, 0}));
  EXPECT_EQ(fault->thread, (Dim3{104, 0, 0}));
  EXPECT_EQ(fault->address, y.address + 4000);
  EXPECT_EQ(fault->allocation, "y+4000");
  EXPECT_EQ(fault->line, 5U);
  EXPECT_THAT(fault->file, HasSubstr("faults.cu"));
  EXPECT_EQ(fault->message,
            "kernel off_by_one: thread (104,0,0) of block (7,0,0) wrote 4 bytes just past the end "
            "of 'y' (4000 bytes) at faults.cu:5");
}

TEST(Faults, HonestTwinOfWriteJustPastTheEnd) {
  Gpu gpu("faults");
  const auto y = gpu.Allocate<float>(1000, "y");
  const LaunchReport report = gpu.Run("in_bounds", {.grid = {8}, .block = {128}}, y, 1000);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
}

TEST(Faults, ReadBeforeTheStart) {
  Gpu gpu("faults");
  const auto x = gpu.Allocate<float>(32, "x");
  const auto y = gpu.Allocate<float>(32, "y");
  const LaunchReport report = gpu.Run("before_start", {.grid = {1}, .block = {32}}, x, y);
  const Fault* fault = Find(report, FaultKind::kOutOfBounds);
  ASSERT_NE(fault, nullptr);
  EXPECT_THAT(fault->message, HasSubstr("read 4 bytes 4 bytes before the start of 'x'"));
  EXPECT_EQ(fault->thread, (Dim3{0, 0, 0}));
}

TEST(Faults, NullPointer) {
  Gpu gpu("faults");
  const auto y = gpu.Allocate<float>(32, "y");
  const LaunchReport report = gpu.Run("null_pointer", {.grid = {1}, .block = {1}}, y);
  EXPECT_FALSE(report.Completed());
}

TEST(Faults, UseAfterFree) {
  Gpu gpu("faults");
  const auto y = gpu.Allocate<float>(1000, "y");
  ASSERT_TRUE(gpu.memory().Free(y.address).ok());
  const LaunchReport report = gpu.Run("in_bounds", {.grid = {1}, .block = {32}}, y, 32);
  const Fault* fault = Find(report, FaultKind::kOutOfBounds);
  ASSERT_NE(fault, nullptr);
  EXPECT_THAT(fault->message, HasSubstr("'y', which has been freed"));
}

TEST(Faults, Misaligned) {
  Gpu gpu("faults");
  const auto x = gpu.Allocate<float>(132, "x");
  const auto y = gpu.Allocate<float>(128, "y");
  const LaunchReport bad = gpu.Run("misaligned", {.grid = {1}, .block = {32}}, x, y, 1);
  const Fault* fault = Find(bad, FaultKind::kMisaligned);
  ASSERT_NE(fault, nullptr) << Faults(bad);
  EXPECT_THAT(fault->message, HasSubstr("not a multiple of 16"));
  const LaunchReport good = gpu.Run("misaligned", {.grid = {1}, .block = {32}}, x, y, 4);
  EXPECT_TRUE(good.faults.empty()) << Faults(good);
}

TEST(Faults, WriteToReadOnly) {
  Gpu gpu("faults");
  const auto y = gpu.Allocate<float>(32, "y");
  ASSERT_TRUE(gpu.memory().SetReadOnly(y.address, true).ok());
  const LaunchReport bad = gpu.Run("in_bounds", {.grid = {1}, .block = {32}}, y, 32);
  ASSERT_NE(Find(bad, FaultKind::kWriteToReadOnly), nullptr) << Faults(bad);
  EXPECT_EQ(y[0], 0.0F);
  ASSERT_TRUE(gpu.memory().SetReadOnly(y.address, false).ok());
  const LaunchReport good = gpu.Run("in_bounds", {.grid = {1}, .block = {32}}, y, 32);
  EXPECT_TRUE(good.faults.empty()) << Faults(good);
}

TEST(Faults, SharedMemoryBounds) {
  Gpu gpu("faults");
  const auto y = gpu.Allocate<float>(64, "y");
  const LaunchReport bad = gpu.Run("shared_index", {.grid = {1}, .block = {64}}, y, 33);
  const Fault* fault = Find(bad, FaultKind::kSharedOutOfBounds);
  ASSERT_NE(fault, nullptr) << Faults(bad);
  EXPECT_EQ(fault->thread, (Dim3{32, 0, 0}));
  EXPECT_EQ(fault->address, 128U);
  const LaunchReport good = gpu.Run("shared_index", {.grid = {1}, .block = {64}}, y, 32);
  EXPECT_TRUE(good.faults.empty()) << Faults(good);
}

TEST(Faults, LocalMemoryBounds) {
  Gpu gpu("faults");
  const auto y = gpu.Allocate<int>(64, "y");
  const LaunchReport bad = gpu.Run("local_index", {.grid = {1}, .block = {32}}, y, 9);
  ASSERT_NE(Find(bad, FaultKind::kLocalOutOfBounds), nullptr) << Faults(bad);
  const LaunchReport good = gpu.Run("local_index", {.grid = {1}, .block = {32}}, y, 8);
  EXPECT_TRUE(good.faults.empty()) << Faults(good);
}

TEST(Faults, BarrierInHalfAWarp) {
  Gpu gpu("faults");
  const auto y = gpu.Allocate<float>(64, "y");
  const LaunchReport report = gpu.Run("barrier_in_half_warp", {.grid = {1}, .block = {64}}, y);
  ASSERT_NE(Find(report, FaultKind::kDivergentBarrier), nullptr) << Faults(report);
}

TEST(Faults, BarrierThatWholeWarpsSkip) {
  Gpu gpu("faults");
  const auto y = gpu.Allocate<float>(64, "y");
  const LaunchReport report = gpu.Run("barrier_in_some_warps", {.grid = {1}, .block = {64}}, y);
  ASSERT_NE(Find(report, FaultKind::kDivergentBarrier), nullptr) << Faults(report);
}

TEST(Faults, EarlyReturnBeforeABarrierIsFine) {
  Gpu gpu("faults");
  const auto y = gpu.Allocate<float>(64, "y");
  for (const int n : {64, 40, 32, 5}) {
    const LaunchReport report =
        gpu.Run("early_return", {.grid = {1}, .block = {64}, .mode = Mode::kCheck}, y, n);
    EXPECT_TRUE(report.faults.empty()) << n << ": " << Faults(report);
  }
}

TEST(Faults, WarpsAtDifferentBarriers) {
  Gpu gpu("faults");
  const auto y = gpu.Allocate<float>(64, "y");
  const LaunchReport report = gpu.Run("barrier_ids", {.grid = {1}, .block = {64}}, y);
  const Fault* fault = Find(report, FaultKind::kDivergentBarrier);
  ASSERT_NE(fault, nullptr) << Faults(report);
  EXPECT_THAT(fault->message, HasSubstr("warp 0"));
  EXPECT_THAT(fault->message, HasSubstr("warp 1"));
  EXPECT_THAT(fault->message, HasSubstr("barrier 2 with 32 of 64 threads"));
}

TEST(Faults, PollingThatNobodyAnswers) {
  Gpu gpu("faults");
  const auto flag = gpu.Allocate<int>(1, "flag");
  const LaunchReport bad = gpu.Run("never_set", {.grid = {2}, .block = {32}}, flag);
  ASSERT_NE(Find(bad, FaultKind::kDeadlock), nullptr) << Faults(bad);
  flag.data[0] = 1;
  const LaunchReport good = gpu.Run("never_set", {.grid = {2}, .block = {32}}, flag);
  EXPECT_TRUE(good.faults.empty()) << Faults(good);
}

TEST(Faults, Budget) {
  Gpu gpu("faults");
  const auto out = gpu.Allocate<unsigned>(1, "out");
  const LaunchReport report =
      gpu.Run("endless", {.grid = {1}, .block = {32}, .budget = 100'000}, out);
  const Fault* fault = Find(report, FaultKind::kBudget);
  ASSERT_NE(fault, nullptr) << Faults(report);
  EXPECT_NE(fault->line, 0U);
}

TEST(Faults, Trap) {
  Gpu gpu("faults");
  const auto x = gpu.Upload(std::vector<int>{0, 0, 1, 0}, "x");
  const LaunchReport bad = gpu.Run("asserting", {.grid = {1}, .block = {4}}, x);
  const Fault* fault = Find(bad, FaultKind::kTrap);
  ASSERT_NE(fault, nullptr) << Faults(bad);
  EXPECT_EQ(fault->thread, (Dim3{2, 0, 0}));
  x.data[2] = 0;
  const LaunchReport good = gpu.Run("asserting", {.grid = {1}, .block = {4}}, x);
  EXPECT_TRUE(good.faults.empty()) << Faults(good);
}

TEST(Faults, ShuffleFromExitedLanes) {
  Gpu gpu("faults");
  const auto y = gpu.Allocate<int>(32, "y");
  const LaunchReport report = gpu.Run("exited_lanes", {.grid = {1}, .block = {32}}, y);
  const Fault* fault = Find(report, FaultKind::kBadShuffle);
  ASSERT_NE(fault, nullptr) << Faults(report);
  EXPECT_FALSE(fault->fatal);
}

TEST(Faults, LaneNotInItsOwnMask) {
  Gpu gpu("faults");
  const auto y = gpu.Allocate<int>(32, "y");
  const LaunchReport bad = gpu.Run("lane_not_named", {.grid = {1}, .block = {32}}, y);
  ASSERT_NE(Find(bad, FaultKind::kBadShuffle), nullptr) << Faults(bad);
  const LaunchReport good = gpu.Run("lane_not_named", {.grid = {1}, .block = {16}}, y);
  EXPECT_TRUE(good.faults.empty()) << Faults(good);
}

TEST(Races, MissingBarriersAreFound) {
  for (const char* kernel : {"tile_without_first_barrier", "tile_without_second_barrier"}) {
    Gpu gpu("faults");
    const auto a = gpu.Allocate<float>(1024, "a");
    const auto c = gpu.Allocate<float>(1024, "c");
    const LaunchReport report =
        gpu.Run(kernel, {.grid = {1}, .block = {256}, .mode = Mode::kCheck}, a, c);
    const Fault* fault = Find(report, FaultKind::kRace);
    ASSERT_NE(fault, nullptr) << kernel << Faults(report);
    EXPECT_FALSE(fault->fatal);
    EXPECT_GT(fault->count, 1U);
  }
}

TEST(Races, NoneWithBothBarriers) {
  Gpu gpu("faults");
  const auto a = gpu.Allocate<float>(1024, "a");
  const auto c = gpu.Allocate<float>(1024, "c");
  const LaunchReport report =
      gpu.Run("tile_with_barriers", {.grid = {2}, .block = {256}, .mode = Mode::kCheck}, a, c);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
}

TEST(Races, NoneBetweenBytesOfOneWord) {
  Gpu gpu("faults");
  const auto a = gpu.Allocate<char>(128, "a");
  const auto c = gpu.Allocate<char>(128, "c");
  const LaunchReport report =
      gpu.Run("bytes_of_one_word", {.grid = {1}, .block = {128}, .mode = Mode::kCheck}, a, c);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
}

TEST(Races, UninitialisedSharedMemory) {
  Gpu gpu("faults");
  const auto c = gpu.Allocate<float>(64, "c");
  const LaunchReport bad =
      gpu.Run("reads_unwritten", {.grid = {1}, .block = {64}, .mode = Mode::kCheck}, c, 63);
  const Fault* fault = Find(bad, FaultKind::kUninitialized);
  ASSERT_NE(fault, nullptr) << Faults(bad);
  EXPECT_EQ(fault->thread, (Dim3{63, 0, 0}));
  EXPECT_EQ(fault->address, 252U);
  const LaunchReport good =
      gpu.Run("reads_unwritten", {.grid = {1}, .block = {64}, .mode = Mode::kCheck}, c, 64);
  EXPECT_TRUE(good.faults.empty()) << Faults(good);
}

TEST(Faults, UnsupportedInstructionNamesItselfWhenReached) {
  Gpu gpu("faults");
  const auto y = gpu.Allocate<float>(1, "y");
  const LaunchReport report =
      gpu.Run("unsupported_texture", {.grid = {1}, .block = {1}}, std::uint64_t{0}, y);
  const Fault* fault = Find(report, FaultKind::kUnsupported);
  ASSERT_NE(fault, nullptr) << Faults(report);
  EXPECT_TRUE(fault->fatal);
  EXPECT_THAT(fault->message, HasSubstr("unsupported: tex.1d.v4.f32.s32"));
  EXPECT_THAT(fault->message, HasSubstr("faults.cu:"));
}

}  // namespace
}  // namespace kernelpro::simt
