// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>

#include "emulator/simt/alu_test_util.h"

// Operand forms beyond "one result from plain sources": predicates, pairs, carries, packs.
namespace kernelpro::simt::alu_test {
namespace {

constexpr LaneMask kSome = 0x0ff0a5c3U;

std::uint64_t Signed32(std::uint64_t bits) {
  return static_cast<std::uint64_t>(static_cast<std::int32_t>(bits));
}

TEST(PredicateTest, SetpWithSecondDestinationAndCombination) {
  struct Case {
    const char* name;
    bool (*apply)(bool, bool);
  };

  const Case cases[] = {{"and", [](bool a, bool b) { return a && b; }},
                        {"or", [](bool a, bool b) { return a || b; }},
                        {"xor", [](bool a, bool b) { return a != b; }}};
  for (const AluIsa isa : Isas()) {
    for (const Case& c : cases) {
      for (const bool negated : {false, true}) {
        const AluDecode decode =
            SelectAluFor(isa, Parse("setp.lt." + std::string(c.name) + ".s32"));
        ASSERT_NE(decode.run, nullptr);
        ASSERT_EQ(decode.sources, 3);
        std::mt19937_64 rng(7);
        Drawn drawn = DrawWarp(decode, rng);
        for (int lane = 0; lane < kWarpSize; ++lane) {
          drawn.slots.Set(kDst2, ptx::Type::kPred, lane, lane % 2 != 0 ? 1 : 0);
        }
        AluOperands operands = StandardOperands();
        operands.has_dst2 = true;
        operands.has_combine = true;
        operands.src_negated = negated;
        decode.run(drawn.slots.data(), operands, kSome);
        for (int lane = 0; lane < kWarpSize; ++lane) {
          const Values& v = drawn.lanes[static_cast<std::size_t>(lane)];
          const bool less = static_cast<std::int32_t>(v[0]) < static_cast<std::int32_t>(v[1]);
          const bool with = (v[2] != 0) != negated;
          const bool active = ((kSome >> lane) & 1U) != 0;
          EXPECT_EQ(drawn.slots.Get(kDst2, ptx::Type::kPred, lane) != 0,
                    active ? c.apply(!less, with) : lane % 2 != 0);
          if (active) {
            EXPECT_EQ(drawn.slots.Get(kDst, ptx::Type::kPred, lane) != 0, c.apply(less, with));
          }
        }
      }
    }
  }
}

// The combining predicate may be the destination itself.
TEST(PredicateTest, CombinationReadsBeforeItWrites) {
  const AluDecode decode = SelectAlu(Parse("setp.eq.or.s32"));
  Slots slots;
  for (int lane = 0; lane < kWarpSize; ++lane) {
    slots.Set(0, ptx::Type::kS32, lane, static_cast<std::uint64_t>(lane));
    slots.Set(1, ptx::Type::kS32, lane, 3);
  }
  slots.Set(kDst, ptx::Type::kPred, 20, 1);
  AluOperands operands = StandardOperands();
  operands.src[2] = operands.dst;
  operands.dst2 = Slots::Offset(kDst2);
  operands.has_dst2 = true;
  decode.run(slots.data(), operands, kAllLanes);
  EXPECT_EQ(slots.Get(kDst, ptx::Type::kPred, 3), 1U);
  EXPECT_EQ(slots.Get(kDst, ptx::Type::kPred, 20), 1U);
  EXPECT_EQ(slots.Get(kDst, ptx::Type::kPred, 4), 0U);
  EXPECT_EQ(slots.Get(kDst2, ptx::Type::kPred, 3), 0U);
  EXPECT_EQ(slots.Get(kDst2, ptx::Type::kPred, 4), 1U);
}

TEST(PredicateTest, Logic) {
  CheckOpcode("and.pred", [](const Values& v) { return v[0] & v[1]; });
  CheckOpcode("or.pred", [](const Values& v) { return v[0] | v[1]; });
  CheckOpcode("xor.pred", [](const Values& v) { return v[0] ^ v[1]; });
  CheckOpcode("not.pred", [](const Values& v) { return v[0] ^ 1U; });
  CheckOpcode("mov.pred", [](const Values& v) { return v[0]; });
}

TEST(SelectTest, ByPredicateAndBySign) {
  for (const char* type : {"b16", "u32", "f32", "b64", "f64"}) {
    CheckOpcode(std::string("selp.") + type,
                [](const Values& v) { return v[2] != 0 ? v[0] : v[1]; });
    CheckOpcode(std::string("slct.") + type + ".s32",
                [](const Values& v) { return static_cast<std::int32_t>(v[2]) >= 0 ? v[0] : v[1]; });
    CheckOpcode(std::string("mov.") + type, [](const Values& v) { return v[0]; });
  }
  CheckOpcode("cvta.to.global.u64", [](const Values& v) { return v[0]; });
}

TEST(PairTest, SetpOfPairsWritesOnePredicateForEachHalf) {
  const AluDecode decode = SelectAlu(Parse("setp.lt.f16x2"));
  ASSERT_NE(decode.run, nullptr);
  Slots slots;
  slots.Set(0, ptx::Type::kB32, 0, 0x3c004000U);  // {2, 1}
  slots.Set(1, ptx::Type::kB32, 0, 0x40003c00U);  // {1, 2}
  decode.run(slots.data(), StandardOperands(), kAllLanes);
  EXPECT_EQ(slots.Get(kDst, ptx::Type::kPred, 0), 0U);
  EXPECT_EQ(slots.Get(kDst2, ptx::Type::kPred, 0), 1U);
}

// 64-bit addition, subtraction and 128-bit product from 32-bit pieces.
TEST(CarryTest, ChainsMakeWiderArithmetic) {
  for (const AluIsa isa : Isas()) {
    const auto run = [isa](const char* opcode, Slots* slots, LaneMask mask) {
      const AluDecode decode = SelectAluFor(isa, Parse(opcode));
      ASSERT_NE(decode.run, nullptr) << opcode;
      ASSERT_TRUE(decode.uses_carry);
      decode.run(slots->data(), StandardOperands(), mask);
    };
    std::mt19937_64 rng(11);
    for (int round = 0; round < 20; ++round) {
      for (const bool subtract : {false, true}) {
        std::uint64_t a[kWarpSize];
        std::uint64_t b[kWarpSize];
        Slots slots;
        for (int lane = 0; lane < kWarpSize; ++lane) {
          a[lane] = rng() >> (rng() % 64);
          b[lane] = rng() >> (rng() % 64);
          slots.Set(0, ptx::Type::kU32, lane, a[lane]);
          slots.Set(1, ptx::Type::kU32, lane, b[lane]);
        }
        run(subtract ? "sub.cc.u32" : "add.cc.u32", &slots, kAllLanes);
        std::uint64_t low[kWarpSize];
        for (int lane = 0; lane < kWarpSize; ++lane) {
          low[lane] = slots.Get(kDst, ptx::Type::kU32, lane);
          slots.Set(0, ptx::Type::kU32, lane, a[lane] >> 32U);
          slots.Set(1, ptx::Type::kU32, lane, b[lane] >> 32U);
        }
        run(subtract ? "subc.cc.u32" : "addc.cc.u32", &slots, kAllLanes);
        for (int lane = 0; lane < kWarpSize; ++lane) {
          const std::uint64_t got = low[lane] | slots.Get(kDst, ptx::Type::kU32, lane) << 32U;
          const std::uint64_t want = subtract ? a[lane] - b[lane] : a[lane] + b[lane];
          EXPECT_EQ(got, want);
          const bool out = subtract ? a[lane] < b[lane] : want < a[lane];
          EXPECT_EQ(slots.Get(kCarry, ptx::Type::kPred, lane), out ? 1U : 0U);
        }
      }
    }
  }
}

TEST(CarryTest, MultiplyAddCarriesAndMasks) {
  const AluDecode decode = SelectAlu(Parse("mad.lo.cc.u32"));
  ASSERT_NE(decode.run, nullptr);
  Slots slots;
  for (int lane = 0; lane < kWarpSize; ++lane) {
    slots.Set(0, ptx::Type::kU32, lane, 0xffffffffU);
    slots.Set(1, ptx::Type::kU32, lane, 1);
    slots.Set(2, ptx::Type::kU32, lane, 2);
  }
  decode.run(slots.data(), StandardOperands(), 0x1U);
  EXPECT_EQ(slots.Get(kDst, ptx::Type::kU32, 0), 1U);
  EXPECT_EQ(slots.Get(kCarry, ptx::Type::kPred, 0), 1U);
  EXPECT_EQ(slots.Get(kCarry, ptx::Type::kPred, 1), 0U);
  const AluDecode high = SelectAlu(Parse("madc.hi.s32"));
  ASSERT_NE(high.run, nullptr);
  high.run(slots.data(), StandardOperands(), kAllLanes);
  EXPECT_EQ(slots.Get(kDst, ptx::Type::kU32, 0), 2U);  // hi(-1 * 1) + 2 + carry
  EXPECT_EQ(slots.Get(kDst, ptx::Type::kU32, 1), 1U);
  EXPECT_EQ(slots.Get(kCarry, ptx::Type::kPred, 0), 1U) << "no .cc: the flag stays";
}

TEST(PackTest, PacksAndUnpacksEverySplit) {
  struct Split {
    const char* opcode;
    int elements;
  };

  for (const Split split : {Split{"mov.b64", 2}, Split{"mov.b64", 4}, Split{"mov.b32", 2},
                            Split{"mov.b32", 4}, Split{"mov.b16", 2}}) {
    const AluDecode pack = SelectPack(Parse(split.opcode), split.elements);
    const AluDecode unpack = SelectUnpack(Parse(split.opcode), split.elements);
    ASSERT_NE(pack.run, nullptr);
    ASSERT_NE(unpack.run, nullptr);
    const unsigned bits = WidthOf(unpack.dst);
    std::mt19937_64 rng(3);
    Drawn drawn = DrawWarp(pack, rng);
    pack.run(drawn.slots.data(), StandardOperands(), kSome);
    Slots back;
    for (int lane = 0; lane < kWarpSize; ++lane) {
      std::uint64_t want = 0;
      for (int k = split.elements - 1; k >= 0; --k) {
        want = (want << bits) |
               drawn.lanes[static_cast<std::size_t>(lane)][static_cast<std::size_t>(k)];
      }
      const std::uint64_t got = drawn.slots.Get(kDst, pack.dst, lane);
      const bool active = ((kSome >> lane) & 1U) != 0;
      EXPECT_EQ(got, active ? want : 0x5a5a5a5a5a5a5a5aU & LowMask(WidthOf(pack.dst)));
      back.Set(0, unpack.src[0], lane, want);
    }
    unpack.run(back.data(), StandardOperands(), kSome);
    for (int lane = 0; lane < kWarpSize; ++lane) {
      for (int k = 0; k < split.elements; ++k) {
        const bool active = ((kSome >> lane) & 1U) != 0;
        EXPECT_EQ(
            back.Get(kDst + k, unpack.dst, lane),
            active ? drawn.lanes[static_cast<std::size_t>(lane)][static_cast<std::size_t>(k)] : 0U);
      }
    }
  }
  EXPECT_EQ(SelectPack(Parse("mov.b64"), 3).run, nullptr);
  EXPECT_EQ(SelectPack(Parse("mov.f64"), 2).run, nullptr);
  EXPECT_EQ(SelectUnpack(Parse("mov.b128"), 2).run, nullptr);
}

TEST(AliasTest, DestinationMayBeASource) {
  const AluDecode decode = SelectAlu(Parse("mad.lo.s32"));
  Slots slots;
  for (int lane = 0; lane < kWarpSize; ++lane) {
    for (int k = 0; k < 3; ++k) {
      slots.Set(k, ptx::Type::kS32, lane, static_cast<std::uint64_t>(lane + k));
    }
  }
  AluOperands operands = StandardOperands();
  operands.dst = operands.src[1];
  decode.run(slots.data(), operands, kAllLanes);
  for (int lane = 0; lane < kWarpSize; ++lane) {
    const auto n = static_cast<std::uint64_t>(lane);
    EXPECT_EQ(slots.Get(1, ptx::Type::kS32, lane), n * (n + 1) + n + 2);
  }
}

TEST(ConversionTest, NarrowResultsExtendInWiderRegisters) {
  CheckOpcode("cvt.s64.s32", [](const Values& v) { return Signed32(v[0]); });
  const AluDecode decode = SelectAlu(Parse("cvt.s8.s32"));
  Slots slots;
  slots.Set(0, ptx::Type::kS32, 0, 0x180);
  decode.run(slots.data(), StandardOperands(), kAllLanes);
  EXPECT_EQ(slots.Get(kDst, ptx::Type::kS32, 0), 0xffffff80U);
}

}  // namespace
}  // namespace kernelpro::simt::alu_test
