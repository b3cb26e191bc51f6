// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "emulator/simt/engine_test_util.h"

namespace kernelpro::simt {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t kThreads = 128;
constexpr int kRounds = 5;

bool HasFault(const LaunchReport& report, FaultKind kind) {
  return std::ranges::any_of(report.faults, [&](const Fault& f) { return f.kind == kind; });
}

Gpu::Shape OneBlock(std::uint32_t threads = kThreads) {
  return {.grid = {1}, .block = {threads}, .mode = Mode::kCheck};
}

void ExpectRounds(const Array<float>& y) {
  for (std::uint32_t t = 0; t < kThreads; ++t) {
    float sum = 0;
    for (int i = 0; i < kRounds; ++i) {
      sum += static_cast<float>(kThreads - 1 - t) + static_cast<float>(i);
    }
    ASSERT_EQ(y[t], sum) << t;
  }
}

TEST(MBarrier, BarrierObjectsKeepWarpsApart) {
  Gpu gpu("mbarrier");
  const auto y = gpu.Allocate<float>(kThreads, "y");
  const LaunchReport report = gpu.Run("barrier_object", OneBlock(), y, kRounds);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  ExpectRounds(y);
}

TEST(MBarrier, PhasesAreWaitedForByParity) {
  Gpu gpu("mbarrier");
  const auto y = gpu.Allocate<float>(kThreads, "y");
  const LaunchReport report = gpu.Run("parity", OneBlock(), y, kRounds, 0);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  ExpectRounds(y);
}

TEST(MBarrier, AnArrivalWithoutAWaitOrdersNothing) {
  Gpu gpu("mbarrier");
  const auto y = gpu.Allocate<float>(kThreads, "y");
  EXPECT_TRUE(HasFault(gpu.Run("parity", OneBlock(), y, 1, 1), FaultKind::kRace));
}

TEST(MBarrier, OthersMustKnowThatItIsInitialised) {
  Gpu gpu("mbarrier");
  const auto y = gpu.Allocate<float>(kThreads, "y");
  EXPECT_TRUE(HasFault(gpu.Run("parity", OneBlock(), y, 1, 2), FaultKind::kRace));
  const LaunchReport never = gpu.Run("never_initialised", OneBlock(), y);
  ASSERT_TRUE(HasFault(never, FaultKind::kUninitialized));
  EXPECT_THAT(Faults(never), HasSubstr("is not initialised"));
}

TEST(MBarrier, CopiesArriveWhenTheyAreDone) {
  for (const int noinc : {0, 1}) {
    Gpu gpu("mbarrier");
    std::vector<float> values(kThreads);
    std::iota(values.begin(), values.end(), 1.0F);
    const auto x = gpu.Upload(values, "x");
    const auto y = gpu.Allocate<float>(kThreads, "y");
    const LaunchReport right = gpu.Run("copies_arrive", OneBlock(), x, y, noinc, 0);
    EXPECT_TRUE(right.faults.empty()) << Faults(right);
    for (std::uint32_t t = 0; t < kThreads; ++t) {
      ASSERT_EQ(y[t], x[kThreads - 1 - t]) << t;
    }
    EXPECT_TRUE(HasFault(gpu.Run("copies_arrive", OneBlock(), x, y, noinc, 1), FaultKind::kRace));
    EXPECT_NE(y[0], x[kThreads - 1]);
  }
}

TEST(MBarrier, AWaitThatCannotEndIsADeadlock) {
  Gpu gpu("mbarrier");
  const auto y = gpu.Allocate<float>(32, "y");
  EXPECT_TRUE(HasFault(gpu.Run("one_too_few", OneBlock(32), y), FaultKind::kDeadlock));
}

TEST(MBarrier, NoPhaseTakesMoreArrivalsThanItLacks) {
  Gpu gpu("mbarrier");
  const auto y = gpu.Allocate<float>(32, "y");
  EXPECT_TRUE(gpu.Run("one_too_many", OneBlock(32), y, 2).faults.empty());
  const LaunchReport report = gpu.Run("one_too_many", OneBlock(32), y, 3);
  ASSERT_TRUE(HasFault(report, FaultKind::kDivergentBarrier));
  EXPECT_THAT(Faults(report), HasSubstr("whose phase lacks 2 arrivals"));
}

TEST(MBarrier, ExpectedBytesAreNotSupported) {
  Gpu gpu("mbarrier");
  const auto y = gpu.Allocate<float>(32, "y");
  EXPECT_TRUE(HasFault(gpu.Run("bytes_expected", OneBlock(1), y), FaultKind::kUnsupported));
}

}  // namespace
}  // namespace kernelpro::simt
