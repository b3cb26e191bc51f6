// SPDX-License-Identifier: Apache-2.0
#include "emulator/model/memory_access.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "emulator/model/test_kernel.h"
#include "emulator/ptx/module.h"

namespace kernelpro::model {
namespace {

struct Case {
  std::string_view text;
  MemoryKind kind;
  ptx::Space space;
  std::uint32_t bytes;
};

class MemoryAccessTest : public ::testing::TestWithParam<Case> {};

TEST_P(MemoryAccessTest, KindSpaceAndWidth) {
  const ptx::Function kernel = TestKernel(std::string(GetParam().text) + " ret;");
  ASSERT_FALSE(kernel.body.empty());
  const MemoryAccess access = MemoryAccessOf(kernel.body.front());
  EXPECT_EQ(access.kind, GetParam().kind);
  if (access.kind != MemoryKind::kNone) {
    EXPECT_EQ(access.space, GetParam().space);
    EXPECT_EQ(access.bytes_per_lane, GetParam().bytes);
  }
}

constexpr auto kLoad = MemoryKind::kLoad;
constexpr auto kStore = MemoryKind::kStore;
constexpr auto kAtomic = MemoryKind::kAtomic;
constexpr auto kCopy = MemoryKind::kAsyncCopy;
constexpr auto kNothing = MemoryKind::kNone;

INSTANTIATE_TEST_SUITE_P(
    All, MemoryAccessTest,
    ::testing::Values(
        Case{"ld.global.nc.v4.f32 {%f1,%f2,%f3,%f4},[%l1];", kLoad, ptx::Space::kGlobal, 16},
        Case{"ld.volatile.global.u8 %h1,[%l1];", kLoad, ptx::Space::kGlobal, 1},
        Case{"ld.u32 %r1,[%l1];", kLoad, ptx::Space::kGeneric, 4},
        Case{"ld.local.f64 %d1,[%l1];", kLoad, ptx::Space::kLocal, 8},
        Case{"ld.param.u64 %l1,[a];", kLoad, ptx::Space::kNone, 8},
        Case{"st.shared.v2.f32 [%r1],{%f1,%f2};", kStore, ptx::Space::kShared, 8},
        Case{"atom.global.add.u32 %r1,[%l1],1;", kAtomic, ptx::Space::kGlobal, 4},
        Case{"red.shared.add.u32 [%r1],1;", kAtomic, ptx::Space::kShared, 4},
        Case{"cp.async.cg.shared.global [%r1],[%l1],16;", kCopy, ptx::Space::kGlobal, 0},
        Case{"cp.async.commit_group;", kNothing, ptx::Space::kNone, 0},
        Case{"cp.async.wait_group 0;", kNothing, ptx::Space::kNone, 0},
        Case{"add.f32 %f1,%f1,%f2;", kNothing, ptx::Space::kNone, 0}));

TEST(CtaBarrier, NotTheWarpsNorAnArrival) {
  const ptx::Function kernel = TestKernel(
      "bar.sync 0; barrier.sync 1; bar.warp.sync -1; bar.arrive 1,64; add.f32 %f1,%f1,%f2; ret;");
  ASSERT_EQ(kernel.body.size(), 6U);
  EXPECT_TRUE(IsCtaBarrier(kernel.body[0]));
  EXPECT_TRUE(IsCtaBarrier(kernel.body[1]));
  EXPECT_FALSE(IsCtaBarrier(kernel.body[2]));
  EXPECT_FALSE(IsCtaBarrier(kernel.body[3]));
  EXPECT_FALSE(IsCtaBarrier(kernel.body[4]));
}

}  // namespace
}  // namespace kernelpro::model
