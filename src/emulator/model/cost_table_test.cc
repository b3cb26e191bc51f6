// SPDX-License-Identifier: Apache-2.0
#include "emulator/model/cost_table.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "emulator/model/model.h"
#include "emulator/model/test_kernel.h"
#include "emulator/ptx/module.h"

namespace kernelpro::model {
namespace {

OpCost Cost(std::string_view instruction, std::string_view gpu = "h200") {
  const ptx::Function kernel = TestKernel(std::string(instruction) + "\n ret;");
  return kernel.body.empty() ? OpCost{} : CostOf(kernel.body.front(), TestSpec(gpu));
}

TEST(CostTable, MovesAndAddressConversionsAreFree) {
  EXPECT_EQ(Cost("mov.u32 %r1, %tid.x;").issue, 0);
  EXPECT_EQ(Cost("cvta.to.global.u64 %l1, %l2;").issue, 0);
  EXPECT_EQ(Cost("ld.param.u64 %l1, [a];").issue, 0);
}

TEST(CostTable, OrdinaryArithmetic) {
  const OpCost fma = Cost("fma.rn.f32 %f1, %f2, %f3, %f4;");
  EXPECT_EQ(fma.issue, 1);
  EXPECT_EQ(fma.fma, 1);
  EXPECT_DOUBLE_EQ(fma.latency, 4.3);
  EXPECT_EQ(Cost("mad.lo.s32 %r1, %r2, %r3, %r4;").imad, 1);
  EXPECT_EQ(Cost("add.s32 %r1, %r2, %r3;").alu, 1);
  EXPECT_EQ(Cost("add.s64 %l1, %l2, %l3;").issue, 1.5);
  EXPECT_EQ(Cost("shl.b64 %l1, %l2, 3;").alu, 2);
  EXPECT_EQ(Cost("setp.lt.s32 %p1, %r1, %r2;").alu, 1);
  EXPECT_EQ(Cost("and.pred %p1, %p2, %p3;").issue, 0.5);
}

TEST(CostTable, DenormalScalingCostsThreeMore) {
  EXPECT_EQ(Cost("ex2.approx.ftz.f32 %f1, %f2;").issue, 1);
  EXPECT_EQ(Cost("ex2.approx.f32 %f1, %f2;").issue, 4);
  EXPECT_EQ(Cost("ex2.approx.f32 %f1, %f2;").sfu, 1);
}

TEST(CostTable, DivisionBecomesASequence) {
  EXPECT_EQ(Cost("div.rn.f32 %f1, %f2, %f3;").issue, 10);
  EXPECT_DOUBLE_EQ(Cost("div.rn.f32 %f1, %f2, %f3;").latency, 45);
  EXPECT_EQ(Cost("div.s32 %r1, %r2, %r3;").issue, 20);
  EXPECT_GT(Cost("div.s64 %l1, %l2, %l3;").issue, 2 * Cost("div.s32 %r1, %r2, %r3;").issue);
}

TEST(CostTable, DoublesLoadTheFp64Pipe) {
  EXPECT_EQ(Cost("fma.rn.f64 %d1, %d2, %d3, %d4;").fp64, 1);
  EXPECT_DOUBLE_EQ(Cost("fma.rn.f64 %d1, %d2, %d3, %d4;").latency, 8.1);
  for (const std::string_view op : {"div.rn.f64 %d1, %d2, %d3;", "sqrt.rn.f64 %d1, %d2;"}) {
    const OpCost cost = Cost(op);
    EXPECT_GE(cost.fp64, 8) << op;
    EXPECT_LE(cost.fp64, 10) << op;
    EXPECT_EQ(cost.sfu, 1) << op;
    EXPECT_FALSE(cost.validated) << op;
    EXPECT_GT(cost.latency, 8 * 8.1) << op;
  }
  EXPECT_EQ(Cost("setp.lt.f64 %p1, %d1, %d2;").fp64, 1);
  EXPECT_EQ(Cost("cvt.f64.f32 %d1, %f1;").sfu, 1);
  EXPECT_EQ(Cost("cvt.rn.f32.f64 %f1, %d1;").sfu, 1);
}

TEST(CostTable, ConversionsThatAreOrdinaryInstructions) {
  EXPECT_EQ(Cost("cvt.rn.f32.s32 %f1, %r1;").sfu, 0);   // I2FP
  EXPECT_EQ(Cost("cvt.rn.f16.f32 %h1, %f1;").sfu, 0);   // F2FP
  EXPECT_EQ(Cost("cvt.rzi.s32.f32 %r1, %f1;").sfu, 1);  // F2I
  EXPECT_EQ(Cost("cvt.rzi.s64.f32 %l1, %f1;").fp64, 1);
  EXPECT_EQ(Cost("cvt.u64.u32 %l1, %r1;").issue, 0.5);
}

TEST(CostTable, MatrixInstructionsCountTheirFlops) {
  const OpCost half = Cost(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, "
      "{%r5,%r6}, {%f1,%f2,%f3,%f4};");
  EXPECT_EQ(half.tensor_flops, 2.0 * 16 * 8 * 16);
  EXPECT_FALSE(half.validated);
  const OpCost tf32 = Cost(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1,%f2,%f3,%f4}, "
      "{%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f1,%f2,%f3,%f4};");
  // Half the work at half the rate.
  EXPECT_EQ(tf32.tensor_flops, half.tensor_flops);
}

TEST(CostTable, UnknownOpcodesCostOneInstruction) {
  EXPECT_EQ(Cost("lop3.b32 %r1, %r2, %r3, %r4, 0x96;").issue, 1);
  EXPECT_EQ(Cost("prmt.b32 %r1, %r2, %r3, %r4;").alu, 1);
}

}  // namespace
}  // namespace kernelpro::model
