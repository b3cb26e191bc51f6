// SPDX-License-Identifier: Apache-2.0
// Distributions of inputs: what each is for, and that promises of the fill are kept.
#include "evaluate/fill.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "evaluate/inputs.h"
#include "evaluate/numeric.h"

namespace kernelpro {
namespace {

constexpr std::uint64_t kCount = 4000;
constexpr Distribution kEvery[] = {Distribution::kFill,       Distribution::kZeroMean,
                                   Distribution::kHeavyTails, Distribution::kTies,
                                   Distribution::kDenormals,  Distribution::kOutlier};

TensorSpec Tensor(DType dtype, Fill fill) {
  return {.name = "x", .dtype = dtype, .role = Role::kInput, .shape = {}, .fill = fill};
}

std::vector<double> Values(const TensorSpec& tensor, Distribution d, std::uint64_t seed = 7) {
  return ToDoubles(tensor.dtype, MakeInput(tensor, kCount, seed, d));
}

double Deviation(const std::vector<double>& values) {
  double squares = 0;
  for (const double v : values) {
    squares += v * v;
  }
  return std::sqrt(squares / static_cast<double>(values.size()));
}

double Largest(const std::vector<double>& values) {
  double largest = 0;
  for (const double v : values) {
    largest = std::max(largest, std::fabs(v));
  }
  return largest;
}

const Fill kNormal = {Fill::Kind::kNormal, 0.5, 2};

TEST(Distributions, SameSeedSameBytesAndAlwaysFinite) {
  for (const DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16}) {
    for (const Distribution d : kEvery) {
      const TensorSpec tensor = Tensor(dtype, {Fill::Kind::kNormal, 0, 5000});
      EXPECT_EQ(MakeInput(tensor, 100, 3, d), MakeInput(tensor, 100, 3, d));
      EXPECT_NE(MakeInput(tensor, 100, 3, d), MakeInput(tensor, 100, 4, d));
      for (const double v : Values(tensor, d)) {
        ASSERT_TRUE(std::isfinite(v)) << Name(dtype) << " " << Name(d);
      }
    }
  }
}

TEST(Distributions, ZeroMeanHasANewScaleForEverySeed) {
  std::set<int> octaves;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const double deviation =
        Deviation(Values(Tensor(DType::kF32, kNormal), Distribution::kZeroMean, seed));
    EXPECT_GT(deviation, 2.0 / 8.5);
    EXPECT_LT(deviation, 2.0 * 8.5);
    octaves.insert(static_cast<int>(std::floor(std::log2(deviation))));
  }
  EXPECT_GE(octaves.size(), 4U);
}

TEST(Distributions, TailsOutliersTiesAndDenormals) {
  const TensorSpec tensor = Tensor(DType::kF32, kNormal);
  EXPECT_LT(Largest(Values(tensor, Distribution::kFill)), 12);
  EXPECT_GT(Largest(Values(tensor, Distribution::kHeavyTails)), 40);
  std::vector<double> outlier = Values(tensor, Distribution::kOutlier);
  EXPECT_GT(Largest(outlier), 1900);
  EXPECT_EQ(std::ranges::count_if(outlier, [](double v) { return std::fabs(v) > 100; }), 1);
  const std::vector<double> ties = Values(tensor, Distribution::kTies);
  EXPECT_EQ(std::set<double>(ties.begin(), ties.end()).size(), 9U);
  const std::vector<double> denormals = Values(tensor, Distribution::kDenormals);
  const auto tiny = std::ranges::count_if(denormals, [](double v) {
    return v != 0 && std::fabs(v) < std::numeric_limits<float>::min();
  });
  EXPECT_NEAR(static_cast<double>(tiny), kCount / 8.0, kCount / 30.0);
}

TEST(Distributions, TheOutlierIsInAnotherPlaceForEverySeed) {
  std::set<std::ptrdiff_t> places;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto v = Values(Tensor(DType::kF32, kNormal), Distribution::kOutlier, seed);
    places.insert(std::ranges::max_element(v, {}, [](double x) { return std::fabs(x); }) -
                  v.begin());
  }
  EXPECT_GE(places.size(), 19U);
}

TEST(Distributions, PromisedRangesAreKept) {
  const struct {
    DType dtype;
    Fill fill;
    double low, high;
  } kCases[] = {
      {DType::kF32, {Fill::Kind::kUniform, 0.5, 1.5}, 0.5, 1.5},
      {DType::kF16, {Fill::Kind::kUniform, 0, 1}, 0, 1},
      {DType::kI32, {Fill::Kind::kIntegers, -3, 12}, -3, 12},
      {DType::kU8, {Fill::Kind::kIntegers, 0, 255}, 0, 255},
      {DType::kF32, {Fill::Kind::kOnes, 0, 1}, 1, 1},
      {DType::kF32, {Fill::Kind::kZeros, 0, 1}, 0, 0},
      {DType::kF32, {Fill::Kind::kNormal, 4, 0}, 4, 4},
      {DType::kF32, {Fill::Kind::kNormal, 10, 1}, 1, 19},
  };

  for (const auto& c : kCases) {
    for (const Distribution d : kEvery) {
      for (const double v : Values(Tensor(c.dtype, c.fill), d)) {
        ASSERT_GE(v, c.low) << Name(d);
        ASSERT_LE(v, c.high) << Name(d);
      }
    }
  }
  // Positive stays positive: a logarithm of it is finite.
  for (const Distribution d : kEvery) {
    for (const double v : Values(Tensor(DType::kF32, {Fill::Kind::kUniform, 0, 1}), d)) {
      ASSERT_GT(v, 0) << Name(d);
    }
  }
  const TensorSpec integers = Tensor(DType::kI32, {Fill::Kind::kIntegers, -3, 12});
  const std::vector<double> edges = Values(integers, Distribution::kHeavyTails);
  EXPECT_GT(std::ranges::count(edges, -3.0) + std::ranges::count(edges, 12.0), kCount / 5);
}

TEST(DistributionOf, FillFirstAllOthersOverTheWorkloadsAndNeverTimed) {
  Task task;
  task.workloads.resize(4);
  task.workloads[0].kind = Workload::Kind::kTimed;
  std::set<Distribution> seen;
  for (std::size_t w = 1; w < 4; ++w) {
    EXPECT_EQ(DistributionOf(task, w, 0), Distribution::kFill);
    EXPECT_NE(DistributionOf(task, w, 1), DistributionOf(task, w, 2));
    seen.insert(DistributionOf(task, w, 1));
    seen.insert(DistributionOf(task, w, 2));
  }
  EXPECT_EQ(seen.size(), 5U);
  EXPECT_EQ(DistributionOf(task, 0, 2), Distribution::kFill);
  task.distributions = {Distribution::kFill, Distribution::kTies};
  EXPECT_EQ(DistributionOf(task, 1, 2), Distribution::kTies);
  task.distributions = {Distribution::kFill};
  EXPECT_EQ(DistributionOf(task, 1, 2), Distribution::kFill);
}

}  // namespace
}  // namespace kernelpro
