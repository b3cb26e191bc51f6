// SPDX-License-Identifier: Apache-2.0
#include "sass/slicing.h"

#include <gtest/gtest.h>

#include <optional>

#include "sass/test_listing.h"

namespace kernelpro::sass {
namespace {

TEST(Slicing, LoadThatAnOperandComesFrom) {
  const Function f = Code(kTiledProduct);
  const Slicer slicer(f);
  // STS [R8], R4 waits for the first LDG, two instructions before, not for the nearer one.
  const auto load = slicer.Find(0x50, "long_scoreboard");
  ASSERT_TRUE(load.has_value());
  EXPECT_EQ(load->address, 0x30U);
  EXPECT_EQ(load->text, "LDG.E R4, desc[UR4][R2.64]");
  EXPECT_EQ(load->file, "gemm.cu");
  EXPECT_EQ(load->line, 12U);
  EXPECT_EQ(load->distance, 2U);
  const auto shared = slicer.Find(0xa0, "smsp__pcsamp_warps_issue_stalled_short_scoreboard");
  ASSERT_TRUE(shared.has_value());
  EXPECT_EQ(shared->address, 0x90U);
  const auto fixed = slicer.Find(0xb0, "wait");
  ASSERT_TRUE(fixed.has_value());
  EXPECT_EQ(fixed->address, 0xa0U);
  EXPECT_EQ(fixed->distance, 1U);
  const auto stored = slicer.Find(0x140, "short_scoreboard");
  ASSERT_TRUE(stored.has_value()) << "through the FFMAs that computed the stored value";
  EXPECT_TRUE(stored->text.starts_with("LDS"));
  const auto barrier = slicer.Find(0x70, "barrier");
  ASSERT_TRUE(barrier.has_value());
  EXPECT_EQ(barrier->address, 0x70U);
  EXPECT_EQ(barrier->distance, 0U);
}

TEST(Slicing, NothingWhereNothingWaits) {
  const Function f = Code(kTiledProduct);
  const Slicer slicer(f);
  EXPECT_FALSE(slicer.Find(0xa0, "math_pipe_throttle").has_value());
  EXPECT_FALSE(slicer.Find(0xa0, "not_selected").has_value());
  EXPECT_FALSE(slicer.Find(0x31, "long_scoreboard").has_value());
  EXPECT_FALSE(slicer.Find(0x5000, "long_scoreboard").has_value());
  EXPECT_FALSE(slicer.Find(0x150, "short_scoreboard").has_value()) << "EXIT reads nothing";
  EXPECT_FALSE(Slicer(Code("FADD R1, R1, R2\nEXIT")).Find(0, "long_scoreboard").has_value());
}

TEST(Slicing, ThroughTheBackEdge) {
  const Function f = Code(R"(
      MOV R4, RZ
    .L_x_0:
      FADD R8, R8, R4
      FADD R9, R9, R8
      LDG.E R4, desc[UR4][R2.64]
      @P0 BRA `(.L_x_0)
      EXIT)");
  const auto load = Slicer(f).Find(0x10, "long_scoreboard");
  ASSERT_TRUE(load.has_value());
  EXPECT_EQ(load->address, 0x30U);
  EXPECT_EQ(load->distance, 2U);
  // A pointer chase waits for itself, one iteration ago.
  const Function chase = Code(kPointerChase);
  const auto itself = Slicer(chase).Find(0x10, "long_scoreboard");
  ASSERT_TRUE(itself.has_value());
  EXPECT_EQ(itself->address, 0x10U);
  EXPECT_EQ(itself->distance, 4U);
}

TEST(Slicing, DirectProducersBeforeComputedOnes) {
  const Function f = Code(R"(
      LDG.E R4, desc[UR4][R2.64]
      LDG.E R6, desc[UR4][R2.64+0x4]
      IADD3 R7, R6, 0x1, RZ
      FADD R8, R4, R7
      FADD R9, R7, R7
      EXIT)");
  const Slicer slicer(f);
  EXPECT_EQ(slicer.Find(0x30, "long_scoreboard")->address, 0U);
  EXPECT_EQ(slicer.Find(0x40, "long_scoreboard")->address, 0x10U);
}

TEST(Slicing, AGuardedWriteDoesNotHideTheOneBefore) {
  const Function f = Code(R"(
      LDG.E R4, desc[UR4][R2.64]
      @P0 MOV R4, RZ
      FADD R8, R8, R4
      MOV R4, RZ
      FADD R8, R8, R4
      EXIT)");
  const Slicer slicer(f);
  EXPECT_EQ(slicer.Find(0x20, "long_scoreboard")->address, 0U);
  // R4 was written anew; R8 still comes from the load, one value away.
  EXPECT_EQ(slicer.Find(0x40, "long_scoreboard")->distance, 4U);
}

TEST(Slicing, AsynchronousKinds) {
  const Function copy = Code(kAsyncProduct);
  const auto async = Slicer(copy).Find(0x40, "long_scoreboard");  // DEPBAR.LE SB0, 0x2
  ASSERT_TRUE(async.has_value());
  EXPECT_EQ(async->text, "LDGSTS.E.BYPASS.128 [R9], desc[UR4][R6.64]");
  const Function product = Code(R"(
      WARPGROUP.ARRIVE
      HGMMA.64x128x16.F32.BF16 R24, gdesc[UR8], R24, gsb0
      IADD3 R1, R1, 0x1, RZ
      WARPGROUP.DEPBAR.LE gsb0, 0x0
      EXIT)");
  const auto matrix = Slicer(product).Find(0x30, "gmma");
  ASSERT_TRUE(matrix.has_value());
  EXPECT_EQ(matrix->address, 0x10U);
  EXPECT_EQ(matrix->distance, 2U);
}

TEST(Slicing, FromOtherBlocks) {
  const Function f = Code(R"(
      LDS R4, [R2]
      @P0 BRA `(.L_x_0)
      FADD R9, R9, R9
      FADD R9, R9, R9
    .L_x_0:
      FADD R8, R8, R4
      EXIT)");
  // The shorter way, over the branch.
  EXPECT_EQ(Slicer(f).Find(0x40, "short_scoreboard")->distance, 2U);
}

}  // namespace
}  // namespace kernelpro::sass
