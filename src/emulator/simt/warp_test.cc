// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <numeric>
#include <vector>

#include "emulator/simt/engine_test_util.h"

namespace kernelpro::simt {
namespace {

using Shape = Gpu::Shape;

std::vector<int> Values(std::size_t count) {
  std::vector<int> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<int>(i * i * 7 % 101) - 20;
  }
  return values;
}

struct ShuffleCase {
  int width, delta;
};

class Shuffles : public testing::TestWithParam<ShuffleCase> {};

/// CUDA's own description: lanes work in groups of `width`; a source outside keeps the own value.
TEST_P(Shuffles, FollowTheProgrammingGuide) {
  const auto [width, delta] = GetParam();
  Gpu gpu("warp");
  const std::vector<int> in = Values(32);
  const auto din = gpu.Upload(in, "in");
  const auto out = gpu.Allocate<int>(128, "out");
  const LaunchReport report =
      gpu.Run("shuffles", {.grid = {1}, .block = {32}}, din, out, width, delta);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  for (int t = 0; t < 32; ++t) {
    const int base = t / width * width;
    const auto at = [&](int lane) { return in[static_cast<std::size_t>(lane)]; };
    const auto got = [&](int k) { return out[static_cast<std::size_t>(k * 32 + t)]; };
    EXPECT_EQ(got(0), at(base + delta % width)) << "idx lane " << t;
    EXPECT_EQ(got(1), at(t - delta >= base ? t - delta : t)) << "up lane " << t;
    EXPECT_EQ(got(2), at(t + delta < base + width ? t + delta : t)) << "down lane " << t;
    const int partner = t ^ delta;
    EXPECT_EQ(got(3), at(partner < base + width ? partner : t)) << "xor lane " << t;
  }
}

INSTANTIATE_TEST_SUITE_P(Widths, Shuffles,
                         testing::Values(ShuffleCase{32, 0}, ShuffleCase{32, 1},
                                         ShuffleCase{32, 16}, ShuffleCase{32, 31},
                                         ShuffleCase{16, 3}, ShuffleCase{8, 5}, ShuffleCase{4, 9},
                                         ShuffleCase{2, 1}));

TEST(Warp, ShufflePredicateTellsWhetherTheSourceIsInRange) {
  Gpu gpu("warp");
  const std::vector<int> in = Values(32);
  const auto din = gpu.Upload(in, "in");
  const auto out = gpu.Allocate<int>(32, "out");
  const LaunchReport report =
      gpu.Run("shuffle_predicate", {.grid = {1}, .block = {32}}, din, out, 5, 0x1f);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  for (std::size_t t = 0; t < 32; ++t) {
    EXPECT_EQ(out[t], t + 5 < 32 ? in[t + 5] * 2 + 1 : in[t] * 2) << t;
  }
}

TEST(Warp, VotesMatchesAndReductions) {
  Gpu gpu("warp");
  std::vector<int> in(32);
  for (std::size_t t = 0; t < 32; ++t) {
    in[t] = static_cast<int>(t % 3) - 1;
  }
  const auto din = gpu.Upload(in, "in");
  const auto out = gpu.Allocate<unsigned>(320, "out");
  const LaunchReport report = gpu.Run("votes", {.grid = {1}, .block = {32}}, din, out);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  unsigned ballot = 0;
  unsigned same[3] = {0, 0, 0};
  unsigned folded = 0;
  for (std::size_t t = 0; t < 32; ++t) {
    ballot |= in[t] != 0 ? 1U << t : 0U;
    same[t % 3] |= 1U << t;
    folded ^= static_cast<unsigned>(in[t]);
  }
  const int sum = std::accumulate(in.begin(), in.end(), 0);
  for (std::size_t t = 0; t < 32; ++t) {
    EXPECT_EQ(out[t], ballot);
    EXPECT_EQ(out[32 + t], 1U);
    EXPECT_EQ(out[64 + t], 0U);
    EXPECT_EQ(out[96 + t], same[t % 3]);
    EXPECT_EQ(out[128 + t], 0U);
    EXPECT_EQ(out[160 + t], 0U);
    EXPECT_EQ(static_cast<int>(out[192 + t]), sum);
    EXPECT_EQ(static_cast<int>(out[224 + t]), 1);
    EXPECT_EQ(static_cast<int>(out[256 + t]), -1);
    EXPECT_EQ(out[288 + t], folded);
  }
}

TEST(Warp, MatchAllWhenAllAgree) {
  Gpu gpu("warp");
  const auto din = gpu.Upload(std::vector<int>(32, 5), "in");
  const auto out = gpu.Allocate<unsigned>(320, "out");
  const LaunchReport report = gpu.Run("votes", {.grid = {1}, .block = {32}}, din, out);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  EXPECT_EQ(out[64], 1U);
  EXPECT_EQ(out[128], 0xffffffffU);
  EXPECT_EQ(out[160], 1U);
}

TEST(Warp, HalvesVoteApartInOneInstruction) {
  Gpu gpu("warp");
  std::vector<int> in(32, 1);
  in[3] = 0;
  in[20] = 0;
  const auto din = gpu.Upload(in, "in");
  const auto out = gpu.Allocate<unsigned>(64, "out");
  const LaunchReport report = gpu.Run("tile_votes", {.grid = {1}, .block = {32}}, din, out);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  EXPECT_EQ(out[0], 0x0000fff7U);
  EXPECT_EQ(out[31], 0xffef0000U);
  EXPECT_EQ(out[32 + 2], 0U);
  EXPECT_EQ(out[32 + 21], 0U);
  EXPECT_EQ(out[32 + 22], 1U);
}

TEST(Warp, ActiveMaskShowsTheDivergedLanes) {
  Gpu gpu("warp");
  const auto out = gpu.Allocate<unsigned>(32, "out");
  const LaunchReport report = gpu.Run("active_mask", {.grid = {1}, .block = {32}}, out);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  unsigned thirds = 0;
  for (unsigned t = 0; t < 32; t += 3) {
    thirds |= 1U << t;
  }
  EXPECT_EQ(out[0], thirds);
  EXPECT_EQ(out[1], ~thirds);
}

TEST(Warp, DivergedLanesMeetAtAShuffle) {
  Gpu gpu("warp");
  const std::vector<int> in = Values(32);
  const auto din = gpu.Upload(in, "in");
  const auto out = gpu.Allocate<int>(32, "out");
  const LaunchReport report = gpu.Run("meet", {.grid = {1}, .block = {32}}, din, out);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  for (std::size_t t = 0; t < 32; ++t) {
    const std::size_t p = t ^ 1U;
    int v = in[p];
    for (std::size_t k = 0; p % 2 != 0 && k < p; ++k) {
      v += in[k];
    }
    EXPECT_EQ(out[t], v) << t;
  }
}

TEST(Warp, LaneMasks) {
  Gpu gpu("warp");
  const auto out = gpu.Allocate<unsigned>(192, "out");
  (void)gpu.Run("lane_masks", {.grid = {1}, .block = {32}}, out);
  for (unsigned t = 0; t < 32; ++t) {
    unsigned le = 0;
    for (unsigned k = 0; k <= t; ++k) {
      le |= 1U << k;
    }
    const unsigned eq = 1U << t;
    EXPECT_EQ(out[t * 6], le);
    EXPECT_EQ(out[t * 6 + 1], le & ~eq);
    EXPECT_EQ(out[t * 6 + 2], ~le | eq);
    EXPECT_EQ(out[t * 6 + 3], ~le);
    EXPECT_EQ(out[t * 6 + 4], eq);
    EXPECT_EQ(out[t * 6 + 5], t);
  }
}

TEST(Warp, BarrierReductions) {
  Gpu gpu("warp");
  std::vector<int> in(100, 1);
  in[7] = in[70] = 0;
  const auto din = gpu.Upload(in, "in");
  const auto out = gpu.Allocate<int>(300, "out");
  const LaunchReport report = gpu.Run("syncthreads_count", {.grid = {1}, .block = {100}}, din, out);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  for (std::size_t t = 0; t < 100; ++t) {
    EXPECT_EQ(out[t * 3], 98);
    EXPECT_EQ(out[t * 3 + 1], 0);
    EXPECT_EQ(out[t * 3 + 2], 1);
  }
}

TEST(Warp, ProducerAndConsumerOnNamedBarriers) {
  Gpu gpu("warp");
  const std::vector<int> in = Values(96);
  const auto din = gpu.Upload(in, "in");
  const auto out = gpu.Allocate<int>(96, "out");
  const LaunchReport report =
      gpu.Run("named_barriers", {.grid = {1}, .block = {64}, .mode = Mode::kCheck}, din, out, 3);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  for (std::size_t i = 0; i < 96; ++i) {
    EXPECT_EQ(out[i], in[i] * 2 + 1) << i;
  }
}

TEST(Atomics, EveryOperationOnGlobalMemory) {
  Gpu gpu("warp");
  const auto u = gpu.Upload(std::vector<unsigned>{0, 0, 3, ~0U, 0, 0, 0}, "u");
  const auto s = gpu.Allocate<int>(2, "s");
  const auto f = gpu.Allocate<float>(1, "f");
  const auto w = gpu.Allocate<unsigned long long>(1, "w");
  const auto old = gpu.Allocate<unsigned>(128, "old");
  const LaunchReport report =
      gpu.Run("atomics_global", {.grid = {2}, .block = {64}}, u, s, f, w, old);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  EXPECT_EQ(u[0], 128U);
  std::vector<unsigned> seen(old.data, old.data + 128);
  std::ranges::sort(seen);
  for (unsigned i = 0; i < 128; ++i) {
    ASSERT_EQ(seen[i], i);
  }
  EXPECT_EQ(s[0], 77);
  EXPECT_EQ(s[1], -77);
  EXPECT_EQ(u[1], 128U % 7U);
  unsigned dec = 3;
  for (int i = 0; i < 128; ++i) {
    dec = dec == 0 || dec > 9 ? 9 : dec - 1;
  }
  EXPECT_EQ(u[2], dec);
  EXPECT_EQ(u[3], 0U);
  EXPECT_EQ(u[4], 0xffffU);
  EXPECT_EQ(u[5], 0U);  // 0 ^ 1 ^ ... ^ 127
  EXPECT_EQ(u[6], 128U);
  EXPECT_EQ(f[0], 64.0F);
  EXPECT_EQ(w[0], (127ULL * 128 / 2) << 32U);
}

TEST(Atomics, SharedHistogram) {
  Gpu gpu("warp");
  std::vector<unsigned char> in(5000);
  std::vector<unsigned> expected(256);
  for (std::size_t i = 0; i < in.size(); ++i) {
    in[i] = static_cast<unsigned char>(i * i % 97);
    ++expected[in[i]];
  }
  const auto din = gpu.Upload(in, "in");
  const auto out = gpu.Allocate<unsigned>(256, "out");
  const LaunchReport report =
      gpu.Run("histogram", {.grid = {3}, .block = {256}, .mode = Mode::kCheck}, din, out, 5000);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  for (std::size_t i = 0; i < 256; ++i) {
    ASSERT_EQ(out[i], expected[i]) << i;
  }
}

}  // namespace
}  // namespace kernelpro::simt
