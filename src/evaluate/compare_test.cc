// SPDX-License-Identifier: Apache-2.0
#include "evaluate/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/rng.h"
#include "evaluate/fill.h"
#include "evaluate/numeric.h"
#include "evaluate/outcome.h"
#include "task/float16.h"

namespace kernelpro {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<std::byte> Bytes(DType dtype, const std::vector<double>& values) {
  std::vector<std::byte> bytes(values.size() * SizeOf(dtype));
  for (std::size_t i = 0; i < values.size(); ++i) {
    StoreElement(dtype, values[i], bytes.data() + i * SizeOf(dtype));
  }
  return bytes;
}

class CompareTest : public ::testing::Test {
 protected:
  OutputError Compare(DType dtype, const std::vector<double>& got, const std::vector<double>& want,
                      Judge judge = Judge::kAll) {
    const TensorSpec tensor{.name = "y", .dtype = dtype, .role = Role::kOutput};
    poison.resize(got.size() * SizeOf(dtype));
    Poison(poison, 5);
    std::vector<std::byte> bytes = Bytes(dtype, got);
    for (const std::size_t i : untouched) {
      std::memcpy(bytes.data() + i * SizeOf(dtype), poison.data() + i * SizeOf(dtype),
                  SizeOf(dtype));
    }
    return CompareOutput(tensor, bytes, want, poison, tolerance, judge);
  }

  Tolerance tolerance{.absolute = 1e-6, .relative = 1e-5};
  std::vector<std::byte> poison;
  std::vector<std::size_t> untouched;
};

TEST_F(CompareTest, OneWrongElementAnywhereFails) {
  const std::vector<double> want(100, 2.0);
  EXPECT_EQ(Compare(DType::kF32, want, want).failed_elements, 0U);
  for (const std::size_t at : {0U, 50U, 99U}) {
    std::vector<double> got = want;
    got[at] = 2.001;
    const OutputError e = Compare(DType::kF32, got, want);
    EXPECT_EQ(e.failed_elements, 1U);
    EXPECT_EQ(e.first_failed, static_cast<std::int64_t>(at));
    EXPECT_NEAR(e.max_absolute, 0.001, 1e-6);
    EXPECT_NEAR(e.worst_ratio, 0.001 / (2e-6 + 2e-5), 0.5);
  }
}

TEST_F(CompareTest, NanNeverPassesForANumber) {
  EXPECT_EQ(Compare(DType::kF32, {kNan, 1}, {1, 1}).failed_elements, 1U);
  EXPECT_EQ(Compare(DType::kF32, {1, 1}, {kNan, 1}).failed_elements, 1U);
  EXPECT_EQ(Compare(DType::kF32, {kNan, 1}, {kNan, 1}).failed_elements, 0U);
  EXPECT_EQ(Compare(DType::kF32, {kInf, 1}, {kInf, 1}).failed_elements, 0U);
  EXPECT_EQ(Compare(DType::kF32, {-kInf, 1}, {kInf, 1}).failed_elements, 1U);
  EXPECT_EQ(Compare(DType::kF32, {kInf, 1}, {1, 1}).failed_elements, 1U);
}

TEST_F(CompareTest, AbsolutePartScalesWithTheAnswer) {
  // Outputs of a softmax over many columns are tiny: an unscaled 1e-6 would accept zeros.
  const std::vector<double> want(1000, 1e-7);
  EXPECT_EQ(Compare(DType::kF32, std::vector<double>(1000, 0.0), want).failed_elements, 1000U);
  EXPECT_EQ(Compare(DType::kF32, want, want).failed_elements, 0U);
}

TEST_F(CompareTest, MagnitudeIsTheScaleElementByElement) {
  tolerance = {.absolute = 1e-6, .relative = 0};
  const TensorSpec tensor{.name = "y", .dtype = DType::kF32, .role = Role::kOutput};
  const std::vector<double> want = {0, 0, 1000};  // The terms of the first two cancel.
  const std::vector<double> magnitude = {100, 1e-3, 1000};
  const std::vector<double> got = {9e-5, 9e-5, 1000};
  const std::vector<std::byte> unwritten(12, std::byte{0xff});
  const OutputError e = CompareOutput(tensor, Bytes(DType::kF32, got), want, unwritten, tolerance,
                                      Judge::kAll, magnitude);
  EXPECT_EQ(e.failed_elements, 1U) << "the rms would let both pass";
  EXPECT_EQ(e.first_failed, 1);
  EXPECT_EQ(e.worst, 1);
  EXPECT_EQ(Compare(DType::kF32, got, want).failed_elements, 0U);
}

TEST_F(CompareTest, AnAnswerTooLargeForTheTypeIsInfiniteAndHidesNothing) {
  EXPECT_EQ(Compare(DType::kF16, {kInf, 1}, {1e6, 1}).failed_elements, 0U);
  EXPECT_EQ(Compare(DType::kF16, {-kInf, 1}, {1e6, 1}).failed_elements, 1U);
  EXPECT_EQ(Compare(DType::kF16, {65504, 1}, {1e6, 1}).failed_elements, 1U);
  EXPECT_EQ(Compare(DType::kF32, {kInf, 1}, {1e39, 1}).failed_elements, 0U);
  EXPECT_EQ(Compare(DType::kF32, {kInf, 0}, {1e39, 1}).failed_elements, 1U)
      << "the other elements are judged by their own size";
  EXPECT_EQ(Compare(DType::kF32, {kInf, 1}, {1e38, 1}).failed_elements, 1U);
}

TEST_F(CompareTest, IntegersMustBeEqual) {
  tolerance = {.absolute = 10, .relative = 10};
  EXPECT_EQ(Compare(DType::kI32, {100, 2}, {100, 3}).failed_elements, 1U);
  EXPECT_EQ(Compare(DType::kI32, {100, 3}, {100, 3}).failed_elements, 0U);
}

TEST_F(CompareTest, PoisonedElementsAreUnwrittenAndCanBeLeftOut) {
  untouched = {1, 2};
  OutputError e = Compare(DType::kF32, {1, 1, 1, 1}, {1, 1, 1, 1});
  EXPECT_EQ(e.failed_elements, 2U);
  EXPECT_EQ(e.unwritten_elements, 2U);
  e = Compare(DType::kF32, {1, 1, 1, 1}, {1, 1, 1, 1}, Judge::kWrittenOnly);
  EXPECT_EQ(e.elements, 2U);
  EXPECT_EQ(e.failed_elements, 0U);
  e = Compare(DType::kF32, {1, 1, 1, 9}, {1, 1, 1, 1}, Judge::kWrittenOnly);
  EXPECT_EQ(e.failed_elements, 1U);
}

TEST(Poison, IsNanInEveryFloatTypeAndNewForEverySeed) {
  std::vector<std::byte> a(64);
  std::vector<std::byte> b(64);
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Poison(a, seed);
    for (const DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16}) {
      for (const double value : ToDoubles(dtype, a)) {
        EXPECT_TRUE(std::isnan(value));
      }
    }
    Poison(b, seed + 1);
    EXPECT_NE(a, b);
  }
  std::vector<std::byte> odd(5);
  Poison(odd, 1);
  EXPECT_NE(odd[4], std::byte{0});
}

TEST(Numeric, HalfAgreesWithTheCompilersOwn) {
  // _Float16 converts in hardware or libgcc: a second, independent implementation.
  Rng rng(3);
  for (int i = 0; i < 200000; ++i) {
    const double value = std::ldexp(rng.Uniform() - 0.5, static_cast<int>(rng.Below(50)) - 28);
    const auto theirs = static_cast<_Float16>(value);
    std::uint16_t bits = 0;
    std::memcpy(&bits, &theirs, sizeof bits);
    ASSERT_EQ(HalfBits(value), bits) << value;
    ASSERT_EQ(FromHalf(bits), static_cast<double>(theirs));
  }
}

TEST(Numeric, RoundTripOfEveryHalfAndBFloat16) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto b = static_cast<std::uint16_t>(bits);
    if (!std::isnan(FromHalf(b))) {
      ASSERT_EQ(HalfBits(FromHalf(b)), b);
    }
    if (!std::isnan(FromBFloat16(b))) {
      ASSERT_EQ(BFloat16Bits(FromBFloat16(b)), b);
    }
  }
  EXPECT_EQ(HalfBits(65520.0), 0x7c00) << "rounds to infinity";
  EXPECT_EQ(HalfBits(65519.9), 0x7bff);
  EXPECT_EQ(BFloat16Bits(1.0 + 1.0 / 256), 0x3f80) << "a tie goes to even";
  EXPECT_EQ(BFloat16Bits(1.0 + 3.0 / 256), 0x3f82);
}

TEST(Numeric, IntegersAreRoundedAndClamped) {
  std::byte out[8];
  StoreElement(DType::kI8, 300, out);
  EXPECT_EQ(LoadElement(DType::kI8, out), 127);
  StoreElement(DType::kU8, -1, out);
  EXPECT_EQ(LoadElement(DType::kU8, out), 0);
  StoreElement(DType::kI32, 2.5, out);
  EXPECT_EQ(LoadElement(DType::kI32, out), 2);
}

TEST(Fill, FollowsItsDistributionAndSeed) {
  TensorSpec tensor{.name = "x", .dtype = DType::kF64};
  tensor.fill = {Fill::Kind::kNormal, 3, 2};
  const auto bytes = MakeInput(tensor, 100000, 9);
  EXPECT_EQ(bytes, MakeInput(tensor, 100000, 9));
  EXPECT_NE(bytes, MakeInput(tensor, 100000, 10));
  double sum = 0;
  double squares = 0;
  for (const double v : ToDoubles(DType::kF64, bytes)) {
    sum += v;
    squares += v * v;
  }
  const double mean = sum / 1e5;
  EXPECT_NEAR(mean, 3, 0.05);
  EXPECT_NEAR(std::sqrt(squares / 1e5 - mean * mean), 2, 0.05);
  tensor.fill = {Fill::Kind::kIntegers, -2, 3};
  for (const double v : ToDoubles(DType::kF64, MakeInput(tensor, 1000, 1))) {
    EXPECT_TRUE(v >= -2 && v <= 3 && v == std::floor(v));
  }
}

TEST(Outcome, EveryEndHasItsVerdict) {
  using End = CallOutcome::End;
  const auto verdict = [](End end) {
    CallOutcome outcome;
    outcome.end = end;
    return JudgeCall(outcome)->verdict;
  };
  EXPECT_FALSE(JudgeCall(CallOutcome{}).has_value());
  EXPECT_EQ(verdict(End::kCrashed), Verdict::kRuntimeError);
  EXPECT_EQ(verdict(End::kExited), Verdict::kRuntimeError);
  EXPECT_EQ(verdict(End::kTimedOut), Verdict::kTimeout);
  EXPECT_EQ(verdict(End::kForbidden), Verdict::kPolicyViolation);
  EXPECT_EQ(verdict(End::kOutOfMemory), Verdict::kOutOfMemory);
  EXPECT_EQ(verdict(End::kUnsupported), Verdict::kUnsupported);
  EXPECT_EQ(verdict(End::kDeviceLost), Verdict::kInfrastructureError);
  EXPECT_EQ(verdict(End::kLoadFailed), Verdict::kCompileError);
  EXPECT_EQ(verdict(End::kDeviceFault), Verdict::kRuntimeError);
}

TEST(Outcome, ARaceCondemnsAndAnUnusedUninitialisedReadDoesNot) {
  CallOutcome outcome;
  simt::Fault fault;
  fault.kind = simt::FaultKind::kUninitialized;
  fault.fatal = false;
  outcome.faults = {fault};
  EXPECT_FALSE(JudgeCall(outcome).has_value());
  fault.kind = simt::FaultKind::kRace;
  fault.message = "a race";
  outcome.faults.push_back(fault);
  EXPECT_EQ(JudgeCall(outcome)->verdict, Verdict::kRace);
  EXPECT_EQ(JudgeCall(outcome)->reason, "a race");
}

TEST(Outcome, LaunchErrorsAreNamed) {
  CallOutcome outcome;
  outcome.cuda_error = 9;
  outcome.cuda_error_name = "cudaErrorInvalidConfiguration";
  EXPECT_EQ(JudgeCall(outcome)->verdict, Verdict::kLaunchError);
  EXPECT_THAT(JudgeCall(outcome)->reason, ::testing::HasSubstr("InvalidConfiguration"));
}

TEST(Verdict, NamesRoundTrip) {
  for (int i = 0; i < 17; ++i) {
    const auto verdict = static_cast<Verdict>(i);
    EXPECT_EQ(ParseVerdict(Name(verdict)), verdict);
  }
  EXPECT_EQ(ParseVerdict("fine"), std::nullopt);
}

}  // namespace
}  // namespace kernelpro
