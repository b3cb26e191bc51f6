// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "emulator/simt/engine_test_util.h"

namespace kernelpro::simt {
namespace {

struct Costs {
  InstructionCounters load, store;
  LaunchReport report;
};

template <class... Args>
Costs Global(Gpu& gpu, const char* kernel, const Gpu::Shape& shape, const Args&... args) {
  Costs costs;
  costs.report = gpu.Run(kernel, shape, args...);
  EXPECT_TRUE(costs.report.faults.empty()) << Faults(costs.report);
  costs.load = CountersOf(gpu.Kernel(kernel), costs.report, "ld.global");
  costs.store = CountersOf(gpu.Kernel(kernel), costs.report, "st.global");
  return costs;
}

TEST(Counters, CoalescedCopyTakesFourSectorsARequest) {
  Gpu gpu("counters");
  const auto in = gpu.Allocate<float>(256, "in");
  const auto out = gpu.Allocate<float>(256, "out");
  const Costs c = Global(gpu, "copy", {.grid = {2}, .block = {128}}, in, out);
  for (const InstructionCounters& n : {c.load, c.store}) {
    EXPECT_EQ(n.warps, 8U);
    EXPECT_EQ(n.lanes, 256U);
    EXPECT_EQ(n.lanes_on, 256U);
    EXPECT_EQ(n.requests, 8U);
    EXPECT_EQ(n.sectors, 32U);
    EXPECT_EQ(n.ideal_sectors, 32U);
    EXPECT_EQ(n.lines, 8U);
    EXPECT_EQ(n.bytes, 1024U);
    EXPECT_EQ(n.address_bits & 3U, 0U);
  }
  ASSERT_EQ(c.report.allocations.size(), 2U);
  EXPECT_EQ(c.report.allocations[0].name, "in");
  EXPECT_EQ(c.report.allocations[0].total_sectors, 32U);
  EXPECT_EQ(c.report.allocations[0].unique_read, 32U);
  EXPECT_EQ(c.report.allocations[0].unique_read_granules, 16U);
  EXPECT_EQ(c.report.allocations[0].unique_write, 0U);
  EXPECT_EQ(c.report.allocations[1].unique_write, 32U);
}

TEST(Counters, Float4CopyTakesSixteen) {
  Gpu gpu("counters");
  const auto in = gpu.Allocate<float>(512, "in");
  const auto out = gpu.Allocate<float>(512, "out");
  const Costs c = Global(gpu, "copy4", {.grid = {1}, .block = {128}}, in, out);
  EXPECT_EQ(c.load.requests, 4U);
  EXPECT_EQ(c.load.sectors, 64U);
  EXPECT_EQ(c.load.lines, 16U);
  EXPECT_EQ(c.store.sectors, 64U);
  EXPECT_EQ(c.load.bytes, 2048U);
}

struct StrideCase {
  int stride;
  std::uint64_t sectors, lines;
};

class Strides : public testing::TestWithParam<StrideCase> {};

TEST_P(Strides, Spread) {
  Gpu gpu("counters");
  const auto in = gpu.Allocate<float>(64 * 64, "in");
  const auto out = gpu.Allocate<float>(64, "out");
  const Costs c = Global(gpu, "strided", {.grid = {1}, .block = {32}}, in, out, GetParam().stride);
  EXPECT_EQ(c.load.sectors, GetParam().sectors);
  EXPECT_EQ(c.load.lines, GetParam().lines);
  EXPECT_EQ(c.load.ideal_sectors, std::min<std::uint64_t>(GetParam().sectors, 4));
}

INSTANTIATE_TEST_SUITE_P(Loads, Strides,
                         testing::Values(StrideCase{0, 1, 1}, StrideCase{1, 4, 1},
                                         StrideCase{2, 8, 2}, StrideCase{3, 12, 3},
                                         StrideCase{8, 32, 8}, StrideCase{32, 32, 32},
                                         StrideCase{64, 32, 32}));

TEST(Counters, UniformLoadTakesOneSector) {
  Gpu gpu("counters");
  const auto in = gpu.Allocate<float>(2, "in");
  const auto out = gpu.Allocate<float>(128, "out");
  const Costs c = Global(gpu, "uniform", {.grid = {2}, .block = {64}}, in, out);
  EXPECT_EQ(c.load.requests, 4U);
  EXPECT_EQ(c.load.sectors, 4U);
}

TEST(Counters, TransposeStoresColumns) {
  Gpu gpu("counters");
  const auto in = gpu.Allocate<float>(64 * 64, "in");
  const auto out = gpu.Allocate<float>(64 * 64, "out");
  const Costs c = Global(gpu, "transpose", {.grid = {2, 8}, .block = {32, 8}}, in, out, 64);
  EXPECT_EQ(c.load.sectors, 4 * c.load.requests);
  EXPECT_EQ(c.store.sectors, 32 * c.store.requests);
  EXPECT_EQ(c.store.requests, 128U);
}

TEST(Counters, OnlyActiveLanesCount) {
  Gpu gpu("counters");
  const auto in = gpu.Allocate<float>(32, "in");
  const auto out = gpu.Allocate<float>(32, "out");
  const Costs c = Global(gpu, "half_active", {.grid = {1}, .block = {32}}, in, out);
  EXPECT_EQ(c.load.requests, 1U);
  EXPECT_EQ(c.load.lanes_on, 16U);
  EXPECT_EQ(c.load.bytes, 64U);
  EXPECT_EQ(c.load.sectors, 4U);
  EXPECT_EQ(c.load.ideal_sectors, 2U);
}

struct BankCase {
  const char* kernel;
  int stride;
  std::uint64_t wavefronts;
};

class Banks : public testing::TestWithParam<BankCase> {};

TEST_P(Banks, Conflicts) {
  Gpu gpu("counters");
  const auto out = gpu.Allocate<float>(128, "out");
  const LaunchReport report =
      gpu.Run(GetParam().kernel, {.grid = {1}, .block = {32}}, out, GetParam().stride);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  const ptx::Function& kernel = gpu.Kernel(GetParam().kernel);
  EXPECT_EQ(CountersOf(kernel, report, "ld.shared").wavefronts, GetParam().wavefronts);
  EXPECT_EQ(CountersOf(kernel, report, "st.shared").wavefronts, GetParam().wavefronts);
}

INSTANTIATE_TEST_SUITE_P(Shared, Banks,
                         testing::Values(BankCase{"banks", 0, 1}, BankCase{"banks", 1, 1},
                                         BankCase{"banks", 2, 2}, BankCase{"banks", 4, 4},
                                         BankCase{"banks", 32, 32}, BankCase{"banks", 33, 1},
                                         BankCase{"banks8", 0, 1}, BankCase{"banks8", 1, 2},
                                         BankCase{"banks8", 16, 32}, BankCase{"banks16", 0, 2},
                                         BankCase{"banks16", 1, 4}, BankCase{"banks16", 8, 32}));

TEST(Counters, AtomicContention) {
  Gpu gpu("counters");
  const auto out = gpu.Allocate<int>(8, "out");
  const LaunchReport report = gpu.Run("contended", {.grid = {2}, .block = {64}}, out);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  EXPECT_EQ(report.atomics.operations, 128U);
  EXPECT_EQ(report.atomics.hottest_sector_operations, 128U);
  EXPECT_EQ(out[0], 16);
}

TEST(Counters, BranchesThatSplitTheWarp) {
  Gpu gpu("counters");
  std::vector<int> in(32, 2);
  in[4] = 3;
  const auto din = gpu.Upload(in, "in");
  const auto out = gpu.Allocate<int>(64, "out");
  const LaunchReport report = gpu.Run("branches", {.grid = {1}, .block = {32}}, din, out);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  std::uint64_t divergent = 0;
  const ptx::Function& kernel = gpu.Kernel("branches");
  for (std::size_t i = 0; i < kernel.body.size(); ++i) {
    divergent += report.instructions[i].divergent;
  }
  EXPECT_EQ(divergent, 1U);
  // The lanes are together again at the store.
  EXPECT_EQ(CountersOf(kernel, report, "st.global").warps, 1U);
  EXPECT_EQ(CountersOf(kernel, report, "st.global").lanes, 32U);
}

TEST(Sampling, CohortSharesOneL1) {
  Gpu gpu("counters");
  const auto in = gpu.Allocate<float>(1024, "in");
  const auto out = gpu.Allocate<float>(1024, "out");
  Gpu::Shape shape{.grid = {4}, .block = {256}, .mode = Mode::kSample, .resident = 4};
  shape.spec.sm_count = 1;
  const LaunchReport report = gpu.Run("reread", shape, in, out);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  EXPECT_FALSE(report.sampled);
  EXPECT_EQ(report.ctas_executed, 4U);
  EXPECT_EQ(report.ctas_per_sm_assumed, 4U);
  std::uint64_t sectors = 0;
  std::uint64_t hits = 0;
  const ptx::Function& kernel = gpu.Kernel("reread");
  for (std::size_t i = 0; i < kernel.body.size(); ++i) {
    if (kernel.body[i].opcode.starts_with("ld.global")) {
      sectors += report.instructions[i].sectors;
      hits += report.instructions[i].l1_hit_sectors;
    }
  }
  // 4 blocks x 2 passes x 128 sectors; each of the 128 is fetched once.
  EXPECT_EQ(sectors, 1024U);
  EXPECT_EQ(hits, 1024U - 128U);
  EXPECT_EQ(report.allocations[0].miss_read, 128U);
  EXPECT_EQ(report.allocations[0].unique_read, 128U);
  EXPECT_EQ(report.allocations[1].miss_write, 128U);
}

TEST(Sampling, TooSmallAnL1DoesNotHit) {
  Gpu gpu("counters");
  const auto in = gpu.Allocate<float>(1024, "in");
  const auto out = gpu.Allocate<float>(1024, "out");
  Gpu::Shape shape{.grid = {1}, .block = {256}, .mode = Mode::kSample};
  shape.spec.l1_bytes = 0;
  const LaunchReport report = gpu.Run("reread", shape, in, out);
  for (const InstructionCounters& n : report.instructions) {
    EXPECT_EQ(n.l1_hit_sectors, 0U);
  }
  EXPECT_EQ(report.allocations[0].miss_read, 128U);
}

TEST(Sampling, RunsOnlyCohortsOfALargeGrid) {
  Gpu gpu("counters");
  constexpr std::uint32_t kBlocks = 4000;
  const auto in = gpu.Allocate<float>(kBlocks * 128, "in");
  const auto out = gpu.Allocate<float>(kBlocks * 128, "out");
  const LaunchReport report = gpu.Run(
      "copy", {.grid = {kBlocks}, .block = {128}, .mode = Mode::kSample, .resident = 8}, in, out);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  EXPECT_TRUE(report.sampled);
  EXPECT_EQ(report.ctas, kBlocks);
  EXPECT_EQ(report.ctas_executed, 16U);
  EXPECT_EQ(report.ctas_per_sm_assumed, 8U);
}

}  // namespace
}  // namespace kernelpro::simt
