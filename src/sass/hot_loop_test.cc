// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string_view>

#include "sass/statistics.h"
#include "sass/test_listing.h"

namespace kernelpro::sass {
namespace {

/// Two loops: a long one without memory and a short one with matrix products.
constexpr std::string_view kTwoLoops = R"(
  .L_x_0:
    FADD R1, R1, R2
    FADD R1, R1, R2
    FADD R1, R1, R2
    FADD R1, R1, R2
    @P0 BRA `(.L_x_0)
  .L_x_1:
    {}
    @P1 BRA `(.L_x_1)
    EXIT)";

TEST(HotLoop, TheHotLoop) {
  const Function product = Code(fmt::format(kTwoLoops, "HMMA.16816.F32 R4, R8, R12, R4"));
  EXPECT_EQ(Analyze(product).hot_loop->first, 0x50U);
  const Function addresses = Code(fmt::format(kTwoLoops, "IADD3 R4, R4, 0x1, RZ"));
  EXPECT_EQ(Analyze(addresses).hot_loop->first, 0U);
  // Counts decide before any guess.
  const Executed executed = {{0x00, 1e6}, {0x40, 1e6}, {0x50, 10}};
  EXPECT_EQ(Analyze(product, &executed).hot_loop->first, 0U);
  // Most of the time passes outside: no loop is hot.
  const Executed cold = {{0x00, 1}, {0x50, 2}, {0x70, 1e6}};
  EXPECT_FALSE(Analyze(product, &cold).hot_loop.has_value());
  EXPECT_FALSE(Analyze(Code("FADD R1, R1, R2\nEXIT")).hot_loop.has_value());
  EXPECT_TRUE(Analyze(Function()).metrics.contains("sass.instructions"));
}

TEST(HotLoop, ADeepLoopBeforeALongOne) {
  constexpr std::string_view kLoops = R"(
    .L_x_0:
      FADD R1, R1, R2
      FADD R1, R1, R2
      FADD R1, R1, R2
      @P0 BRA `(.L_x_0)
    .L_x_1:
      MOV R4, RZ
    .L_x_2:
      FADD R4, R4, R2
      @P1 BRA `(.L_x_2)
      {} BRA `(.L_x_1)
      EXIT)";
  EXPECT_EQ(Analyze(Code(fmt::format(kLoops, "@P2"))).hot_loop->first, 0x50U);
  EXPECT_EQ(Analyze(Code(fmt::format(kLoops, "@!PT"))).hot_loop->first, 0U);  // Never goes back.
}

TEST(HotLoop, ARemainderLoopThatNeverRan) {
  const Function f = Code(R"(
    .L_x_0:
      LDG.E.128 R4, desc[UR4][R2.64]
      FADD R8, R4, R5
      @P0 BRA `(.L_x_2)
    .L_x_1:
      LDS R10, [R9]
      FADD R8, R8, R10
      @P1 BRA `(.L_x_1)
    .L_x_2:
      @P2 BRA `(.L_x_0)
      EXIT)");
  EXPECT_EQ(Analyze(f).metrics.at("sass.loop.lds").value, 1);
  const Executed executed = {{0x00, 100}, {0x10, 100}, {0x20, 100}, {0x30, 0},
                             {0x40, 0},   {0x50, 0},   {0x60, 100}, {0x70, 1}};
  const Statistics measured = Analyze(f, &executed);
  EXPECT_EQ(measured.metrics.at("sass.loop.lds").value, 0);
  EXPECT_EQ(measured.metrics.at("sass.loop.ldg").value, 1);
  EXPECT_EQ(measured.metrics.at("sass.loop.instructions").value, 4);
  EXPECT_EQ(measured.hot_loop->last, 0x60U);
}

TEST(HotLoop, TheLineThatItsUserWrote) {
  const Statistics s = Analyze(Code(R"(
    .L_x_0:
      #/usr/local/cuda/targets/x86_64-linux/include/sm_32_intrinsics.hpp:183
      LDG.E R4, desc[UR4][R2.64]
      #mine.cu:7
      FADD R5, R5, R4
      @P0 BRA `(.L_x_0)
      EXIT)"));
  EXPECT_EQ(s.hot_loop->file, "mine.cu");
  EXPECT_EQ(s.hot_loop->line, 7U);
}

}  // namespace
}  // namespace kernelpro::sass
