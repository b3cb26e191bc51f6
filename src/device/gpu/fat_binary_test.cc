// SPDX-License-Identifier: Apache-2.0
#include "device/gpu/fat_binary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "device/protocol/bytes.h"

namespace kernelpro::gpu {
namespace {

using ::testing::HasSubstr;

struct TestEntry {
  std::uint16_t kind = 1;  ///< 1 PTX, 2 ELF
  std::uint32_t compute_capability = 90;
  std::uint64_t flags = 0x11;
  std::string payload;
};

/// As `nvcc -fatbin` writes it: seen in files of nvcc 13.0.
std::vector<std::byte> FatBinary(const std::vector<TestEntry>& entries) {
  protocol::ByteWriter body;
  for (const TestEntry& entry : entries) {
    body.U16(entry.kind);
    body.U16(0x0101);
    body.U32(64);
    body.U64(entry.payload.size());
    body.U32(0);
    body.U32(0x40);
    body.U16(0);
    body.U16(9);
    body.U32(entry.compute_capability);
    body.U32(0);
    body.U32(0);
    body.U64(entry.flags);
    body.U64(0);
    body.U64(0);
    body.Raw(std::as_bytes(std::span(entry.payload.data(), entry.payload.size())));
  }
  protocol::ByteWriter out;
  out.U32(0xba55ed50);
  out.U16(1);
  out.U16(16);
  out.U64(body.bytes().size());
  out.Raw(body.bytes());
  return out.Take();
}

TEST(FatBinaryTest, FindsThePtxAndDropsItsPadding) {
  using std::string_literals::operator""s;
  const auto image = FatBinary({{1, 90, 0x11, ".version 9.0\n\0\0\0"s},
                                {2, 90, 0x11,
                                 "\x7f"
                                 "ELF"}});
  const auto ptx = ExtractPtx(image, 90);
  ASSERT_TRUE(ptx) << ptx.error().message;
  EXPECT_EQ(*ptx, ".version 9.0\n");
}

TEST(FatBinaryTest, TakesTheNewestThatFits) {
  const auto image =
      FatBinary({{1, 80, 0, "for 80"}, {1, 100, 0, "for 100"}, {1, 89, 0, "for 89"}});
  EXPECT_EQ(ExtractPtx(image, 90).value(), "for 89");
  EXPECT_EQ(ExtractPtx(image, 100).value(), "for 100");
  const auto none = ExtractPtx(image, 75);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(none.error().message, HasSubstr("compute_80, compute_100, compute_89"));
}

TEST(FatBinaryTest, SaysWhatIsMissing) {
  const auto only_machine_code = ExtractPtx(FatBinary({{2, 90, 0, "ELF"}}), 90);
  ASSERT_FALSE(only_machine_code);
  EXPECT_THAT(only_machine_code.error().message, HasSubstr("it holds: sm_90"));
  EXPECT_THAT(only_machine_code.error().message, HasSubstr("-gencode"));
  const auto compressed = ExtractPtx(FatBinary({{1, 90, 0x8011, "zzz"}}), 90);
  ASSERT_FALSE(compressed);
  EXPECT_THAT(compressed.error().message, HasSubstr("-no-compress"));
  EXPECT_EQ(ExtractPtx({}, 90).error().code, ErrorCode::kParse);
}

TEST(FatBinaryTest, EveryCutAndRandomDamageIsSafe) {
  const auto whole = FatBinary({{1, 90, 0x11, "ptx text"}, {2, 90, 0x11, "machine code"}});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(ExtractPtx(std::span(whole).first(size), 90)) << size;
  }
  Rng rng(3);
  for (int round = 0; round < 5000; ++round) {
    auto damaged = whole;
    for (std::uint64_t hits = 1 + rng.Below(3); hits > 0; --hits) {
      damaged[rng.Below(damaged.size())] = static_cast<std::byte>(rng.Below(256));
    }
    (void)ExtractPtx(damaged, 90);
  }
}

}  // namespace
}  // namespace kernelpro::gpu
