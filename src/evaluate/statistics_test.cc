// SPDX-License-Identifier: Apache-2.0
#include "evaluate/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "base/rng.h"

namespace kernelpro {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

double Normal(Rng& rng) {
  return std::sqrt(-2 * std::log(1 - rng.Uniform())) *
         std::cos(2 * std::numbers::pi * rng.Uniform());
}

/// Times around `centre` microseconds with relative noise.
std::vector<double> Times(std::size_t count, double centre, double noise, Rng& rng) {
  std::vector<double> times(count);
  std::ranges::generate(times, [&] { return centre * (1 + noise * Normal(rng)); });
  return times;
}

TEST(Summarize, KnownFigures) {
  const std::vector<double> samples = {5, 1, 4, 2, 3};
  const Summary s = Summarize(samples, 1);
  EXPECT_EQ(s.median, 3);
  EXPECT_EQ(s.spread, (4.0 - 2.0) / 3.0);
  EXPECT_EQ(s.samples, 5U);
  EXPECT_EQ(s.low, 1) << "five samples: the range";
  EXPECT_EQ(s.high, 5);
  EXPECT_EQ(Summarize(std::vector<double>{1, 2, 3, 10}, 1).median, 2.5);
}

TEST(Summarize, NoneAndOneAndNotFinite) {
  const Summary none = Summarize({}, 1);
  EXPECT_EQ(none.samples, 0U);
  EXPECT_EQ(none.median, 0);
  const Summary one = Summarize(std::vector<double>{7}, 1);
  EXPECT_EQ(one.median, 7);
  EXPECT_EQ(one.low, 7);
  EXPECT_EQ(one.high, 7);
  EXPECT_EQ(one.spread, 0);
  const Summary odd = Summarize(std::vector<double>{kNan, 7, kInf, -kInf}, 1);
  EXPECT_EQ(odd.samples, 1U);
  EXPECT_EQ(odd.median, 7);
  EXPECT_EQ(Summarize(std::vector<double>{-1, 0, 1}, 1).spread, 0);
}

TEST(Summarize, SameSeedSameFigures) {
  Rng rng(3);
  const std::vector<double> samples = Times(40, 50, 0.05, rng);
  const Summary a = Summarize(samples, 9);
  const Summary b = Summarize(samples, 9);
  EXPECT_EQ(a.low, b.low);
  EXPECT_EQ(a.high, b.high);
}

TEST(Summarize, IntervalHoldsTheMedianInAbout95Of100) {
  Rng rng(11);
  int covered = 0;
  for (int run = 0; run < 200; ++run) {
    const Summary s = Summarize(Times(25, 100, 0.02, rng), rng.Next());
    EXPECT_LE(s.low, s.median);
    EXPECT_GE(s.high, s.median);
    covered += s.low <= 100 && s.high >= 100 ? 1 : 0;
  }
  EXPECT_GE(covered, 180);
  EXPECT_LE(covered, 200);
}

TEST(Summarize, OutliersDoNotMoveTheMedian) {
  Rng rng(5);
  std::vector<double> samples = Times(50, 100, 0.01, rng);
  for (std::size_t i = 0; i < 8; ++i) {
    samples[i * 6] *= 50;
  }
  const Summary s = Summarize(samples, 2);
  EXPECT_NEAR(s.median, 100, 1);
  EXPECT_LT(s.high, 102);
}

TEST(PairedRatio, SameKernelTwiceCoversOne) {
  Rng rng(21);
  int covered = 0;
  int called_different = 0;
  for (int run = 0; run < 200; ++run) {
    const Ratio r = PairedRatio(Times(20, 30, 0.01, rng), Times(20, 30, 0.01, rng), rng.Next());
    covered += r.low <= 1 && r.high >= 1 ? 1 : 0;
    called_different += Differs(r, 0.005) ? 1 : 0;
    EXPECT_NEAR(r.value, 1, 0.02);
  }
  EXPECT_GE(covered, 180);
  EXPECT_LE(called_different, 2);
}

TEST(PairedRatio, ThreePercentAreSeenInOnePercentNoise) {
  Rng rng(22);
  int faster = 0;
  int slower = 0;
  for (int run = 0; run < 100; ++run) {
    const std::vector<double> slow = Times(30, 103, 0.01, rng);
    const std::vector<double> fast = Times(30, 100, 0.01, rng);
    const Ratio up = PairedRatio(slow, fast, rng.Next());
    const Ratio down = PairedRatio(fast, slow, rng.Next());
    faster += up.value > 1 && Differs(up, 0.01) ? 1 : 0;
    slower += down.value < 1 && Differs(down, 0.01) ? 1 : 0;
  }
  EXPECT_GE(faster, 95);
  EXPECT_GE(slower, 95);
}

TEST(PairedRatio, OutliersDoNotMoveIt) {
  Rng rng(23);
  std::vector<double> a = Times(40, 100, 0.01, rng);
  std::vector<double> b = Times(40, 100, 0.01, rng);
  for (std::size_t i = 0; i < 6; ++i) {
    a[i * 5] *= 1 + 100 * rng.Uniform();
    b[i * 7] *= 1 + 100 * rng.Uniform();
  }
  const Ratio r = PairedRatio(a, b, 4);
  EXPECT_NEAR(r.value, 1, 0.01);
  EXPECT_FALSE(Differs(r, 0.01));
}

TEST(PairedRatio, DriftInABBAOrderDoesNotMoveIt) {
  // The clock falls by 1 % a sample: taken as A A A... B B B... that would be a false 40 % gain.
  std::vector<double> a;
  std::vector<double> b;
  for (int block = 0; block < 10; ++block) {
    const double start = 100 * std::pow(1.01, 4 * block);
    a.push_back(start);
    b.push_back(start * 1.01);
    b.push_back(start * 1.01 * 1.01);
    a.push_back(start * 1.01 * 1.01 * 1.01);
  }
  const Ratio r = PairedRatio(a, b, 4);
  EXPECT_NEAR(r.value, 1, 0.001);
  EXPECT_FALSE(Differs(r, 0));
}

TEST(PairedRatio, NoneFewAndUnusable) {
  const Ratio none = PairedRatio({}, {}, 1);
  EXPECT_EQ(none.pairs, 0U);
  EXPECT_EQ(none.value, 1);
  EXPECT_FALSE(Differs(none, 0));
  const Ratio one = PairedRatio(std::vector<double>{20}, std::vector<double>{10}, 1);
  EXPECT_EQ(one.value, 2);
  EXPECT_EQ(one.low, 2);
  EXPECT_FALSE(Differs(one, 0.01)) << "one pair proves nothing";
  const std::vector<double> five(5, 20);
  EXPECT_FALSE(Differs(PairedRatio(five, std::vector<double>(5, 10), 1), 0.01));
  const std::vector<double> six(6, 20);
  EXPECT_TRUE(Differs(PairedRatio(six, std::vector<double>(6, 10), 1), 0.01));
  const Ratio some = PairedRatio(std::vector<double>{20, 0, kNan, 5, 20, 1},
                                 std::vector<double>{10, 1, 1, -1, 10}, 1);
  EXPECT_EQ(some.pairs, 2U);
  EXPECT_EQ(some.value, 2);
}

}  // namespace
}  // namespace kernelpro
