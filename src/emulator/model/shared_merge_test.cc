// SPDX-License-Identifier: Apache-2.0
#include "emulator/model/shared_merge.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "emulator/model/critical_path.h"
#include "emulator/model/test_kernel.h"
#include "emulator/ptx/module.h"
#include "emulator/simt/report.h"

namespace kernelpro::model {
namespace {

constexpr std::string_view kFour =
    "ld.shared.f32 %f1,[%r1]; ld.shared.f32 %f2,[%r1+4]; ld.shared.f32 %f3,[%r1+8];"
    "ld.shared.f32 %f4,[%r1+12]; ret;";

/// Each instruction ran 10 times with `wavefronts` in all and saw these address bits.
std::vector<SharedMerge> Merge(std::string_view body, std::uint64_t wavefronts,
                               std::uint32_t first_bits) {
  const ptx::Function kernel = TestKernel(body);
  std::vector<simt::InstructionCounters> counters(kernel.body.size());
  for (std::size_t i = 0; i < counters.size(); ++i) {
    counters[i].warps = 10;
    counters[i].requests = 10;
    counters[i].wavefronts = wavefronts;
    counters[i].address_bits = first_bits | static_cast<std::uint32_t>(i * 4);
  }
  return MergeSharedLoads(kernel, CutIntoSegments(kernel), counters);
}

TEST(SharedMerge, FourConsecutiveAlignedLoadsBecomeOne) {
  // Broadcasts, one wavefront each: 40 before, two per merged request = 20 after.
  const std::vector<SharedMerge> merged = Merge(kFour, 10, 0x40);
  double issue = 0;
  double wavefronts = 0;
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(merged[i].merged);
    issue += merged[i].issue;
    wavefronts += merged[i].wavefronts;
  }
  EXPECT_DOUBLE_EQ(issue, 1);
  EXPECT_DOUBLE_EQ(wavefronts, 20);
}

TEST(SharedMerge, ConflictsStay) {
  // 32-way conflicts: 320 wavefronts each, 1280 in all; one 128-bit load moves the same bytes in a
  // quarter.
  const std::vector<SharedMerge> merged = Merge(kFour, 320, 0x40);
  EXPECT_DOUBLE_EQ(merged[0].wavefronts * 4, 320);
}

TEST(SharedMerge, NotWhenAnAddressWasUnaligned) {
  for (const SharedMerge& entry : Merge(kFour, 10, 0x48)) {
    EXPECT_FALSE(entry.merged);
    EXPECT_DOUBLE_EQ(entry.issue, 1);
  }
}

TEST(SharedMerge, NotAcrossAStoreABarrierOrANewBase) {
  for (const std::string_view between :
       {"st.shared.f32 [%r2],%f9;", "bar.sync 0;", "add.s32 %r1,%r1,16;", "st.f32 [%l2],%f9;"}) {
    const std::string body = "ld.shared.f32 %f1,[%r1]; ld.shared.f32 %f2,[%r1+4];" +
                             std::string(between) +
                             "ld.shared.f32 %f3,[%r1+8]; ld.shared.f32 %f4,[%r1+12]; ret;";
    for (const SharedMerge& entry : Merge(body, 10, 0)) {
      EXPECT_FALSE(entry.merged) << between;
    }
  }
}

TEST(SharedMerge, NotGuardedVolatileOrOfOtherBases) {
  for (const std::string_view body :
       {"@%p1 ld.shared.f32 %f1,[%r1]; ld.shared.f32 %f2,[%r1+4]; ld.shared.f32 %f3,[%r1+8];"
        "ld.shared.f32 %f4,[%r1+12]; ret;",
        "ld.volatile.shared.f32 %f1,[%r1]; ld.shared.f32 %f2,[%r1+4]; ld.shared.f32 %f3,[%r1+8];"
        "ld.shared.f32 %f4,[%r1+12]; ret;",
        "ld.shared.f32 %f1,[%r1]; ld.shared.f32 %f2,[%r2+4]; ld.shared.f32 %f3,[%r1+8];"
        "ld.shared.f32 %f4,[%r1+12]; ret;"}) {
    for (const SharedMerge& entry : Merge(body, 10, 0)) {
      EXPECT_FALSE(entry.merged) << body;
    }
  }
}

TEST(SharedMerge, VectorBroadcastTakesTwoWavefronts) {
  const std::vector<SharedMerge> merged = Merge(
      "ld.shared.v4.f32 {%f1,%f2,%f3,%f4},[%r1]; ld.shared.v2.f32 {%f5,%f6},[%r1]; ret;", 10, 0);
  EXPECT_DOUBLE_EQ(merged[0].wavefronts, 20);
  EXPECT_DOUBLE_EQ(merged[1].wavefronts, 10);
}

}  // namespace
}  // namespace kernelpro::model
