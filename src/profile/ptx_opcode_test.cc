// SPDX-License-Identifier: Apache-2.0
#include "profile/ptx_opcode.h"

#include <gtest/gtest.h>

namespace kernelpro {
namespace {

TEST(PtxOpcode, MemoryAccessesKnowSpaceAndDirection) {
  const PtxOpcode load = ClassifyPtx("ld.global.nc.v4.f32");
  EXPECT_EQ(load.op, OpClass::kMemory);
  EXPECT_EQ(load.space, MemorySpace::kGlobal);
  EXPECT_EQ(load.access, MemoryAccess::kLoad);
  EXPECT_FALSE(load.is_f64);
  EXPECT_EQ(ClassifyPtx("st.shared::cta.f64").space, MemorySpace::kShared);
  EXPECT_TRUE(ClassifyPtx("st.shared.f64").is_f64);
  EXPECT_EQ(ClassifyPtx("red.global.add.f32").access, MemoryAccess::kReduction);
  EXPECT_EQ(ClassifyPtx("atom.shared.add.u32").access, MemoryAccess::kAtomic);
  EXPECT_EQ(ClassifyPtx("ld.param.u64").space, MemorySpace::kConstant);
  EXPECT_EQ(ClassifyPtx("ld.f32").space, MemorySpace::kGeneric);
  EXPECT_EQ(ClassifyPtx("cp.async.ca.shared.global").access, MemoryAccess::kAsyncCopy);
  EXPECT_EQ(ClassifyPtx("cp.async.wait_group").access, MemoryAccess::kNone);
}

TEST(PtxOpcode, ArithmeticIsSplitByTypeAndKind) {
  EXPECT_EQ(ClassifyPtx("fma.rn.ftz.f32").op, OpClass::kFfma);
  EXPECT_EQ(ClassifyPtx("sub.f32").op, OpClass::kFadd);
  EXPECT_EQ(ClassifyPtx("fma.rn.f64").op, OpClass::kDfma);
  EXPECT_EQ(ClassifyPtx("div.rn.f64").op, OpClass::kDoubleOther);
  EXPECT_EQ(ClassifyPtx("setp.lt.f64").op, OpClass::kDoubleOther);
  EXPECT_EQ(ClassifyPtx("ex2.approx.ftz.f32").op, OpClass::kSpecial);
  EXPECT_EQ(ClassifyPtx("mad.lo.s32").op, OpClass::kInteger);
  EXPECT_EQ(ClassifyPtx("rem.u32").op, OpClass::kIntegerDivision);
  EXPECT_EQ(ClassifyPtx("shl.b32").op, OpClass::kBit);
  EXPECT_EQ(ClassifyPtx("fma.rn.f16x2").op, OpClass::kHalf);
  EXPECT_EQ(ClassifyPtx("mov.f64").op, OpClass::kMove);
  EXPECT_FALSE(ClassifyPtx("mov.f64").is_f64);
}

TEST(PtxOpcode, ConversionsBetweenFloatAndDoubleAreTold) {
  EXPECT_TRUE(ClassifyPtx("cvt.f64.f32").converts_f64);
  EXPECT_TRUE(ClassifyPtx("cvt.rn.f32.f64").converts_f64);
  EXPECT_FALSE(ClassifyPtx("cvt.rn.f64.s32").converts_f64);
  EXPECT_FALSE(ClassifyPtx("cvt.rn.f32.f16").converts_f64);
  EXPECT_FALSE(ClassifyPtx("cvt.f64.f64").converts_f64);
}

TEST(PtxOpcode, BarriersAndOddTextAreSafe) {
  EXPECT_EQ(ClassifyPtx("bar.sync").op, OpClass::kBarrier);
  EXPECT_EQ(ClassifyPtx("barrier.sync.aligned").op, OpClass::kBarrier);
  EXPECT_EQ(ClassifyPtx("bar.warp.sync").op, OpClass::kOther);
  EXPECT_EQ(ClassifyPtx("").op, OpClass::kOther);
  EXPECT_EQ(ClassifyPtx("...").op, OpClass::kOther);
  EXPECT_EQ(ClassifyPtx("no_such_op").op, OpClass::kOther);
}

}  // namespace
}  // namespace kernelpro
