// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "emulator/simt/engine_test_util.h"

namespace kernelpro::simt {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr std::uint32_t kThreads = 128;
constexpr int kTiles = 7;

std::vector<float> Counting(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0F);
  return values;
}

std::vector<std::uint8_t> Bytes(std::size_t count) {
  std::vector<std::uint8_t> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<std::uint8_t>(i * 7 + 1);
  }
  return values;
}

bool HasFault(const LaunchReport& report, FaultKind kind) {
  return std::ranges::any_of(report.faults, [&](const Fault& f) { return f.kind == kind; });
}

/// Runs a kernel (x, y, tiles) of 128 threads and says whether y is the sum of the mirrored tiles.
struct RingRun {
  LaunchReport report;
  bool right = true;
};

RingRun RunRing(const std::string& kernel, Mode mode = Mode::kCheck) {
  Gpu gpu("async");
  const auto x = gpu.Upload(Counting(kThreads * kTiles), "x");
  const auto y = gpu.Allocate<float>(kThreads, "y");
  RingRun run;
  run.report = gpu.Run(kernel, {.grid = {1}, .block = {kThreads}, .mode = mode}, x, y, kTiles);
  for (std::uint32_t t = 0; t < kThreads; ++t) {
    float sum = 0;
    for (int i = 0; i < kTiles; ++i) {
      sum += x[static_cast<std::size_t>(i) * kThreads + kThreads - 1 - t];
    }
    run.right = run.right && y[t] == sum;
  }
  return run;
}

class RightRing : public testing::TestWithParam<const char*> {};

TEST_P(RightRing, SumsWithoutAFault) {
  for (const Mode mode : {Mode::kCheck, Mode::kCount, Mode::kSample}) {
    const RingRun run = RunRing(GetParam(), mode);
    EXPECT_TRUE(run.report.faults.empty()) << Faults(run.report);
    EXPECT_TRUE(run.right);
  }
}

INSTANTIATE_TEST_SUITE_P(AsyncCopy, RightRing,
                         testing::Values("ring_right", "ring_drained", "ring_one_barrier"));

/// The bug is a race in check mode; `wrong` when it also shows in the result.
struct Planted {
  const char* kernel;
  bool wrong;
};

class BadRing : public testing::TestWithParam<Planted> {};

TEST_P(BadRing, IsCaught) {
  const RingRun run = RunRing(GetParam().kernel);
  EXPECT_TRUE(HasFault(run.report, FaultKind::kRace)) << Faults(run.report);
  if (GetParam().wrong) {
    EXPECT_FALSE(run.right);
    EXPECT_FALSE(RunRing(GetParam().kernel, Mode::kCount).right);
  }
}

INSTANTIATE_TEST_SUITE_P(
    AsyncCopy, BadRing,
    testing::Values(Planted{"ring_without_wait", true}, Planted{"ring_wait_off_by_one", true},
                    Planted{"ring_without_ready", true}, Planted{"ring_without_barriers", true},
                    Planted{"ring_later_stage", true}, Planted{"refilled_too_early", false}));

TEST(AsyncCopy, ARaceNamesTheCopyAndTheLineThatReadTooEarly) {
  const RingRun run = RunRing("ring_wait_off_by_one");
  ASSERT_FALSE(run.report.faults.empty());
  const std::string& message = run.report.faults.front().message;
  // The warp that came last to the barrier runs on first; warp 0 has its mirrored words.
  EXPECT_THAT(message, HasSubstr("thread (96,0,0)"));
  EXPECT_THAT(message, HasSubstr("while the asynchronous copy to it by warp 0 at async.cu:"));
  EXPECT_THAT(message, HasSubstr("the copying thread had not waited for its group at async.cu:"));
}

/// Kernels (x, y, flag) of one warp; the flag plants the bug.
LaunchReport RunFlagged(const char* kernel, int flag, std::vector<float>* out) {
  Gpu gpu("async");
  const auto x = gpu.Upload(Counting(64), "x");
  const auto y = gpu.Allocate<float>(32, "y");
  LaunchReport report =
      gpu.Run(kernel, {.grid = {1}, .block = {32}, .mode = Mode::kCheck}, x, y, flag);
  out->assign(y.data, y.data + 32);
  return report;
}

TEST(AsyncCopy, AThreadsOwnWordIsTheOldOneUntilItsWait) {
  std::vector<float> y;
  const LaunchReport right = RunFlagged("own_word", 0, &y);
  EXPECT_TRUE(right.faults.empty()) << Faults(right);
  EXPECT_EQ(y[31], 32);
  EXPECT_TRUE(HasFault(RunFlagged("own_word", 1, &y), FaultKind::kRace));
  EXPECT_THAT(y, Each(5));
}

TEST(AsyncCopy, AStoreToAWordInFlightIsARace) {
  std::vector<float> y;
  EXPECT_TRUE(RunFlagged("stored_in_flight", 0, &y).faults.empty());
  EXPECT_THAT(y, Each(1));
  EXPECT_TRUE(HasFault(RunFlagged("stored_in_flight", 1, &y), FaultKind::kRace));
}

TEST(AsyncCopy, TwoCopiesInFlightToOneWordAreARace) {
  std::vector<float> y;
  EXPECT_TRUE(RunFlagged("copied_twice", 0, &y).faults.empty());
  EXPECT_TRUE(HasFault(RunFlagged("copied_twice", 1, &y), FaultKind::kRace));
}

TEST(AsyncCopy, OnlyWaitAllCoversWhatWasNotCommitted) {
  std::vector<float> y;
  EXPECT_TRUE(RunFlagged("not_committed", 1, &y).faults.empty());
  EXPECT_EQ(y[3], 4);
  EXPECT_TRUE(HasFault(RunFlagged("not_committed", 0, &y), FaultKind::kRace));
  EXPECT_THAT(y, Each(5));
}

TEST(AsyncCopy, ASourceThatChangesInFlightIsARace) {
  std::vector<float> y;
  const LaunchReport right = RunFlagged("source_overwritten", 0, &y);
  EXPECT_TRUE(right.faults.empty()) << Faults(right);
  EXPECT_EQ(y[3], 4);
  const LaunchReport wrong = RunFlagged("source_overwritten", 1, &y);
  ASSERT_TRUE(HasFault(wrong, FaultKind::kRace));
  EXPECT_THAT(wrong.faults.front().message,
              HasSubstr("somebody wrote to after the copy was issued"));
}

TEST(AsyncCopy, AThreadMayExitWithCopiesInFlight) {
  Gpu gpu("async");
  const auto x = gpu.Upload(Counting(32), "x");
  const auto y = gpu.Allocate<float>(32, "y");
  // Two blocks, one after the other in the same context: nothing is left over.
  const LaunchReport report =
      gpu.Run("left_in_flight", {.grid = {2}, .block = {32}, .mode = Mode::kCheck}, x, y);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  EXPECT_EQ(y[31], 1);
}

TEST(AsyncCopy, EachLaneWaitsForItsOwnGroups) {
  Gpu gpu("async");
  const auto x = gpu.Upload(Counting(64), "x");
  const auto y = gpu.Allocate<float>(96, "y");
  const LaunchReport report =
      gpu.Run("groups_of_lanes", {.grid = {1}, .block = {32}, .mode = Mode::kCheck}, x, y);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  for (std::size_t t = 0; t < 32; ++t) {
    const bool odd = t % 2 == 1;
    EXPECT_EQ(y[t], odd ? x[t] : -1) << t;
    EXPECT_EQ(y[32 + t], x[t]) << t;
    EXPECT_EQ(y[64 + t], odd ? x[32 + t] : -1) << t;
  }
}

TEST(AsyncCopy, CopiesOfFourEightAndSixteenBytes) {
  Gpu gpu("async");
  const auto x = gpu.Upload(Bytes(512), "x");
  const auto y = gpu.Allocate<std::uint8_t>(896, "y");
  const LaunchReport report =
      gpu.Run("sizes", {.grid = {1}, .block = {32}, .mode = Mode::kCheck}, x, y);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  for (const auto& [at, count] :
       {std::pair{0U, 128U}, std::pair{128U, 256U}, std::pair{384U, 512U}}) {
    for (std::uint32_t i = 0; i < count; ++i) {
      ASSERT_EQ(y[at + i], x[i]) << at << " " << i;
    }
  }
}

TEST(AsyncCopy, FillsWithZerosBehindTheSource) {
  Gpu gpu("async");
  std::vector<int> bytes(32);
  for (int t = 0; t < 32; ++t) {
    bytes[static_cast<std::size_t>(t)] = t % 17;
  }
  bytes[31] = 0;  // x ends before its bytes
  const auto x = gpu.Upload(Bytes(31 * 16), "x");
  const auto n = gpu.Upload(bytes, "n");
  const auto y = gpu.Allocate<std::uint8_t>(512, "y");
  const LaunchReport report =
      gpu.Run("zero_fill", {.grid = {1}, .block = {32}, .mode = Mode::kCheck}, x, n, y);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  for (std::size_t i = 0; i < 512; ++i) {
    const bool copied = static_cast<int>(i % 16) < bytes[i / 16];
    ASSERT_EQ(y[i], copied ? x[i] : 0) << i;
  }
}

TEST(AsyncCopy, OnlyTheBytesOfTheSourceMustExist) {
  const auto run = [](int last) {
    Gpu gpu("async");
    std::vector<int> bytes(32, 16);
    bytes[31] = last;
    const auto x = gpu.Upload(Bytes(512 - 4), "x");
    const auto n = gpu.Upload(bytes, "n");
    const auto y = gpu.Allocate<std::uint8_t>(512, "y");
    return gpu.Run("zero_fill", {.grid = {1}, .block = {32}}, x, n, y);
  };
  EXPECT_TRUE(run(12).faults.empty());
  const LaunchReport past = run(13);
  ASSERT_TRUE(HasFault(past, FaultKind::kOutOfBounds));
  EXPECT_THAT(past.faults.front().message, HasSubstr("read 13 bytes"));
  const LaunchReport more = run(17);
  ASSERT_TRUE(HasFault(more, FaultKind::kOutOfBounds));
  EXPECT_THAT(more.faults.front().message, HasSubstr("17 bytes of its source, but copies 16"));
}

TEST(AsyncCopy, AnIgnoredSourceIsZeroAndNeedNotExist) {
  Gpu gpu("async");
  const auto x = gpu.Upload(Counting(20), "x");
  const auto y = gpu.Allocate<float>(64, "y");
  const LaunchReport report =
      gpu.Run("ignore_source", {.grid = {1}, .block = {32}, .mode = Mode::kCheck}, x, y, 20, 0ULL);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  for (std::size_t t = 0; t < 32; ++t) {
    const float expected = t < 20 ? x[t] : 0;
    EXPECT_EQ(y[t], expected) << t;
    EXPECT_EQ(y[32 + t], expected) << t;
  }
}

LaunchReport OneCopy(int from, int to) {
  Gpu gpu("async");
  const auto x = gpu.Upload(Bytes(64), "x");
  const auto y = gpu.Allocate<std::uint8_t>(1, "y");
  return gpu.Run("one_copy", {.grid = {1}, .block = {1}}, x, y, from, to);
}

TEST(AsyncCopy, BothSidesMustBeAlignedAndInBounds) {
  EXPECT_TRUE(OneCopy(48, 48).faults.empty());
  EXPECT_TRUE(HasFault(OneCopy(8, 0), FaultKind::kMisaligned));
  EXPECT_TRUE(HasFault(OneCopy(0, 8), FaultKind::kMisaligned));
  const LaunchReport source = OneCopy(64, 0);
  ASSERT_TRUE(HasFault(source, FaultKind::kOutOfBounds));
  EXPECT_THAT(source.faults.front().message, HasSubstr("just past the end of 'x'"));
  EXPECT_TRUE(HasFault(OneCopy(-16, 0), FaultKind::kOutOfBounds));
  const LaunchReport shared = OneCopy(0, 64);
  ASSERT_TRUE(HasFault(shared, FaultKind::kSharedOutOfBounds));
  EXPECT_THAT(shared.faults.front().message, HasSubstr("wrote 16 bytes at offset 64"));
}

TEST(AsyncCopy, CooperativeGroupsCopy) {
  Gpu gpu("async");
  const auto x = gpu.Upload(Counting(512), "x");
  const auto y = gpu.Allocate<float>(512, "y");
  const LaunchReport report =
      gpu.Run("group_copy", {.grid = {1}, .block = {96}, .mode = Mode::kCheck}, x, y);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  for (std::size_t i = 0; i < 512; ++i) {
    ASSERT_EQ(y[i], x[511 - i]);
  }
}

TEST(AsyncCopy, PipelineObjectOfAThread) {
  Gpu gpu("async");
  const auto x = gpu.Upload(Counting(std::size_t{4} * kThreads * kTiles), "x");
  const auto y = gpu.Allocate<float>(std::size_t{4} * kThreads, "y");
  const LaunchReport report = gpu.Run(
      "pipeline_object", {.grid = {1}, .block = {kThreads}, .mode = Mode::kCheck}, x, y, kTiles);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  for (std::size_t t = 0; t < kThreads; ++t) {
    float sum = 0;
    for (std::size_t i = 0; i < kTiles; ++i) {
      sum += x[4 * (i * kThreads + kThreads - 1 - t) + 3];
    }
    ASSERT_EQ(y[4 * t + 3], sum) << t;
  }
}

InstructionCounters Traffic(int stride, int pitch) {
  Gpu gpu("async");
  const auto x = gpu.Allocate<float>(4096, "x");
  const auto y = gpu.Allocate<float>(32, "y");
  const LaunchReport report = gpu.Run(
      "traffic", {.grid = {1}, .block = {32}, .dynamic_shared = 32768, .mode = Mode::kSample}, x, y,
      stride, pitch);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  EXPECT_EQ(report.allocations.at(0).unique_read,
            CountersOf(gpu.Kernel("traffic"), report, "cp.async.cg").sectors);
  return CountersOf(gpu.Kernel("traffic"), report, "cp.async.cg");
}

TEST(AsyncCopy, CountsSectorsOfTheSourceAndWavefrontsOfTheDestination) {
  const InstructionCounters dense = Traffic(4, 4);
  EXPECT_EQ(dense.requests, 1U);
  EXPECT_EQ(dense.bytes, 512U);
  EXPECT_EQ(dense.sectors, 16U);
  EXPECT_EQ(dense.lines, 4U);
  EXPECT_EQ(dense.ideal_sectors, 16U);
  EXPECT_EQ(dense.wavefronts, 4U);
  EXPECT_EQ(dense.ideal_wavefronts, 4U);
  const InstructionCounters rows = Traffic(64, 4);  // a sector each
  EXPECT_EQ(rows.sectors, 32U);
  EXPECT_EQ(rows.lines, 32U);
  EXPECT_EQ(rows.wavefronts, 4U);
  const InstructionCounters columns = Traffic(4, 32);  // all lanes on the same four banks
  EXPECT_EQ(columns.sectors, 16U);
  EXPECT_EQ(columns.wavefronts, 32U);
}

TEST(AsyncCopy, BulkCopiesAreNotSupported) {
  Gpu gpu("async");
  const auto x = gpu.Allocate<float>(32, "x");
  const auto y = gpu.Allocate<float>(32, "y");
  const LaunchReport report = gpu.Run("bulk", {.grid = {1}, .block = {32}}, x, y);
  ASSERT_TRUE(HasFault(report, FaultKind::kUnsupported));
  EXPECT_THAT(report.faults.front().message, HasSubstr("cp.async.bulk"));
}

}  // namespace
}  // namespace kernelpro::simt
