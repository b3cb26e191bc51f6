// SPDX-License-Identifier: Apache-2.0
// Tasks that cannot tell right from wrong, each beside an honest twin.
#include "evaluate/sanity_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <functional>
#include <limits>

#include "base/rng.h"
#include "evaluate/fill.h"
#include "evaluate/numeric.h"

namespace kernelpro {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Doubles = std::vector<double>;

/// A task x -> y with one workload of 400 elements and three trials, whose reference is a function.
class SanityGateTest : public ::testing::Test {
 protected:
  SanityGateTest() {
    task_.tensors.push_back({.name = "x", .dtype = DType::kF32, .role = Role::kInput});
    task_.tensors.push_back({.name = "y", .dtype = DType::kF32, .role = Role::kOutput});
    task_.tolerance = {.absolute = 1e-5, .relative = 1e-5};
  }

  std::string Why(const std::function<Doubles(const Doubles&)>& reference,
                  std::uint64_t count = 400) {
    trials_.clear();
    std::vector<GateTrial> judged;
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      Trial& trial = trials_.emplace_back();
      trial.inputs["x"] = MakeInput(task_.tensors[0], count, seed + 1);
      const Doubles x = ToDoubles(task_.tensors[0].dtype, trial.inputs["x"]);
      trial.expected["y"] = reference(x);
      if (task_.tensors[1].error_scale == ErrorScale::kMagnitude) {
        Doubles absolute = x;
        std::ranges::transform(absolute, absolute.begin(), [](double v) { return std::fabs(v); });
        trial.magnitude["y"] = reference(absolute);
      }
      judged.push_back({0, &trial});
    }
    return WhyUnfit(task_, judged);
  }

  static std::function<Doubles(const Doubles&)> Map(std::function<double(double)> f) {
    return [f = std::move(f)](const Doubles& x) {
      Doubles y(x.size());
      std::ranges::transform(x, y.begin(), f);
      return y;
    };
  }

  Task task_;
  std::deque<Trial> trials_;
};

TEST_F(SanityGateTest, HonestTasksAreFit) {
  EXPECT_THAT(Why(Map([](double v) { return 2 * v; })), IsEmpty());
  EXPECT_THAT(Why(Map([](double v) { return std::exp(v); })), IsEmpty());
  EXPECT_THAT(Why([](const Doubles& x) { return Doubles{x[0] + x[1]}; }), IsEmpty())
      << "an output of one element";
}

TEST_F(SanityGateTest, OutputsOfAboutZero) {
  EXPECT_THAT(Why(Map([](double) { return 0.0; })), HasSubstr("writes zeros in output 'y'"));
  task_.tolerance = {.absolute = 0.9, .relative = 0.9};
  EXPECT_THAT(Why(Map([](double v) { return v > 0 ? 1.0 : -1.0; })), HasSubstr("writes zeros"));
  task_.tolerance = {.absolute = 1e-3, .relative = 1e-3};
  EXPECT_THAT(Why(Map([](double v) { return v > 0 ? 1.0 : -1.0; })), IsEmpty());
}

TEST_F(SanityGateTest, Constants) {
  EXPECT_THAT(Why(Map([](double v) { return 1 + 1e-7 * v; })), HasSubstr("writes one constant"));
  EXPECT_THAT(Why(Map([](double v) { return 1 + 1e-3 * v; })), IsEmpty());
  // The mean of many: nearly the same for all inputs.
  const auto mean = [](const Doubles& x) {
    double sum = 0;
    for (const double v : x) {
      sum += v;
    }
    return Doubles{1 + sum / static_cast<double>(x.size())};
  };
  task_.tolerance = {.absolute = 0, .relative = 0.3};
  EXPECT_THAT(Why(mean), HasSubstr("constant"));
  task_.tolerance = {.absolute = 0, .relative = 1e-5};
  EXPECT_THAT(Why(mean), IsEmpty());
}

TEST_F(SanityGateTest, CopiesOfAnInput) {
  EXPECT_THAT(Why(Map([](double v) { return v * (1 + 1e-6); })), HasSubstr("copies the input 'x'"));
  EXPECT_THAT(Why(Map([](double v) { return v * 1.001; })), IsEmpty());
  EXPECT_THAT(Why(Map([](double v) { return v; })), IsEmpty()) << "a copy is the task";
  EXPECT_THAT(Why([](const Doubles& x) { return Doubles(x.rbegin(), x.rend()); }, 1), IsEmpty());
}

TEST_F(SanityGateTest, OnlyTheFirstPercentMatters) {
  const auto tail = [](double rest) {
    return [rest](const Doubles& x) {
      Doubles y(x.size());
      for (std::size_t i = 0; i < x.size(); ++i) {
        y[i] = i < 4 ? x[i] : rest * x[i];
      }
      return y;
    };
  };
  EXPECT_THAT(Why(tail(1e-9)), HasSubstr("the first 1 %"));
  EXPECT_THAT(Why(tail(0.5)), IsEmpty());
}

TEST_F(SanityGateTest, NeverFinite) {
  EXPECT_THAT(Why(Map([](double) { return std::numeric_limits<double>::quiet_NaN(); })),
              HasSubstr("writes nothing"));
  EXPECT_THAT(Why(Map([](double v) { return std::sqrt(v); })), IsEmpty()) << "half of it is";
}

TEST_F(SanityGateTest, IntegerOutputsAreJudgedToo) {
  task_.tensors[1].dtype = DType::kI32;
  EXPECT_THAT(Why(Map([](double) { return 7.0; })), HasSubstr("constant"));
  EXPECT_THAT(Why(Map([](double v) { return std::floor(10 * v); })), IsEmpty());
}

TEST_F(SanityGateTest, MagnitudeFitsSumsOfProductsOnly) {
  task_.tensors[1].error_scale = ErrorScale::kMagnitude;
  const auto neighbours = [](double sign) {
    return [sign](const Doubles& x) {
      Doubles y(x.size() - 1);
      for (std::size_t i = 0; i + 1 < x.size(); ++i) {
        y[i] = x[i] + sign * x[i + 1];
      }
      return y;
    };
  };
  EXPECT_THAT(Why(neighbours(1)), IsEmpty());
  EXPECT_THAT(Why(neighbours(-1)), HasSubstr("no sum of products"));
}

TEST(WhyUnrepeatable, BitForBit) {
  const TensorDoubles a = {{"y", {1, 2, 3}}};
  EXPECT_THAT(WhyUnrepeatable(a, a), IsEmpty());
  const TensorDoubles b = {{"y", {1, std::nextafter(2.0, 3.0), 3}}};
  EXPECT_THAT(WhyUnrepeatable(a, b), HasSubstr("element 1 of 'y'"));
  const TensorDoubles nan = {{"y", {std::numeric_limits<double>::quiet_NaN()}}};
  EXPECT_THAT(WhyUnrepeatable(nan, nan), IsEmpty());
}

}  // namespace
}  // namespace kernelpro
