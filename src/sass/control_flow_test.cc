// SPDX-License-Identifier: Apache-2.0
#include "sass/control_flow.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "sass/test_listing.h"

namespace kernelpro::sass {
namespace {

TEST(ControlFlow, NestedLoops) {
  const ControlFlow flow = AnalyzeControlFlow(Code(R"(
      MOV R1, RZ
    .L_x_0:
      MOV R2, RZ
    .L_x_1:
      FADD R3, R3, R2
      @P0 BRA `(.L_x_2)
      FADD R3, R3, R3
    .L_x_2:
      @P1 BRA `(.L_x_1)
      FMUL R4, R3, R3
      @P2 BRA `(.L_x_0)
      EXIT)"));
  ASSERT_EQ(flow.loops.size(), 2U);
  const Loop& inner = flow.loops[0];
  const Loop& outer = flow.loops[1];
  EXPECT_EQ(inner.depth, 2U);
  EXPECT_EQ(inner.parent, 1U);
  EXPECT_EQ(inner.instructions, 4U);
  EXPECT_EQ(outer.depth, 1U);
  EXPECT_EQ(outer.instructions, 7U);
  EXPECT_EQ(flow.InstructionsOf(0), (std::vector<std::uint32_t>{2, 3, 4, 5}));
  EXPECT_EQ(flow.InstructionsOf(1).size(), 7U);
  EXPECT_TRUE(flow.Dominates(flow.block_of[1], flow.block_of[6]));
  EXPECT_FALSE(flow.Dominates(flow.block_of[4], flow.block_of[5]));
}

TEST(ControlFlow, TwoWaysIntoACycleAreNoNaturalLoop) {
  const ControlFlow flow = AnalyzeControlFlow(Code(R"(
      @P0 BRA `(.L_x_1)
    .L_x_0:
      FADD R1, R1, R2
    .L_x_1:
      FADD R1, R1, R3
      @P1 BRA `(.L_x_0)
      EXIT)"));
  EXPECT_TRUE(flow.loops.empty());
}

TEST(ControlFlow, TwoBackEdgesToOneHeaderAreOneLoop) {
  const ControlFlow flow = AnalyzeControlFlow(Code(R"(
    .L_x_0:
      FADD R1, R1, R2
      @P0 BRA `(.L_x_0)
      FADD R1, R1, R3
      @P1 BRA `(.L_x_0)
      EXIT)"));
  ASSERT_EQ(flow.loops.size(), 1U);
  EXPECT_EQ(flow.loops[0].instructions, 4U);
}

TEST(ControlFlow, GuardsConditionsAndPadding) {
  // A guarded EXIT goes on; "BRA.U UP0" has a condition; what stands behind a plain BRA is dead.
  const ControlFlow flow = AnalyzeControlFlow(Code(R"(
      @P0 EXIT
      BRA.U UP0, `(.L_x_1)
      FADD R1, R1, R2
    .L_x_1:
      BRA `(.L_x_2)
      FADD R9, R9, R9
    .L_x_2:
      EXIT
    .L_x_3:
      BRA `(.L_x_3)
      NOP)"));
  EXPECT_EQ(flow.size, 6U);
  EXPECT_TRUE(flow.blocks[flow.block_of[2]].reachable);
  EXPECT_FALSE(flow.blocks[flow.block_of[4]].reachable);
  EXPECT_TRUE(flow.blocks[flow.block_of[5]].reachable);
  EXPECT_TRUE(flow.loops.empty());
}

TEST(ControlFlow, IndirectBranchesWithAndWithoutTheirTargets) {
  const Function listed = Code(R"(
      BRX R2 -0x20 (*"BRANCH_TARGETS .L_x_1,.L_x_2"*)
      FADD R9, R9, R9
    .L_x_1:
      FADD R1, R1, R2
      EXIT
    .L_x_2:
      EXIT)");
  EXPECT_EQ(listed.instructions[0].targets, (std::vector<std::uint64_t>{0x20, 0x40}));
  const ControlFlow flow = AnalyzeControlFlow(listed);
  EXPECT_FALSE(flow.blocks[flow.block_of[1]].reachable);
  EXPECT_TRUE(flow.blocks[flow.block_of[4]].reachable);
  const ControlFlow blind = AnalyzeControlFlow(Code("BRX R2 -0x20\nFADD R1, R1, R2\nEXIT"));
  EXPECT_TRUE(blind.blocks[blind.block_of[1]].reachable);
}

TEST(ControlFlow, DeepNestsAndLongChainsAreFast) {
  std::string deep;
  constexpr int kDepth = 3000;
  for (int i = 0; i < kDepth; ++i) {
    deep += fmt::format(".L_x_{}:\nFADD R1, R1, R2\n", i);
  }
  for (int i = kDepth; i-- > 0;) {
    deep += fmt::format("@P0 BRA `(.L_x_{})\n", i);
  }
  const ControlFlow flow = AnalyzeControlFlow(Code(deep + "EXIT"));
  ASSERT_EQ(flow.loops.size(), static_cast<std::size_t>(kDepth));
  EXPECT_EQ(flow.loops.front().depth, static_cast<std::uint32_t>(kDepth));
  EXPECT_EQ(flow.loops.back().instructions, 2U * kDepth);
}

TEST(ControlFlow, EmptyFunction) {
  EXPECT_EQ(AnalyzeControlFlow(Function()).size, 0U);
  EXPECT_EQ(AnalyzeControlFlow(Code("NOP\nNOP")).size, 0U);
}

}  // namespace
}  // namespace kernelpro::sass
