// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/ptx/module.h"

namespace kernelpro::ptx {
namespace {

using ::testing::HasSubstr;

Result<Module> ParseText(std::string_view text) {
  return Parse(".version 9.0\n.target sm_90\n" + std::string(text), "v.ptx");
}

Variable ParseOne(std::string_view text) {
  auto module = ParseText(text);
  EXPECT_TRUE(module.ok()) << (module.ok() ? "" : module.error().message);
  if (!module.ok() || module->variables.empty()) {
    return {};
  }
  return std::move(module->variables.back());
}

std::string ErrorOf(std::string_view text) {
  const auto module = ParseText(text);
  EXPECT_FALSE(module.ok()) << text;
  return module.ok() ? "" : module.error().message;
}

template <class T>
std::vector<T> Values(const Variable& variable) {
  std::string bytes = variable.init;
  bytes.resize(variable.bytes, '\0');
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

TEST(Variables, SpacesSizesAndAlignment) {
  const Variable plain = ParseOne(".visible .global .u64 counter;");
  EXPECT_EQ(plain.space, Space::kGlobal);
  EXPECT_EQ(plain.bytes, 8U);
  EXPECT_EQ(plain.alignment, 8U);
  const Variable dynamic = ParseOne(".extern .shared .align 1024 .b8 s[];");
  EXPECT_TRUE(dynamic.is_extern);
  EXPECT_EQ(dynamic.bytes, 0U);
  EXPECT_EQ(dynamic.alignment, 1024U);
  const Variable lanes = ParseOne(".const .v4 .f32 q[3];");
  EXPECT_EQ(lanes.space, Space::kConst);
  EXPECT_EQ(lanes.bytes, 48U);
  EXPECT_EQ(lanes.alignment, 16U);
  EXPECT_EQ(ParseOne(".global .attribute(.managed) .align 4 .u32 man = 5;").init,
            std::string("\5\0\0\0", 4));
  EXPECT_EQ(ParseText(".global .u32 a, b[2];")->variables.size(), 2U);
}

TEST(Variables, ListsAreRowMajorAndPadded) {
  const Variable nested = ParseOne(".global .s32 m[3][2] = {{1, 2}, {-3}, {}};");
  EXPECT_EQ(Values<std::int32_t>(nested), (std::vector<std::int32_t>{1, 2, -3, 0, 0, 0}));
  EXPECT_EQ(nested.init.size(), 12U) << "the zero tail is not stored";
  EXPECT_EQ(Values<std::int16_t>(ParseOne(".const .b16 f[2][2] = {1, 2, 3};")),
            (std::vector<std::int16_t>{1, 2, 3, 0}));
  EXPECT_EQ(Values<std::uint8_t>(ParseOne(".global .b8 open[] = {7, 8, 9};")),
            (std::vector<std::uint8_t>{7, 8, 9}));
  EXPECT_EQ(ParseOne(".global .u32 open[][4] = {{1}, {2}};").bytes, 32U);
  EXPECT_THAT(ErrorOf(".global .u8 a[2] = {1, 2, 3};"), HasSubstr("v.ptx:3: expected at most 2"));
  EXPECT_THAT(ErrorOf(".global .u8 a[2] = {{1}};"), HasSubstr("no more braces"));
  EXPECT_THAT(ErrorOf(".global .u8 a = {1};"), HasSubstr("no more braces"));
}

TEST(Variables, FloatingPoint) {
  EXPECT_EQ(Values<double>(ParseOne(".global .f64 d = 0d400A000000000000;")).at(0), 3.25);
  EXPECT_EQ(Values<float>(ParseOne(".const .f32 f[4] = {0f3FC00000, -0f40000000, 2.5, 3};")),
            (std::vector<float>{1.5F, -2.F, 2.5F, 3.F}));
  EXPECT_EQ(Values<double>(ParseOne(".const .f64 f[2] = {0f3FC00000, -2};")),
            (std::vector<double>{1.5, -2.}));
  EXPECT_EQ(Values<std::uint32_t>(ParseOne(".global .b32 b = 0f3F800000;")).at(0), 0x3f800000U);
  EXPECT_THAT(ErrorOf(".global .u32 b = 1.5;"), HasSubstr("a value of type .u32"));
}

TEST(Variables, Addresses) {
  const Variable pointer = ParseOne(".global .u64 p[3] = {0, generic(arr)+8, f-4};");
  ASSERT_EQ(pointer.relocations.size(), 2U);
  EXPECT_EQ(pointer.relocations[0].offset, 8U);
  EXPECT_EQ(pointer.relocations[0].symbol, "arr");
  EXPECT_EQ(pointer.relocations[0].addend, 8);
  EXPECT_TRUE(pointer.relocations[0].generic);
  EXPECT_EQ(pointer.relocations[0].bytes, 8U);
  EXPECT_EQ(pointer.relocations[1].addend, -4);
  EXPECT_FALSE(pointer.relocations[1].generic);
  EXPECT_EQ(ParseOne(".global .u32 p = sh;").relocations.at(0).bytes, 4U);
  EXPECT_THAT(ErrorOf(".global .u16 p = sh;"), HasSubstr("does not fit in .u16"));
}

TEST(Variables, AddressesWrittenByteByByte) {
  std::string list = "{1";
  for (int i = 0; i < 8; ++i) {
    list += ", 0xFF" + std::string(2 * static_cast<std::size_t>(i), '0') + "(generic(g)+4)";
  }
  const Variable packed = ParseOne(".global .align 1 .u8 p[9] = " + list + "};");
  ASSERT_EQ(packed.relocations.size(), 1U);
  EXPECT_EQ(packed.relocations[0].offset, 1U);
  EXPECT_EQ(packed.relocations[0].symbol, "g");
  EXPECT_EQ(packed.relocations[0].addend, 4);
  EXPECT_TRUE(packed.relocations[0].generic);
  EXPECT_EQ(packed.init, "\1");
  EXPECT_THAT(ErrorOf(".global .u8 p[2] = {0xFF(g), 0xFF00(g)};"), HasSubstr("2 byte(s)"));
  EXPECT_THAT(ErrorOf(".global .u8 p[8] = {0xFF00(g)};"), HasSubstr("0 byte(s)"));
  EXPECT_THAT(ErrorOf(".global .u8 p[8] = {0xFFF(g)};"), HasSubstr("mask of one byte"));
}

TEST(Variables, HugeSizesCostNothing) {
  const Variable huge = ParseOne(".global .b8 big[1152921504606846976] = {1};");
  EXPECT_EQ(huge.bytes, std::uint64_t{1} << 60U);
  EXPECT_EQ(huge.init.size(), 1U);
  EXPECT_THAT(ErrorOf(".global .u64 big[4294967296][4294967296];"), HasSubstr("larger than 2^62"));
  EXPECT_THAT(ErrorOf(".global .u8 big[4611686018427387905];"), HasSubstr("from 1 to 2^62"));
  EXPECT_THAT(ErrorOf(".global .u8 none[0];"), HasSubstr("from 1 to 2^62"));
  // The second row lies a GiB in: its value may not make the parser hold a GiB.
  EXPECT_THAT(ErrorOf(".global .u8 far[2][1073741824] = {{0}, {1}};"), HasSubstr("MiB of initial"));
  EXPECT_TRUE(ParseText(".global .u8 far[2][1073741824] = {{1}, {0}};").ok());
}

TEST(Variables, Mistakes) {
  EXPECT_THAT(ErrorOf(".global .u32 a[];"), HasSubstr("neither a size nor values"));
  EXPECT_THAT(ErrorOf(".global .u32 a[2][];"), HasSubstr("a size in every dimension"));
  EXPECT_THAT(ErrorOf(".global .align 3 .u32 a;"), HasSubstr("alignment 3 is not a power of two"));
  EXPECT_THAT(ErrorOf(".global a;"), HasSubstr("expected a type, found 'a'"));
  EXPECT_THAT(ErrorOf(".global .texref t;"), HasSubstr("found '.texref'"));
  EXPECT_THAT(ErrorOf(".global .pred t;"), HasSubstr(".pred cannot"));
  EXPECT_THAT(ErrorOf(".global .u32 a;\n\n.global .u32 a;"), HasSubstr("v.ptx:5: 'a' is declared"));
  EXPECT_TRUE(ParseText(".extern .global .u32 a; .global .u32 a = 3;").ok());
}

}  // namespace
}  // namespace kernelpro::ptx
