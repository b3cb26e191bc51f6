// SPDX-License-Identifier: Apache-2.0
#include "sass/statistics.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>

#include "sass/test_listing.h"

namespace kernelpro::sass {
namespace {

double Value(const Statistics& statistics, const std::string& name) {
  const auto found = statistics.metrics.find(name);
  EXPECT_NE(found, statistics.metrics.end()) << name;
  return found == statistics.metrics.end() ? -1 : found->second.value;
}

/// A loop around `body`, which ends by itself.
Statistics Loop(std::string_view body) {
  return Analyze(Code(fmt::format(R"(
    MOV R100, RZ
  .L_x_0:
    {}
    IADD3 R100, R100, 0x1, RZ
    ISETP.GE.AND P6, PT, R100, c[0x0][0x170], PT
    @!P6 BRA `(.L_x_0)
    EXIT)",
                                  body)));
}

TEST(Statistics, TiledProduct) {
  const Statistics s = Analyze(Code(kTiledProduct));
  EXPECT_EQ(Value(s, "sass.instructions"), 22);  // The branch to itself and the NOPs are padding.
  EXPECT_EQ(Value(s, "sass.code_bytes"), 22 * 16);
  EXPECT_EQ(s.metrics.at("sass.code_bytes").unit, "byte");
  EXPECT_EQ(Value(s, "sass.arch"), 90);
  EXPECT_EQ(Value(s, "sass.loops"), 1);
  EXPECT_EQ(Value(s, "sass.polls"), 0);
  EXPECT_EQ(Value(s, "sass.stg"), 1);
  EXPECT_EQ(Value(s, "sass.moves"), 3);
  EXPECT_EQ(Value(s, "sass.unknown.pct"), 0);
  EXPECT_EQ(Value(s, "sass.loop.instructions"), 17);
  EXPECT_EQ(Value(s, "sass.loop.ffma"), 4);
  EXPECT_EQ(Value(s, "sass.loop.ldg"), 2);
  EXPECT_EQ(Value(s, "sass.loop.sts"), 2);
  EXPECT_EQ(Value(s, "sass.loop.lds"), 2);
  EXPECT_EQ(Value(s, "sass.loop.bar"), 2);
  EXPECT_EQ(Value(s, "sass.loop.integer"), 4);
  EXPECT_EQ(Value(s, "sass.loop.wide_integer"), 1);
  EXPECT_EQ(Value(s, "sass.loop.ldg_bytes"), 8);
  EXPECT_EQ(Value(s, "sass.loop.lds_bytes"), 20);
  EXPECT_EQ(Value(s, "sass.loop.ldg_batch"), 2);
  EXPECT_EQ(Value(s, "sass.loop.ldg_use_distance"), 2);
  EXPECT_EQ(Value(s, "sass.loop.staged_copy"), 1);
  EXPECT_EQ(Value(s, "sass.loop.depth"), 1);
  EXPECT_FALSE(s.metrics.contains("sass.loop.wait_depth"));
  EXPECT_EQ(s.metrics.at("sass.loop.ffma").provenance, Provenance::kCounted);
  EXPECT_EQ(s.metrics.at("sass.loop.recurrence").provenance, Provenance::kModelled);
  // Four FFMA of 4 cycles each add to one sum; loads and shared memory stand outside that chain.
  EXPECT_EQ(Value(s, "sass.loop.recurrence"), 16);
  ASSERT_TRUE(s.hot_loop.has_value());
  EXPECT_EQ(s.hot_loop->first, 0x30U);
  EXPECT_EQ(s.hot_loop->last, 0x130U);
  EXPECT_EQ(s.hot_loop->file, "gemm.cu");
  EXPECT_EQ(s.hot_loop->line, 12U);
  EXPECT_EQ(s.opcodes.at("LDS.128"), 1U);
}

TEST(Statistics, AsynchronousCopyIsNoStagedCopy) {
  const Statistics s = Analyze(Code(kAsyncProduct));
  EXPECT_EQ(Value(s, "sass.loop.staged_copy"), 0);
  EXPECT_EQ(Value(s, "sass.loop.wait_depth"), 2);
  EXPECT_EQ(Value(s, "sass.loop.ldgsts"), 2);
  EXPECT_EQ(Value(s, "sass.loop.ldsm"), 2);
  EXPECT_EQ(Value(s, "sass.loop.lds_bytes"), 24);
  EXPECT_EQ(Value(s, "sass.loop.mma_warp"), 1);
  EXPECT_EQ(Value(s, "sass.loop.mma"), 1);
  EXPECT_EQ(Value(s, "sass.hmma_k8"), 0);
  EXPECT_FALSE(s.metrics.contains("sass.loop.ldg_batch"));
}

TEST(Statistics, CopyInTheLoopAroundTheOneThatComputes) {
  constexpr std::string_view kNested = R"(
    .L_x_0:
      LDG.E R4, desc[UR4][R2.64]
      {}
      BAR.SYNC.DEFER_BLOCKING 0x0
    .L_x_1:
      LDS R10, [R11]
      FFMA R20, R10, R10, R20
      IADD3 R11, R11, 0x4, RZ
      ISETP.NE.AND P1, PT, R11, R12, PT
      @P1 BRA `(.L_x_1)
      BAR.SYNC.DEFER_BLOCKING 0x0
      @P0 BRA `(.L_x_0)
      EXIT)";
  const Statistics staged = Analyze(Code(fmt::format(kNested, "STS [R8], R4")));
  EXPECT_EQ(Value(staged, "sass.loop.staged_copy"), 1);
  EXPECT_EQ(Value(staged, "sass.loop.depth"), 2);
  EXPECT_EQ(Value(staged, "sass.loop.instructions"), 5);
  EXPECT_EQ(Value(staged, "sass.loops"), 2);
  // What is stored here was computed, not loaded.
  const Statistics other = Analyze(Code(fmt::format(kNested, "STS [R8], R20")));
  EXPECT_EQ(Value(other, "sass.loop.staged_copy"), 0);
}

TEST(Statistics, WarpgroupProductThatWaitsForEveryGroup) {
  constexpr std::string_view kLoop = R"(WARPGROUP.ARRIVE
    HGMMA.64x128x16.F32.BF16 R24, gdesc[UR8], R24
    HGMMA.64x128x16.F32.BF16 R24, gdesc[UR12], R24, gsb0
    WARPGROUP.DEPBAR.LE gsb0, {})";
  const Statistics all = Loop(fmt::format(kLoop, "0x0"));
  EXPECT_EQ(Value(all, "sass.loop.mma_warpgroup"), 2);
  EXPECT_EQ(Value(all, "sass.loop.warpgroup_wait0"), 1);
  const Statistics one_left = Loop(fmt::format(kLoop, "0x1"));
  EXPECT_EQ(Value(one_left, "sass.loop.warpgroup_wait0"), 0);
  EXPECT_EQ(Value(one_left, "sass.mma"), 2);
}

TEST(Statistics, MultiplyAndAddThatCouldBeOne) {
  EXPECT_EQ(Value(Loop("FMUL R4, R5, R6\nFADD R8, R8, R4"), "sass.loop.fusible"), 1);
  EXPECT_EQ(Value(Loop("FMUL R4, R5, R6\nFADD R8, -R4, R8"), "sass.fusible"), 1);
  // The product is needed twice; it is needed after the loop; rounding or guard differ; |R4|.
  EXPECT_EQ(Value(Loop("FMUL R4, R5, R6\nFADD R8, R8, R4\nFADD R9, R9, R4"), "sass.fusible"), 0);
  EXPECT_EQ(Value(Loop("FADD R8, R8, R4\nFMUL R4, R5, R6"), "sass.fusible"), 0);
  EXPECT_EQ(Value(Loop("FMUL R4, R5, R6\nFADD.RZ R8, R8, R4"), "sass.fusible"), 0);
  EXPECT_EQ(Value(Loop("FMUL R4, R5, R6\n@P1 FADD R8, R8, R4"), "sass.fusible"), 0);
  EXPECT_EQ(Value(Loop("FMUL R4, R5, R6\nFADD R8, R8, |R4|"), "sass.fusible"), 0);
  EXPECT_EQ(Value(Loop("FMUL R4, R5, R6\nFADD R8, R4, R4"), "sass.fusible"), 0);
  EXPECT_EQ(Value(Loop("FFMA R8, R5, R6, R8"), "sass.fusible"), 0);
  // The next block needs the product as well, or does not.
  constexpr std::string_view kLater = "FMUL R4, R5, R6\nFADD R8, R8, R4\n@P0 EXIT\n{}\nEXIT";
  EXPECT_EQ(Value(Analyze(Code(fmt::format(kLater, "STG.E [R2.64], R4"))), "sass.fusible"), 0);
  EXPECT_EQ(Value(Analyze(Code(fmt::format(kLater, "STG.E [R2.64], R8"))), "sass.fusible"), 1);
}

TEST(Statistics, AWaitIsNoLoop) {
  const Statistics flag = Analyze(Code(R"(
    .L_x_0:
      LDG.E.STRONG.GPU R4, desc[UR4][R2.64]
      ISETP.NE.AND P0, PT, R4, R5, PT
      @P0 BRA `(.L_x_0)
      EXIT)"));
  EXPECT_EQ(Value(flag, "sass.polls"), 1);
  EXPECT_EQ(Value(flag, "sass.loops"), 0);
  EXPECT_FALSE(flag.hot_loop.has_value());
  EXPECT_FALSE(flag.metrics.contains("sass.loop.instructions"));
  const Statistics barrier = Analyze(Code(R"(
    .L_x_0:
      SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R5+URZ+0x140], R4
      @!P0 BRA `(.L_x_0)
      EXIT)"));
  EXPECT_EQ(Value(barrier, "sass.polls"), 1);
  EXPECT_EQ(Value(barrier, "sass.mbarrier_wait"), 1);
  // As short, but it walks a list.
  const Statistics chase = Analyze(Code(kPointerChase));
  EXPECT_EQ(Value(chase, "sass.polls"), 0);
  EXPECT_EQ(Value(chase, "sass.loops"), 1);
  EXPECT_GE(Value(chase, "sass.loop.recurrence"), 287);
  EXPECT_EQ(Value(chase, "sass.loop.ldg_batch"), 1);
}

TEST(Statistics, WaitsOfRealKernels) {
  // The compiler computes the address anew in every round; the address is still the same.
  const Statistics barrier = Analyze(Code(R"(
    .L_x_0:
      IMAD.U32 R7, RZ, RZ, UR8
      SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R7+UR9], R6
      @!P0 BRA `(.L_x_0)
    .L_x_1:
      WARPSYNC.ALL
      USETMAXREG.TRY_ALLOC.CTAPOOL UP0, 0xe8
      PLOP3.LUT P0, PT, PT, PT, UP0, 0x80, 0x0
      @!P0 BRA `(.L_x_1)
      EXIT)"));
  EXPECT_EQ(Value(barrier, "sass.polls"), 2);
  EXPECT_EQ(Value(barrier, "sass.loops"), 0);
  EXPECT_EQ(Value(barrier, "sass.setmaxnreg"), 1);
  EXPECT_EQ(Value(barrier, "sass.moves"), 1);
}

TEST(Statistics, LoopsThatNobodyWrote) {
  const Statistics tma = Analyze(Code(R"(
    .L_x_0:
      @P0 ELECT P1, URZ, PT
      UMOV UR7, UR11
      UTMALDG.2D [UR4], [UR22]
      @P1 PLOP3.LUT P0, PT, P1, PT, PT, 0x8, 0x0
      @P0 BRA.U.ANY `(.L_x_0)
      EXIT)"));
  EXPECT_EQ(Value(tma, "sass.loops"), 0);
  EXPECT_EQ(Value(tma, "sass.polls"), 0);
  EXPECT_EQ(Value(tma, "sass.tma"), 1);
  constexpr std::string_view kWords = R"(
    .L_x_0:
      LDG.E.CONSTANT R2, desc[UR6][R4.64]
      IADD3 R4, R4, 0x4, RZ
      IMAD.WIDE.U32 R2, R2, R15, RZ
      IADD3 R13, P2, R2, R6, RZ
      {}
      ISETP.NE.AND P1, PT, R7, 0x6, PT
      @P1 BRA `(.L_x_0)
      EXIT)";
  EXPECT_EQ(Value(Analyze(Code(fmt::format(kWords, "STL [R0], R13"))), "sass.loops"), 0);
  EXPECT_EQ(Value(Analyze(Code(fmt::format(kWords, "STG.E [R8.64], R13"))), "sass.loops"), 1);
}

TEST(Statistics, DummyLoadsBehindAsynchronousCopies) {
  const Statistics s = Loop("DEPBAR.LE SB0, 0x1\nLDS RZ, [RZ]\nLDS RZ, [RZ]\nLDS RZ, [RZ]");
  EXPECT_EQ(Value(s, "sass.loop.lds_bytes"), 0);
  EXPECT_EQ(Value(s, "sass.loop.duplicate_loads"), 0);
}

TEST(Statistics, AWaitInsideDoesNotHideTheLoopAround) {
  const Statistics s = Analyze(Code(R"(
    .L_x_0:
      FFMA R4, R4, R5, R6
    .L_x_1:
      SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R5+URZ], R8
      @!P0 BRA `(.L_x_1)
      FFMA R4, R4, R5, R6
      @P1 BRA `(.L_x_0)
      EXIT)"));
  EXPECT_EQ(Value(s, "sass.loops"), 1);
  EXPECT_EQ(Value(s, "sass.loop.instructions"), 5);
  EXPECT_EQ(Value(s, "sass.loop.mbarrier_wait"), 1);
}

TEST(Statistics, LoadsInOneBatchAndOneByOne) {
  std::string batch, single;
  for (int i = 0; i < 8; ++i) {
    batch += fmt::format("LDG.E.128 R{}, desc[UR4][R2.64+0x{:x}]\n", 8 + 4 * i, 16 * i);
    single += fmt::format("LDG.E.128 R8, desc[UR4][R2.64+0x{:x}]\nFADD R60, R60, R8\n", 16 * i);
  }
  for (int i = 0; i < 8; ++i) {
    batch += fmt::format("FADD R60, R60, R{}\n", 8 + 4 * i);
  }
  const Statistics together = Loop(batch);
  EXPECT_EQ(Value(together, "sass.loop.ldg_batch"), 8);
  EXPECT_EQ(Value(together, "sass.loop.ldg_bytes"), 128);
  EXPECT_EQ(Value(together, "sass.loop.ldg_use_distance"), 8);
  EXPECT_EQ(Value(together, "sass.loop.narrow_runs"), 0);  // They are as wide as can be.
  EXPECT_EQ(Value(together, "sass.loop.invariant_loads"), 8);
  const Statistics apart = Loop(single);
  EXPECT_EQ(Value(apart, "sass.loop.ldg_batch"), 1);
  EXPECT_EQ(Value(apart, "sass.loop.ldg_use_distance"), 1);
}

TEST(Statistics, LoadThatIsUsedInTheNextIteration) {
  const Statistics s = Loop("FADD R8, R8, R4\nFADD R9, R9, R9\nLDG.E R4, desc[UR4][R2.64]");
  EXPECT_EQ(Value(s, "sass.loop.ldg_use_distance"), 4);  // Over the three that close the loop.
}

TEST(Statistics, NarrowLoadsBesideEachOther) {
  constexpr std::string_view kFour =
      "LDG.E R4, desc[UR4][R2.64{}]\nLDG.E R5, desc[UR4][R2.64{}]\n"
      "LDG.E R6, desc[UR4][R2.64{}]\nFADD R2, R2, R4";
  EXPECT_EQ(Value(Loop(fmt::format(kFour, "", "+0x4", "+0x8")), "sass.loop.narrow_runs"), 3);
  EXPECT_EQ(Value(Loop(fmt::format(kFour, "+-0x4", "", "+0x40")), "sass.loop.narrow_runs"), 2);
  EXPECT_EQ(Value(Loop(fmt::format(kFour, "", "+0x80", "+0x100")), "sass.loop.narrow_runs"), 0);
  // The base has moved in between.
  EXPECT_EQ(Value(Loop("LDG.E R4, desc[UR4][R2.64]\nIADD3 R2, R2, R8, RZ\n"
                       "LDG.E R5, desc[UR4][R2.64+0x4]"),
                  "sass.loop.narrow_runs"),
            0);
}

TEST(Statistics, LoadedTwice) {
  constexpr std::string_view kTwice =
      "LDG.E R4, desc[UR4][R2.64+0x8]\n{}\nLDG.E R5, desc[UR4][R2.64+0x8]\nIADD3 R2, R2, 0x4, RZ";
  EXPECT_EQ(
      Value(Loop(fmt::format(kTwice, "STG.E desc[UR4][R8.64], R4")), "sass.loop.duplicate_loads"),
      1);
  EXPECT_EQ(Value(Loop(fmt::format(kTwice, "BAR.SYNC 0x0")), "sass.loop.duplicate_loads"), 0);
  EXPECT_EQ(Value(Loop(fmt::format(kTwice, "IADD3 R2, R2, 0x4, RZ")), "sass.loop.duplicate_loads"),
            0);
  EXPECT_EQ(Value(Loop("@P1 LDG.E R4, desc[UR4][R2.64]\n@!P1 LDG.E R4, desc[UR4][R2.64]"),
                  "sass.loop.duplicate_loads"),
            0);
  EXPECT_EQ(Value(Loop("LDG.E.STRONG.SYS R4, desc[UR4][R2.64]\nLDG.E.STRONG.SYS R5, "
                       "desc[UR4][R2.64]"),
                  "sass.loop.duplicate_loads"),
            0);
}

TEST(Statistics, LoadsThatNeverChange) {
  EXPECT_EQ(Value(Loop("LDG.E R4, desc[UR4][R2.64]"), "sass.loop.invariant_loads"), 1);
  EXPECT_EQ(
      Value(Loop("LDG.E R4, desc[UR4][R2.64]\nIADD3 R2, R2, 0x4, RZ"), "sass.loop.invariant_loads"),
      0);
  EXPECT_EQ(Value(Loop("LDS R4, [R2]"), "sass.loop.invariant_loads"), 1);
  // Another tile stands there after the barrier.
  EXPECT_EQ(Value(Loop("BAR.SYNC 0x0\nLDS R4, [R2]"), "sass.loop.invariant_loads"), 0);
}

TEST(Statistics, IntegerDivision) {
  const Statistics s = Loop(R"(IABS R4, R5
      I2F.RP R6, R4
      MUFU.RCP R6, R6
      F2I.FTZ.U32.TRUNC.NTZ R7, R6
      IMAD.HI.U32 R8, R7, R4, R8)");
  EXPECT_EQ(Value(s, "sass.loop.divisions"), 1);
  EXPECT_EQ(Value(s, "sass.loop.conversion"), 2);
  EXPECT_EQ(Value(s, "sass.loop.mufu"), 1);
  EXPECT_EQ(Value(Loop("I2F.S32 R6, R4\nMUFU.RCP R6, R6"), "sass.loop.divisions"), 0);
  EXPECT_EQ(Value(Loop("CALL.REL.NOINC `($k$__cuda_sm20_div_s64)"), "sass.loop.divisions"), 1);
}

TEST(Statistics, RegisterBanks) {
  EXPECT_EQ(Value(Loop("FFMA R8, R2, R4, R6"), "sass.loop.bank_conflicts"), 1);
  EXPECT_EQ(Value(Loop("FFMA R8, R2, R5, R6"), "sass.loop.bank_conflicts"), 0);
  EXPECT_EQ(Value(Loop("FFMA R8, R2.reuse, R4, R6"), "sass.loop.bank_conflicts"), 0);
  EXPECT_EQ(Value(Loop("FFMA R8, R2, R2, R6"), "sass.loop.bank_conflicts"), 0);
  EXPECT_EQ(Value(Loop("FFMA R8, R2, c[0x0][0x160], R6"), "sass.loop.bank_conflicts"), 0);
}

TEST(Statistics, MovesInDisguise) {
  const Statistics s = Analyze(Code(R"(
      IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28]
      HFMA2.MMA R2, -RZ, RZ, 1.875, 0
      HADD2.F32 R3, -RZ, R4.H0_H0
      HFMA2 R5, R6, R7, R5
      IMAD.SHL.U32 R8, R9, 0x4, RZ
      MUFU.RCP64H R11, R13
      FROB.NEW R1, R2
      ATOMG.E.CAS.STRONG.GPU PT, R2, desc[UR4][R4.64], R6, R7
      EXIT)"));
  EXPECT_EQ(Value(s, "sass.moves"), 2);
  EXPECT_EQ(Value(s, "sass.conversion"), 1);
  EXPECT_EQ(Value(s, "sass.fp16"), 1);
  EXPECT_EQ(Value(s, "sass.integer"), 1);
  EXPECT_EQ(Value(s, "sass.fp64"), 1);
  EXPECT_EQ(Value(s, "sass.mufu"), 1);
  EXPECT_EQ(Value(s, "sass.atom"), 1);
  EXPECT_EQ(Value(s, "sass.atom_cas"), 1);
  EXPECT_NEAR(Value(s, "sass.unknown.pct"), 100.0 / 9, 1e-9);
}

}  // namespace
}  // namespace kernelpro::sass
