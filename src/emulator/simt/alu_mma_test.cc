// SPDX-License-Identifier: Apache-2.0
#include "emulator/simt/alu_mma.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

namespace kernelpro::simt {
namespace {

using Words = std::vector<std::uint32_t>;

std::uint32_t Bits(float x) {
  return std::bit_cast<std::uint32_t>(x);
}

struct Tile {
  Words a, b, c, d;
};

struct Set {
  std::string input;
  std::string output;
  int k = 0;
  std::vector<Tile> tiles;
};

class SetReader {
 public:
  SetReader() {
    std::ifstream file(KP_SOURCE_DIR "/tests/data/h200/mma_records.bin", std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
  }

  std::vector<Set> Read() {
    EXPECT_EQ(Text(7), "KPMMA1\n");
    std::vector<Set> sets(Word());
    for (Set& set : sets) {
      set.input = Text(8).c_str();
      set.output = Text(8).c_str();
      set.k = static_cast<int>(Word());
      set.tiles.resize(Word());
      const std::size_t width = set.input == "tf32" ? 4 : 2;
      const std::size_t out = set.output == "f32" ? 4 : 2;
      const auto k = static_cast<std::size_t>(set.k);
      for (Tile& tile : set.tiles) {
        tile = {Elements(16 * k, width), Elements(8 * k, width), Elements(128, out),
                Elements(128, out)};
      }
    }
    return sets;
  }

 private:
  std::string Text(std::size_t n) {
    const std::string text = at_ + n <= bytes_.size() ? bytes_.substr(at_, n) : std::string();
    at_ += n;
    return text;
  }

  std::uint32_t Word() {
    const std::string text = Text(4);
    std::uint32_t word = 0;
    std::memcpy(&word, text.data(), text.size());
    return word;
  }

  Words Elements(std::size_t count, std::size_t width) {
    Words elements(count);
    for (auto& element : elements) {
      const std::string text = Text(width);
      std::memcpy(&element, text.data(), text.size());
    }
    return elements;
  }

  std::string bytes_;
  std::size_t at_ = 0;
};

int CountMismatches(const Set& set, const Tile& tile, MmaArithmetic arithmetic) {
  const MmaInput input = set.input == "f16"    ? MmaInput::kF16
                         : set.input == "bf16" ? MmaInput::kBF16
                                               : MmaInput::kTF32;
  const MmaShape shape = {.m = 16, .n = 8, .k = set.k};
  Words d = tile.c;
  if (set.output == "f16") {
    MultiplyAccumulateF16(shape, tile.a.data(), tile.b.data(), d.data(), d.data(), arithmetic);
  } else {
    MultiplyAccumulateF32(input, shape, tile.a.data(), tile.b.data(), d.data(), d.data(),
                          arithmetic);
  }
  int mismatches = 0;
  for (std::size_t i = 0; i < d.size(); ++i) {
    mismatches += d[i] != tile.d[i] ? 1 : 0;
  }
  return mismatches;
}

// Twelve sets of 16 tiles: f16, bf16, tf32 inputs; f32 and f16 accumulators; k of 4, 8, 16; half of
// the tiles of eight sets hold subnormals, infinities, NaNs and overflowing values.
TEST(MmaTest, EqualsTheH200BitForBit) {
  const std::vector<Set> sets = SetReader().Read();
  ASSERT_EQ(sets.size(), 12U);
  for (const Set& set : sets) {
    ASSERT_EQ(set.tiles.size(), 16U);
    for (const Tile& tile : set.tiles) {
      EXPECT_EQ(CountMismatches(set, tile, {}), 0) << set.input << " k" << set.k;
    }
  }
}

TEST(MmaTest, OtherArithmeticsDiffer) {
  const std::vector<Set> sets = SetReader().Read();
  const Set& set = sets.front();
  EXPECT_GT(CountMismatches(set, set.tiles[0], {.block_k = 16, .fraction_bits = 24}), 0);
  EXPECT_GT(CountMismatches(set, set.tiles[0], {.block_k = 8, .fraction_bits = 25}), 0);
}

// One row and column, k = 1: by hand.
std::uint32_t Scalar(std::uint32_t a, std::uint32_t b, float c) {
  std::uint32_t d = 0;
  const std::uint32_t bits = Bits(c);
  MultiplyAccumulateF32(MmaInput::kF16, {.m = 1, .n = 1, .k = 1}, &a, &b, &bits, &d);
  return d;
}

TEST(MmaTest, TermsAreTruncated) {
  EXPECT_EQ(Scalar(0x3c00, 0x3e00, 2.0F), Bits(3.5F));
  // 1 + 2^-24 (f16's least subnormal): 24 fraction bits survive the alignment, not the f32 result.
  EXPECT_EQ(Scalar(0x0001, 0x3c00, 1.0F), Bits(1.0F));
  // -1 * 2^-24 + 1 = 0x0.ffffff exactly; rounding would give it too, but -2^-26 must vanish: it
  // lies below the 25 bits kept, where to-nearest arithmetic would return 1 - 2^-24 or 1.
  EXPECT_EQ(Scalar(0x8001, 0x3c00, 1.0F), 0x3f7fffffU);
  EXPECT_EQ(Scalar(0x8001, 0x3400, 1.0F), Bits(1.0F));
}

TEST(MmaTest, InfinitiesAndNans) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Scalar(0x7c00, 0x3c00, 1.0F), Bits(infinity));
  EXPECT_EQ(Scalar(0x7c00, 0x3c00, -infinity), 0x7fffffffU);
  EXPECT_EQ(Scalar(0x7c00, 0x0000, 1.0F), 0x7fffffffU);
  EXPECT_EQ(Scalar(0xfe00, 0x3c00, 1.0F), 0x7fffffffU);
}

// k beyond a block is a chain: the same as two calls.
TEST(MmaTest, LongKChainsBlocks) {
  const std::vector<Set> sets = SetReader().Read();
  const Set& set = sets.front();
  const Tile& first = set.tiles[0];
  const Tile& second = set.tiles[1];
  Words a;
  Words b;
  for (std::size_t row = 0; row < 16; ++row) {
    for (const Tile* tile : {&first, &second}) {
      a.insert(a.end(), tile->a.begin() + static_cast<std::ptrdiff_t>(row * 16),
               tile->a.begin() + static_cast<std::ptrdiff_t>(row * 16 + 16));
    }
  }
  for (std::size_t column = 0; column < 8; ++column) {
    for (const Tile* tile : {&first, &second}) {
      b.insert(b.end(), tile->b.begin() + static_cast<std::ptrdiff_t>(column * 16),
               tile->b.begin() + static_cast<std::ptrdiff_t>(column * 16 + 16));
    }
  }
  Words chained(128);
  MultiplyAccumulateF32(MmaInput::kF16, {.m = 16, .n = 8, .k = 32}, a.data(), b.data(),
                        first.c.data(), chained.data());
  Words stepped(128);
  MultiplyAccumulateF32(MmaInput::kF16, {}, first.a.data(), first.b.data(), first.c.data(),
                        stepped.data());
  MultiplyAccumulateF32(MmaInput::kF16, {}, second.a.data(), second.b.data(), stepped.data(),
                        stepped.data());
  EXPECT_EQ(chained, stepped);
}

}  // namespace
}  // namespace kernelpro::simt
