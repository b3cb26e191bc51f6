// SPDX-License-Identifier: Apache-2.0
#include "emulator/model/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>

#include "emulator/model/test_kernel.h"
#include "emulator/ptx/module.h"
#include "emulator/simt/report.h"

namespace kernelpro::model {
namespace {

constexpr std::uint32_t kCtas = 1056;    // 8 a SM
constexpr std::uint32_t kExecuted = 8;   // one cohort
constexpr std::uint32_t kWarps = 8 * 8;  // of 256-thread CTAs

simt::LaunchReport Report(const ptx::Function& kernel) {
  simt::LaunchReport report;
  report.kernel = kernel.name;
  report.grid = {kCtas, 1, 1};
  report.block = {256, 1, 1};
  report.ctas = kCtas;
  report.ctas_executed = kExecuted;
  report.sampled = true;
  report.instructions.resize(kernel.body.size());
  for (simt::InstructionCounters& c : report.instructions) {
    c.warps = kWarps;
    c.lanes = c.lanes_on = kWarps * 32;
  }
  return report;
}

void SetGlobal(simt::InstructionCounters& c, std::uint64_t sectors_per_request,
               std::uint64_t lines_per_request) {
  c.requests = kWarps;
  c.sectors = kWarps * sectors_per_request;
  c.lines = kWarps * lines_per_request;
}

KernelResources Registers(std::uint32_t count) {
  KernelResources out;
  out.registers_per_thread = count;
  return out;
}

double CyclesOf(const ModelledTime& time, std::string_view name) {
  const auto found = std::ranges::find(time.bounds, name, &Bound::name);
  EXPECT_NE(found, time.bounds.end()) << name;
  return found == time.bounds.end() ? -1 : found->cycles;
}

/// out[i] = in[i], coalesced: 4 sectors and one line a request.
struct Copy {
  ptx::Function kernel = TestKernel("ld.global.f32 %f1,[%l1]; st.global.f32 [%l2],%f1; ret;");
  simt::LaunchReport report = Report(kernel);

  Copy() {
    SetGlobal(report.instructions[0], 4, 1);
    SetGlobal(report.instructions[1], 4, 1);
    simt::AllocationTraffic in;
    in.name = "in";
    in.total_sectors = kCtas * 8 * 4;
    in.unique_read = in.miss_read = kWarps * 4;
    in.unique_read_granules = in.unique_read / 2;
    simt::AllocationTraffic out;
    out.name = "out";
    out.total_sectors = in.total_sectors;
    out.unique_write = out.miss_write = kWarps * 4;
    report.allocations = {in, out};
  }
};

TEST(Model, CopyByHand) {
  const Copy copy;
  const GpuSpec spec = TestSpec();
  const ModelledTime time = ModelTime(spec, copy.kernel, copy.report, Registers(32));
  EXPECT_EQ(time.occupancy.ctas_per_sm, 8U);
  EXPECT_FALSE(time.registers_estimated);
  // All 8 CTAs of an SM are one wave: 64 warps x 3 instructions / 4 schedulers.
  EXPECT_NEAR(CyclesOf(time, "issue"), 48, 1e-9);
  // A line a load, four cycles a line stored.
  EXPECT_NEAR(CyclesOf(time, "l1"), 64 + 64 * 4, 1e-9);
  EXPECT_NEAR(CyclesOf(time, "lsu"), 128, 1e-9);
  const double bytes = 2.0 * kCtas * 8 * 4 * 32;
  EXPECT_NEAR(CyclesOf(time, "dram"), bytes / 4.445e12 * 1.98e9, 1e-6);
  EXPECT_NEAR(CyclesOf(time, "l2"), bytes / 7.7e12 * 1.98e9, 1e-6);
  EXPECT_NEAR(CyclesOf(time, "cta_launch"), kCtas / 0.83, 1e-6);
  // The store waits for the load, all of it from DRAM; then the CTA's own overhead.
  EXPECT_NEAR(CyclesOf(time, "latency"), 690 + 700, 1e-6);
  EXPECT_DOUBLE_EQ(time.dram_read_bytes, bytes / 2);
  EXPECT_DOUBLE_EQ(time.dram_write_bytes, bytes / 2);
  double sum = 0;
  for (const Bound& bound : time.bounds) {
    sum += std::pow(bound.cycles, 4);
  }
  EXPECT_NEAR(time.time_us, std::pow(sum, 0.25) / 1980 + 2.2, 1e-9);
  EXPECT_TRUE(std::ranges::is_sorted(time.bounds, std::ranges::greater{}, &Bound::cycles));
  EXPECT_DOUBLE_EQ(time.bounds.front().share, 1);
}

TEST(Model, StridedStoresCostPerLine) {
  Copy copy;
  const GpuSpec spec = TestSpec();
  const double before = CyclesOf(ModelTime(spec, copy.kernel, copy.report, Registers(32)), "l1");
  SetGlobal(copy.report.instructions[1], 32, 32);
  const double after = CyclesOf(ModelTime(spec, copy.kernel, copy.report, Registers(32)), "l1");
  EXPECT_NEAR(after - before, 64 * 4 * 31, 1e-6);
}

TEST(Model, DramReadsComeIn64ByteGranules) {
  Copy copy;
  copy.report.allocations[0].unique_read_granules = copy.report.allocations[0].unique_read;
  copy.report.allocations[0].total_sectors *= 2;
  const ModelledTime time = ModelTime(TestSpec(), copy.kernel, copy.report, Registers(32));
  EXPECT_DOUBLE_EQ(time.dram_read_bytes, 2 * time.dram_write_bytes);
}

TEST(Model, LargeAllocationsPayForTheirMisses) {
  Copy copy;
  simt::AllocationTraffic& in = copy.report.allocations[0];
  in.miss_read = 10 * in.unique_read;
  const GpuSpec spec = TestSpec();
  // It fits in half of L2: fetched once, whatever missed in the cohort's share.
  const double small = ModelTime(spec, copy.kernel, copy.report, Registers(32)).dram_read_bytes;
  EXPECT_DOUBLE_EQ(small, double(in.total_sectors) * 32);
  in.total_sectors = (spec.l2_bytes / 2 + 32) / 32;
  const double large = ModelTime(spec, copy.kernel, copy.report, Registers(32)).dram_read_bytes;
  EXPECT_DOUBLE_EQ(large, 10 * small);
}

TEST(Model, AtomicsQueueAtTheHottestSector) {
  Copy copy;
  copy.report.atomics.operations = 32 * kWarps;
  copy.report.atomics.hottest_sector_operations = 800;
  copy.report.atomics.hottest_sector_requests = 100;
  const ModelledTime time = ModelTime(TestSpec(), copy.kernel, copy.report, Registers(32));
  EXPECT_NEAR(CyclesOf(time, "atomics"), 100 * 132 * 22, 1e-6);
}

TEST(Model, FewRegistersMoreWaves) {
  const Copy copy;
  const GpuSpec spec = TestSpec();
  const double full = CyclesOf(ModelTime(spec, copy.kernel, copy.report, Registers(32)), "latency");
  // 128 registers: 2 CTAs an SM, four waves instead of one.
  const double low = CyclesOf(ModelTime(spec, copy.kernel, copy.report, Registers(128)), "latency");
  EXPECT_NEAR(low, 4 * full, 1e-6);
}

double TimeOfDivision(std::string_view op) {
  const ptx::Function kernel = TestKernel(std::string(op) + " ret;");
  simt::LaunchReport report = Report(kernel);
  report.instructions[0].warps *= 1000;
  return ModelTime(TestSpec(), kernel, report, Registers(32)).time_us;
}

TEST(Model, AccidentalDoublesAreSlow) {
  // One DFMA pass takes two cycles a warp on 64 lanes; a division is nine of them.
  const double f64 = TimeOfDivision("div.rn.f64 %d1,%d2,%d3;");
  const double f32 = TimeOfDivision("div.rn.f32 %f1,%f2,%f3;");
  EXPECT_GT(f64, 64 * 1000 * 9 * 0.5 / 1980);
  EXPECT_GT(f64, 1.5 * f32);
  EXPECT_GT(TimeOfDivision("mul.f64 %d1,%d2,%d3;"), 1.5 * TimeOfDivision("mul.f32 %f1,%f2,%f3;"));
  EXPECT_GT(TimeOfDivision("cvt.f64.f32 %d1,%f2;"), 3 * TimeOfDivision("mul.f32 %f1,%f2,%f3;"));
}

double LatencyOfCopies(std::string_view wait) {
  const ptx::Function kernel = TestKernel(
      "cp.async.cg.shared.global [%r1],[%l1],16; cp.async.commit_group; cp.async.wait_group " +
      std::string(wait) + "; ret;");
  simt::LaunchReport report = Report(kernel);
  SetGlobal(report.instructions[0], 16, 4);
  simt::AllocationTraffic in;
  in.total_sectors = in.unique_read = in.miss_read = kWarps * 16;
  in.unique_read_granules = in.unique_read / 2;
  report.allocations = {in};
  return CyclesOf(ModelTime(TestSpec(), kernel, report, Registers(32)), "latency");
}

TEST(Model, WaitingForAllCopiesExposesTheirLatency) {
  // Few distinct sectors for the whole grid: nearly all reads hit L2.
  EXPECT_GT(LatencyOfCopies("0"), 700 + 287);
  EXPECT_LT(LatencyOfCopies("1"), 700 + 10);
}

TEST(Model, WarpsOfABlockTakeTurnsAtIssuing) {
  const auto latency = [](std::uint32_t threads) {
    std::string body;
    for (int i = 0; i < 1000; ++i) {
      body += "fma.rn.f32 %f1,%f2,%f3,%f4;";
    }
    const ptx::Function kernel = TestKernel(body + "ret;");
    simt::LaunchReport report = Report(kernel);
    report.block = {threads, 1, 1};
    report.ctas = 132;  // one a SM
    for (simt::InstructionCounters& c : report.instructions) {
      c.warps = kExecuted * threads / 32;
    }
    return CyclesOf(ModelTime(TestSpec(), kernel, report, Registers(32)), "latency") - 700;
  };
  // Four schedulers: four warps issue at once, eight need twice as long.
  EXPECT_NEAR(latency(128), 1001, 1);
  EXPECT_NEAR(latency(256), 2002, 1);
}

TEST(Model, CopiesTakeTheL1OnBothSidesAndAreNoStores) {
  const ptx::Function kernel = TestKernel("cp.async.cg.shared.global [%r1],[%l1],16; ret;");
  simt::LaunchReport report = Report(kernel);
  SetGlobal(report.instructions[0], 16, 4);
  report.instructions[0].wavefronts = kWarps * 8;
  const ModelledTime time = ModelTime(TestSpec(), kernel, report, Registers(32));
  EXPECT_NEAR(CyclesOf(time, "l1"), 64 * (4 + 8), 1e-9);
  EXPECT_EQ(time.shared_store_wavefronts, 0);
  EXPECT_NEAR(time.l2_bytes, double{kCtas} * 8 * 16 * 32, 1e-6);
}

TEST(Model, LocalMemoryGoesThroughL1) {
  const ptx::Function kernel = TestKernel("ld.local.f32 %f1,[%l1]; st.local.f32 [%l1+4],%f1; ret;");
  simt::LaunchReport report = Report(kernel);
  SetGlobal(report.instructions[0], 4, 1);
  SetGlobal(report.instructions[1], 4, 1);
  report.instructions[0].l1_hit_sectors = report.instructions[0].sectors;
  const ModelledTime time = ModelTime(TestSpec(), kernel, report, Registers(32));
  EXPECT_NEAR(CyclesOf(time, "l1"), 64 + 64 * 4, 1e-9);
  // The load hits L1, the store is written through.
  EXPECT_DOUBLE_EQ(time.l2_bytes, 64.0 * 4 * 32 * kCtas / kExecuted);
  EXPECT_NEAR(CyclesOf(time, "latency"), 700 + 40, 1e-6);
}

TEST(Model, MatrixInstructionsLoadTheTensorCores) {
  const ptx::Function kernel = TestKernel(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, "
      "{%r5,%r6}, {%f1,%f2,%f3,%f4}; ret;");
  const simt::LaunchReport report = Report(kernel);
  const ModelledTime time = ModelTime(TestSpec(), kernel, report, Registers(32));
  // 64 warps x 4096 flops on one SM's share of 989 TFLOPS, of which mma.sync reaches 63 %.
  EXPECT_NEAR(CyclesOf(time, "tensor"), 64 * 4096 / (989e12 / 132 / 1.98e9 * 0.63), 1e-6);
}

TEST(Model, SpillsAddTraffic) {
  const Copy copy;
  KernelResources spilling = Registers(32);
  spilling.spill_load_bytes = 400;
  spilling.spill_store_bytes = 400;
  const GpuSpec spec = TestSpec();
  const ModelledTime without = ModelTime(spec, copy.kernel, copy.report, Registers(32));
  const ModelledTime with = ModelTime(spec, copy.kernel, copy.report, spilling);
  // 100 words each way, as often as the average instruction: 64 times.
  EXPECT_NEAR(CyclesOf(with, "l1") - CyclesOf(without, "l1"), 64 * 100 * (1 + 4), 1e-6);
  EXPECT_GT(with.time_us, without.time_us);
}

TEST(Model, WithoutAssemblerRegistersAreEstimatedAndSaidSo) {
  const Copy copy;
  const ModelledTime time = ModelTime(TestSpec(), copy.kernel, copy.report, KernelResources{});
  EXPECT_TRUE(time.registers_estimated);
  EXPECT_TRUE(std::isfinite(time.time_us));
}

TEST(Model, NothingToModelIsInfinite) {
  Copy copy;
  const GpuSpec spec = TestSpec();
  KernelResources too_large = Registers(32);
  too_large.static_shared_bytes = 1 << 20;
  EXPECT_EQ(ModelTime(spec, copy.kernel, copy.report, too_large).time_us,
            std::numeric_limits<double>::infinity());
  copy.report.ctas_executed = 0;
  EXPECT_EQ(ModelTime(spec, copy.kernel, copy.report, Registers(32)).time_us,
            std::numeric_limits<double>::infinity());
}

TEST(EstimateResources, CountsLiveWords) {
  // Before the second add: %f1..%f4 (4 words) and %l1 (2 words); 8 more by rule.
  const ptx::Function kernel = TestKernel(
      "ld.global.f32 %f1,[%l1]; ld.global.f32 %f2,[%l1+4]; ld.global.f32 %f3,[%l1+8];"
      "ld.global.f32 %f4,[%l1+12]; add.f32 %f1,%f1,%f2; add.f32 %f1,%f1,%f3; add.f32 %f1,%f1,%f4;"
      "st.global.f32 [%l1],%f1; ret;");
  EXPECT_EQ(EstimateResources(kernel).registers_per_thread, 4U + 2 + 8);
}

TEST(EstimateResources, ValuesLiveAroundALoopCount) {
  // %d1 (2 words) is used after the loop, %f1 and %r1 inside, %l1 (2 words) after it.
  const ptx::Function kernel = TestKernel(
      "ld.param.u64 %l1,[a]; mov.f64 %d1,0d3FF0000000000000; mov.f32 %f1,0f00000000; mov.u32 %r1,0;"
      "top: add.f32 %f1,%f1,%f1; add.s32 %r1,%r1,1; setp.lt.s32 %p1,%r1,100; @%p1 bra top;"
      "st.global.f64 [%l1],%d1; st.global.f32 [%l1+8],%f1; ret;");
  EXPECT_EQ(EstimateResources(kernel).registers_per_thread, 2U + 1 + 1 + 2 + 8);
}

TEST(EstimateResources, SharedAndLocalFromTheDeclarations) {
  const ptx::Function kernel = TestKernel(
      ".shared .align 4 .b8 s[100]; .shared .align 16 .b8 t[32]; .local .align 4 .b8 depot[24];"
      "ret;");
  const KernelResources resources = EstimateResources(kernel);
  EXPECT_EQ(resources.static_shared_bytes, 112U + 32);
  EXPECT_EQ(resources.local_bytes_per_thread, 24U);
}

}  // namespace
}  // namespace kernelpro::model
