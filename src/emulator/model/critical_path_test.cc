// SPDX-License-Identifier: Apache-2.0
#include "emulator/model/critical_path.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "emulator/model/cost_table.h"
#include "emulator/model/model.h"
#include "emulator/model/test_kernel.h"
#include "emulator/ptx/module.h"

namespace kernelpro::model {
namespace {

/// Arithmetic from the cost table, 100 cycles for loads.
std::vector<InstructionTiming> Timing(const ptx::Function& kernel) {
  const GpuSpec spec = TestSpec();
  std::vector<InstructionTiming> out;
  for (const ptx::Instruction& op : kernel.body) {
    const OpCost cost = CostOf(op, spec);
    const bool load = op.parts.front() == "ld";
    out.push_back({.slots = cost.issue, .latency = load ? 100 : cost.latency});
  }
  return out;
}

double Cycles(std::string_view body, std::size_t segment = 0) {
  const ptx::Function kernel = TestKernel(body);
  const std::vector<Segment> segments = CutIntoSegments(kernel);
  EXPECT_LT(segment, segments.size());
  return SegmentCycles(kernel, segments.at(segment), Timing(kernel));
}

TEST(CriticalPath, ChainWaitsForEachResult) {
  // Starts at 0, 4.3, 8.6.
  EXPECT_NEAR(Cycles("fma.rn.f32 %f1,%f1,%f2,%f3; fma.rn.f32 %f1,%f1,%f2,%f3;"
                     "fma.rn.f32 %f1,%f1,%f2,%f3; ret;"),
              8.6, 1e-9);
}

TEST(CriticalPath, IndependentInstructionsNeedTheirIssueSlots) {
  EXPECT_NEAR(Cycles("fma.rn.f32 %f1,%f1,%f2,%f3; fma.rn.f32 %f4,%f4,%f2,%f3;"
                     "fma.rn.f32 %f5,%f5,%f2,%f3; ret;"),
              4, 1e-9);
}

TEST(CriticalPath, LoadsOverlapUntilTheirUse) {
  EXPECT_NEAR(Cycles("ld.global.f32 %f1,[%l1]; ld.global.f32 %f2,[%l1+4]; add.f32 %f3,%f1,%f2;"
                     "st.global.f32 [%l1],%f3; ret;"),
              100 + 4.3, 1e-9);
  // Dependent loads (pointer chase) do not.
  EXPECT_NEAR(Cycles("ld.global.u64 %l1,[%l1]; ld.global.u64 %l1,[%l1];"
                     "st.global.u64 [%l1],%l1; ret;"),
              200, 1e-9);
}

TEST(CriticalPath, GuardsAndStoreDataAreDependences) {
  EXPECT_NEAR(
      Cycles("setp.lt.s32 %p1,%r1,%r2; @%p1 add.s32 %r3,%r3,1; st.global.u32 [%l1],%r3; ret;"), 8.6,
      1e-9);
}

TEST(CriticalPath, LoopCarriedChainBoundsTheIteration) {
  // The sum needs %f1 of the previous iteration only at its end: 4 dependent adds, 17.2 cycles. The
  // latest start is 12.9, and 8 for the branch.
  constexpr std::string_view kLoop =
      "top: add.f32 %f1,%f1,%f2; add.f32 %f1,%f1,%f3; add.f32 %f1,%f1,%f4; add.f32 %f1,%f1,%f5;"
      "@%p1 bra top; ret;";
  EXPECT_NEAR(Cycles(kLoop), 12.9 + 8, 1e-9);
  // A load in the chain: ready after 100 + 4.3, later than any start in the iteration.
  EXPECT_NEAR(Cycles("top: ld.global.u64 %l2,[%l1]; add.s64 %l1,%l2,8; @%p1 bra top; ret;"), 108,
              5);
}

TEST(CriticalPath, BarriersCutSegments) {
  const ptx::Function kernel = TestKernel(
      "add.s32 %r1,%r1,1; bar.sync 0; add.s32 %r1,%r1,1; @%p1 bra end; bar.warp.sync -1;"
      "end: ret;");
  const std::vector<Segment> segments = CutIntoSegments(kernel);
  ASSERT_EQ(segments.size(), 4U);
  EXPECT_EQ(segments[0].end, 2U);
  EXPECT_EQ(segments[1].end, 4U);
  EXPECT_EQ(segments[2].end, 5U);
}

}  // namespace
}  // namespace kernelpro::model
