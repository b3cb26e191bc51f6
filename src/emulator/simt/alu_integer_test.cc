// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <type_traits>

#include "emulator/simt/alu_test_util.h"

// The oracle computes in 128-bit integers and truncates.
namespace kernelpro::simt::alu_test {
namespace {

using Wide = __int128;

template <class T>
Wide At(const Values& v, int k) {
  return static_cast<T>(v[static_cast<std::size_t>(k)]);
}

template <class T>
std::uint64_t Truncate(Wide x) {
  return static_cast<std::uint64_t>(x);
}

template <class T>
class IntegerTest : public testing::Test {
 public:
  static std::string Name() {
    return (std::is_signed_v<T> ? "s" : "u") + std::to_string(8 * sizeof(T));
  }

  static void Check(const std::string& op, Wide (*oracle)(Wide, Wide, Wide)) {
    CheckOpcode(op + "." + Name(), [oracle](const Values& v) {
      return Truncate<T>(oracle(At<T>(v, 0), At<T>(v, 1), At<T>(v, 2)));
    });
  }
};

using Types = testing::Types<std::uint16_t, std::int16_t, std::uint32_t, std::int32_t,
                             std::uint64_t, std::int64_t>;
TYPED_TEST_SUITE(IntegerTest, Types);

TYPED_TEST(IntegerTest, Arithmetic) {
  using T = TypeParam;
  this->Check("add", [](Wide a, Wide b, Wide) { return a + b; });
  this->Check("sub", [](Wide a, Wide b, Wide) { return a - b; });
  this->Check("mul.lo", [](Wide a, Wide b, Wide) {
    return Wide((unsigned __int128)a * (unsigned __int128)b);
  });
  this->Check("min", [](Wide a, Wide b, Wide) { return a < b ? a : b; });
  this->Check("max", [](Wide a, Wide b, Wide) { return a > b ? a : b; });
  this->Check("sad", [](Wide a, Wide b, Wide c) { return c + (a < b ? b - a : a - b); });
  this->Check("mul.hi", [](Wide a, Wide b, Wide) {
    if constexpr (std::is_signed_v<T>) {
      return (a * b) >> (8 * sizeof(T));
    } else {
      return static_cast<Wide>(
          (static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b)) >>
          (8 * sizeof(T)));
    }
  });
  this->Check("mad.lo", [](Wide a, Wide b, Wide c) {
    return static_cast<Wide>(static_cast<unsigned __int128>(a) *
                             static_cast<unsigned __int128>(b)) +
           c;
  });
}

TYPED_TEST(IntegerTest, DivisionIncludingByZeroAndOverflow) {
  this->Check("div", [](Wide a, Wide b, Wide) { return b == 0 ? Wide{-1} : a / b; });
  this->Check("rem", [](Wide a, Wide b, Wide) { return b == 0 ? Wide{-1} : a % b; });
}

TYPED_TEST(IntegerTest, Shifts) {
  using T = TypeParam;
  const auto shift = [](const Values& v) {
    const auto n = static_cast<std::uint32_t>(v[1]);
    return n < 8 * sizeof(T) ? n : 8 * sizeof(T);
  };
  CheckOpcode("shr." + this->Name(),
              [shift](const Values& v) { return Truncate<T>(At<T>(v, 0) >> shift(v)); });
  CheckOpcode("shl.b" + std::to_string(8 * sizeof(T)), [shift](const Values& v) {
    return Truncate<T>(static_cast<Wide>(static_cast<unsigned __int128>(v[0]) << shift(v)));
  });
}

TEST(IntegerTest, WideningProducts) {
  CheckOpcode("mul.wide.u16", [](const Values& v) { return v[0] * v[1]; });
  CheckOpcode("mul.wide.u32", [](const Values& v) { return v[0] * v[1]; });
  CheckOpcode("mul.wide.s32", [](const Values& v) {
    return Truncate<std::int64_t>(At<std::int32_t>(v, 0) * At<std::int32_t>(v, 1));
  });
  CheckOpcode("mul.wide.s16", [](const Values& v) {
    return Truncate<std::int32_t>(At<std::int16_t>(v, 0) * At<std::int16_t>(v, 1));
  });
  CheckOpcode("mad.wide.u32", [](const Values& v) { return v[0] * v[1] + v[2]; });
  CheckOpcode("mad.wide.s32", [](const Values& v) {
    return Truncate<std::int64_t>(At<std::int32_t>(v, 0) * At<std::int32_t>(v, 1) +
                                  At<std::int64_t>(v, 2));
  });
}

}  // namespace
}  // namespace kernelpro::simt::alu_test
