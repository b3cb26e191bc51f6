// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "task/float16.h"
#include "task/task.h"

namespace kernelpro {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Task MixedTask() {
  Task task;
  task.name = "mixed";
  task.axes = {"rows", "cols"};
  task.scalars = {{.name = "flag", .dtype = DType::kU8, .value = 255},
                  {.name = "h", .dtype = DType::kF16, .value = 1.5},
                  {.name = "eps", .dtype = DType::kF32, .value = 1e-5},
                  {.name = "n", .dtype = DType::kI32, .value = -3}};
  task.tensors = {
      {.name = "x", .dtype = DType::kF16, .role = Role::kInput, .shape = {"rows"}, .fill = {}},
      {.name = "idx", .dtype = DType::kI32, .role = Role::kInput, .shape = {"cols"}, .fill = {}},
      {.name = "y", .dtype = DType::kF32, .role = Role::kOutput, .shape = {"rows"}, .fill = {}}};
  return task;
}

/// What the compiler makes of the same struct (the header's types, with half as 16 bits).
struct Mixed {
  std::int64_t rows, cols;
  std::uint8_t flag;
  std::uint16_t h;
  float eps;
  std::int32_t n;
  const void *x, *idx;
  void* y;
};

struct MixedReference {
  std::int64_t rows, cols;
  std::uint8_t flag;
  double h, eps;
  std::int32_t n;
  const void *x, *idx;
  void* y;
};

TEST(Args, LayoutIsThatOfTheCompiler) {
  const ArgsLayout layout = TaskArgsLayout(MixedTask());
  ASSERT_EQ(layout.fields.size(), 9U);
  EXPECT_EQ(layout.bytes, sizeof(Mixed));
  EXPECT_EQ(layout.fields[1].offset, offsetof(Mixed, cols));
  EXPECT_EQ(layout.fields[2].offset, offsetof(Mixed, flag));
  EXPECT_EQ(layout.fields[3].offset, offsetof(Mixed, h));
  EXPECT_EQ(layout.fields[4].offset, offsetof(Mixed, eps));
  EXPECT_EQ(layout.fields[5].offset, offsetof(Mixed, n));
  EXPECT_EQ(layout.fields[6].offset, offsetof(Mixed, x));
  EXPECT_EQ(layout.fields[8].offset, offsetof(Mixed, y));
  EXPECT_EQ(layout.fields[8].name, "y");
  EXPECT_EQ(layout.fields[8].kind, ArgsField::Kind::kTensor);
  const ArgsLayout reference = ReferenceArgsLayout(MixedTask());
  EXPECT_EQ(reference.bytes, sizeof(MixedReference));
  EXPECT_EQ(reference.fields[3].offset, offsetof(MixedReference, h));
  EXPECT_EQ(reference.fields[5].offset, offsetof(MixedReference, n));
  EXPECT_EQ(reference.fields[6].offset, offsetof(MixedReference, x));
}

TEST(Args, ImageHoldsAxesAndScalars) {
  const auto image = TaskArgsImage(MixedTask(), {{"rows", 5}, {"cols", 6}});
  ASSERT_TRUE(image.ok());
  ASSERT_EQ(image->size(), sizeof(Mixed));
  Mixed mixed{};
  std::memcpy(&mixed, image->data(), sizeof mixed);
  EXPECT_EQ(mixed.rows, 5);
  EXPECT_EQ(mixed.cols, 6);
  EXPECT_EQ(mixed.flag, 255);
  EXPECT_EQ(mixed.h, 0x3e00) << "1.5";
  EXPECT_EQ(mixed.eps, 1e-5F);
  EXPECT_EQ(mixed.n, -3);
  EXPECT_EQ(mixed.x, nullptr);
  const auto reference = ReferenceArgsImage(MixedTask(), {{"rows", 5}, {"cols", 6}});
  ASSERT_TRUE(reference.ok());
  MixedReference wide{};
  std::memcpy(&wide, reference->data(), sizeof wide);
  EXPECT_EQ(wide.eps, 1e-5);
  EXPECT_EQ(wide.h, 1.5);
  EXPECT_FALSE(TaskArgsImage(MixedTask(), {{"rows", 5}}).ok());
}

TEST(Args, HeadersDeclareTheStructs) {
  const std::string header = CandidateHeader(MixedTask());
  EXPECT_THAT(header, HasSubstr("#include <cuda_fp16.h>"));
  EXPECT_THAT(header, Not(HasSubstr("cuda_bf16.h"))) << "nothing is bf16";
  EXPECT_THAT(header, HasSubstr("  const __half* x;"));
  EXPECT_THAT(header, HasSubstr("  const int32_t* idx;"));
  EXPECT_THAT(header, HasSubstr("  float* y;"));
  EXPECT_THAT(header, HasSubstr("  __half h;"));
  const std::string reference = ReferenceHeader(MixedTask());
  EXPECT_THAT(reference, HasSubstr("  const double* x;"));
  EXPECT_THAT(reference, HasSubstr("  const int32_t* idx;"));
  EXPECT_THAT(reference, HasSubstr("  double* y;"));
  EXPECT_THAT(reference, HasSubstr("  double h;"));
  EXPECT_THAT(reference, Not(HasSubstr("cuda")));
}

TEST(Args, DTypesHaveTheirSizes) {
  EXPECT_EQ(SizeOf(DType::kF64), 8U);
  EXPECT_EQ(SizeOf(DType::kBF16), 2U);
  EXPECT_EQ(SizeOf(DType::kU8), 1U);
  for (int i = 0; i <= static_cast<int>(DType::kU8); ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(ParseDType(Name(dtype)), dtype);
  }
  EXPECT_FALSE(ParseDType("float").has_value());
}

/// Half of given bits, by the definition.
double HalfValue(std::uint32_t bits) {
  const int exponent = static_cast<int>((bits >> 10U) & 31U);
  const double mantissa = bits & 1023U;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024.0 + mantissa, exponent - 25);
  return (bits & 0x8000U) != 0 ? -magnitude : magnitude;
}

TEST(Float16, EveryHalfRoundTripsAndMidpointsGoToEven) {
  for (std::uint32_t bits = 0; bits < 0x7c00; ++bits) {
    ASSERT_EQ(HalfBits(HalfValue(bits)), bits);
    if (bits + 1 < 0x7c00) {
      const double middle = (HalfValue(bits) + HalfValue(bits + 1)) / 2;
      const std::uint32_t even = (bits & 1U) == 0 ? bits : bits + 1;
      ASSERT_EQ(HalfBits(middle), even);
      ASSERT_EQ(HalfBits(std::nextafter(middle, 1e9)), bits + 1);
      ASSERT_EQ(HalfBits(-std::nextafter(middle, 0)), bits | 0x8000U);
    }
  }
  EXPECT_EQ(HalfBits(65519.9), 0x7bff);
  EXPECT_EQ(HalfBits(65520), 0x7c00);
  EXPECT_EQ(HalfBits(-std::numeric_limits<double>::infinity()), 0xfc00);
}

TEST(Float16, BFloat16RoundsOnce) {
  EXPECT_EQ(BFloat16Bits(1.0), 0x3f80);
  EXPECT_EQ(BFloat16Bits(-2.0), 0xc000);
  EXPECT_EQ(BFloat16Bits(1.0 + 0x1p-8), 0x3f80) << "a tie goes to even";
  EXPECT_EQ(BFloat16Bits(1.0 + 0x1p-8 + 0x1p-40), 0x3f81) << "above the tie, lost in a float";
  EXPECT_EQ(BFloat16Bits(1.0 + 3 * 0x1p-8), 0x3f82);
  EXPECT_EQ(BFloat16Bits(1.0 + 3 * 0x1p-8 - 0x1p-40), 0x3f81);
  EXPECT_EQ(BFloat16Bits(1e308), 0x7f80);
  EXPECT_EQ(BFloat16Bits(std::numeric_limits<double>::infinity()), 0x7f80);
  EXPECT_EQ(BFloat16Bits(0.0), 0);
}

}  // namespace
}  // namespace kernelpro
