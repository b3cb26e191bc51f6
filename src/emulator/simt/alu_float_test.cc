// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "emulator/simt/alu_test_util.h"

// Floating point against the host's scalar library and 113-bit arithmetic. The hardware's own
// answers are in alu_hardware_test.cc.
namespace kernelpro::simt::alu_test {
namespace {

constexpr std::uint64_t kNan = 0x7fffffff;

std::uint64_t Canonical(float x) {
  return std::isnan(x) ? kNan : Bits(x);
}

float Flushed(float x) {
  return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0F, x) : x;
}

TEST(F32Test, NearestArithmetic) {
  CheckOpcode("add.f32", [](const Values& v) { return Canonical(AsF32(v[0]) + AsF32(v[1])); });
  CheckOpcode("sub.rn.f32", [](const Values& v) { return Canonical(AsF32(v[0]) - AsF32(v[1])); });
  CheckOpcode("mul.f32", [](const Values& v) { return Canonical(AsF32(v[0]) * AsF32(v[1])); });
  CheckOpcode("div.rn.f32", [](const Values& v) { return Canonical(AsF32(v[0]) / AsF32(v[1])); });
  CheckOpcode("sqrt.rn.f32", [](const Values& v) { return Canonical(std::sqrt(AsF32(v[0]))); });
  CheckOpcode(
      "fma.rn.f32",
      [](const Values& v) { return Canonical(std::fma(AsF32(v[0]), AsF32(v[1]), AsF32(v[2]))); },
      600);
}

TEST(F32Test, SaturationTakesNanToPlusZero) {
  CheckOpcode("fma.rn.sat.f32", [](const Values& v) {
    const float x = std::fma(AsF32(v[0]), AsF32(v[1]), AsF32(v[2]));
    return Bits(x > 0 ? std::fmin(x, 1.0F) : 0.0F);
  });
}

TEST(F32Test, FlushedInputsAndSums) {
  CheckOpcode("add.ftz.f32", [](const Values& v) {
    return Canonical(Flushed(Flushed(AsF32(v[0])) + Flushed(AsF32(v[1]))));
  });
}

TEST(F32Test, MinimumAndMaximumOrderZerosAndSkipNans) {
  const auto pick = [](const Values& v, bool max, bool nan) {
    const float a = AsF32(v[0]);
    const float b = AsF32(v[1]);
    if (std::isnan(a) || std::isnan(b)) {
      return nan || (std::isnan(a) && std::isnan(b)) ? kNan : Bits(std::isnan(a) ? b : a);
    }
    const bool a_less = a < b || (a == b && std::signbit(a));
    return Bits(a_less == max ? b : a);
  };
  CheckOpcode("min.f32", [pick](const Values& v) { return pick(v, false, false); });
  CheckOpcode("max.f32", [pick](const Values& v) { return pick(v, true, false); });
  CheckOpcode("min.NaN.f32", [pick](const Values& v) { return pick(v, false, true); });
  CheckOpcode("max.NaN.f32", [pick](const Values& v) { return pick(v, true, true); });
}

/// The product is exact in 113 bits: rm and rp must enclose it, one step apart at most, and rz is
/// the one nearer to zero.
template <class T>
void CheckDirected(const std::string& type, ptx::Type kind) {
  using Limits = std::numeric_limits<T>;
  const auto result = [&](const char* rounding, const Drawn& drawn, int lane) {
    Slots slots = drawn.slots;
    SelectAlu(Parse("mul." + std::string(rounding) + "." + type))
        .run(slots.data(), StandardOperands(), kAllLanes);
    const std::uint64_t bits = slots.Get(kDst, kind, lane);
    return sizeof(T) == 8 ? static_cast<T>(AsF64(bits)) : static_cast<T>(AsF32(bits));
  };
  std::mt19937_64 rng(5);
  const AluDecode decode = SelectAlu(Parse("mul.rn." + type));
  int inexact = 0;
  for (int warp = 0; warp < 60; ++warp) {
    const Drawn drawn = DrawWarp(decode, rng);
    const int lane = warp % kWarpSize;
    const Values& v = drawn.lanes[static_cast<std::size_t>(lane)];
    const T a = sizeof(T) == 8 ? static_cast<T>(AsF64(v[0])) : static_cast<T>(AsF32(v[0]));
    const T b = sizeof(T) == 8 ? static_cast<T>(AsF64(v[1])) : static_cast<T>(AsF32(v[1]));
    if (!std::isfinite(a) || !std::isfinite(b)) {
      continue;
    }
    const __float128 exact = static_cast<__float128>(a) * b;
    const T down = result("rm", drawn, lane);
    const T up = result("rp", drawn, lane);
    EXPECT_LE(static_cast<__float128>(down), exact);
    EXPECT_GE(static_cast<__float128>(up), exact);
    if (static_cast<__float128>(down) != exact) {
      ++inexact;
      EXPECT_EQ(std::nextafter(down, Limits::infinity()), up);
      EXPECT_EQ(result("rz", drawn, lane), exact > 0 ? down : up);
    }
  }
  EXPECT_GT(inexact, 10);
}

TEST(DirectedTest, ProductsAreEnclosed) {
  CheckDirected<float>("f32", ptx::Type::kF32);
  CheckDirected<double>("f64", ptx::Type::kF64);
}

TEST(F64Test, NearestArithmetic) {
  const auto same = [](double x, const Values& v, int sources) {
    for (const int k : {1, 2, 0}) {  // the hardware's preference: b, c, a
      const auto bits = v[static_cast<std::size_t>(k)];
      if (k < sources && std::isnan(AsF64(bits))) {
        return bits | 0x0008000000000000U;
      }
    }
    return std::isnan(x) ? 0xfff8000000000000U : Bits(x);
  };
  CheckOpcode("add.f64", [same](const Values& v) { return same(AsF64(v[0]) + AsF64(v[1]), v, 2); });
  CheckOpcode("mul.rn.f64",
              [same](const Values& v) { return same(AsF64(v[0]) * AsF64(v[1]), v, 2); });
  CheckOpcode("fma.rn.f64", [same](const Values& v) {
    return same(std::fma(AsF64(v[0]), AsF64(v[1]), AsF64(v[2])), v, 3);
  });
}

TEST(CompareTest, UnorderedForms) {
  const auto nan = [](const Values& v) {
    return std::isnan(AsF32(v[0])) || std::isnan(AsF32(v[1]));
  };
  CheckOpcode("setp.lt.f32", [](const Values& v) { return AsF32(v[0]) < AsF32(v[1]) ? 1U : 0U; });
  CheckOpcode("setp.ltu.f32",
              [nan](const Values& v) { return nan(v) || AsF32(v[0]) < AsF32(v[1]) ? 1U : 0U; });
  CheckOpcode("setp.ne.f32",
              [nan](const Values& v) { return !nan(v) && AsF32(v[0]) != AsF32(v[1]) ? 1U : 0U; });
  CheckOpcode("setp.neu.f32", [](const Values& v) { return AsF32(v[0]) != AsF32(v[1]) ? 1U : 0U; });
  CheckOpcode("setp.num.f32", [nan](const Values& v) { return nan(v) ? 0U : 1U; });
  CheckOpcode("setp.hi.u64", [](const Values& v) { return v[0] > v[1] ? 1U : 0U; });
}

/// f16 by definition: the value of a bit pattern, and the nearest pattern by search order.
float HalfValue(std::uint64_t bits) {
  const int exponent = static_cast<int>((bits >> 10U) & 31U);
  const auto mantissa = static_cast<float>(bits & 1023U);
  const float magnitude = exponent == 31  ? (mantissa != 0 ? NAN : INFINITY)
                          : exponent == 0 ? std::ldexp(mantissa, -24)
                                          : std::ldexp(mantissa + 1024, exponent - 25);
  return (bits & 0x8000U) != 0 ? -magnitude : magnitude;
}

std::uint64_t NearestHalf(double x) {
  if (std::isnan(x)) {
    return 0x7fff;
  }
  const std::uint64_t sign = std::signbit(x) ? 0x8000U : 0U;
  const double magnitude = std::fabs(x);
  if (magnitude >= 65520) {
    return sign | 0x7c00U;
  }
  const int exponent = magnitude < 0x1p-14 ? -14 : std::ilogb(magnitude);
  const double units = std::nearbyint(std::ldexp(magnitude, 10 - exponent));
  return sign |
         (static_cast<std::uint64_t>(units) + static_cast<std::uint64_t>(exponent + 14) * 1024);
}

TEST(HalfTest, ArithmeticRoundsOnce) {
  CheckOpcode("add.f16", [](const Values& v) {
    return NearestHalf(double{HalfValue(v[0])} + HalfValue(v[1]));
  });
  CheckOpcode("mul.f16", [](const Values& v) {
    return NearestHalf(double{HalfValue(v[0])} * HalfValue(v[1]));
  });
  CheckOpcode(
      "fma.rn.f16",
      [](const Values& v) {
        // Exact in 113 bits; cut to double with a sticky last bit, so that only one rounding
        // counts.
        const __float128 exact =
            static_cast<__float128>(HalfValue(v[0])) * HalfValue(v[1]) + HalfValue(v[2]);
        auto near = static_cast<double>(exact);
        if (std::isfinite(near) && static_cast<__float128>(near) != exact &&
            (Bits(near) & 1U) == 0) {
          near = std::nextafter(near, exact > near ? INFINITY : -INFINITY);
        }
        return NearestHalf(near);
      },
      600);
  CheckOpcode("cvt.rn.f16.f32", [](const Values& v) { return NearestHalf(AsF32(v[0])); }, 600);
  CheckOpcode("cvt.f32.f16", [](const Values& v) { return Canonical(HalfValue(v[0])); });
}

TEST(ConvertTest, FloatToIntegerClampsAndNanIsZero) {
  CheckOpcode("cvt.rzi.s32.f32", [](const Values& v) {
    const double x = std::trunc(AsF32(v[0]));
    const double clamped = std::fmin(std::fmax(x, -2147483648.0), 2147483647.0);
    return std::isnan(x) ? 0U : static_cast<std::uint64_t>(static_cast<std::int64_t>(clamped));
  });
  CheckOpcode("cvt.rni.u8.f32", [](const Values& v) {
    const double x = std::nearbyint(AsF32(v[0]));
    return std::isnan(x) ? 0U : static_cast<std::uint64_t>(std::fmin(std::fmax(x, 0.0), 255.0));
  });
  CheckOpcode("cvt.rn.f32.u64", [](const Values& v) { return Bits(static_cast<float>(v[0])); });
  CheckOpcode("cvt.rn.f64.s64", [](const Values& v) {
    return Bits(static_cast<double>(static_cast<std::int64_t>(v[0])));
  });
}

}  // namespace
}  // namespace kernelpro::simt::alu_test
