// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/simt/alu_isa.h"
#include "emulator/simt/handler.h"

/// Runs single opcodes through SelectAluFor on edge-heavy operands and compares every lane with a
/// scalar oracle, under full and partial masks, for each instruction set of this processor.
namespace kernelpro::simt::alu_test {

using Values = std::array<std::uint64_t, 4>;
/// Source bits of one lane (predicates 0 or 1) to the expected destination bits.
using Oracle = std::function<std::uint64_t(const Values&)>;

inline ptx::Instruction Parse(std::string_view opcode) {
  ptx::Instruction instruction;
  instruction.opcode = opcode;
  for (std::size_t start = 0; start <= opcode.size();) {
    const std::size_t dot = std::min(opcode.find('.', start), opcode.size());
    instruction.parts.emplace_back(opcode.substr(start, dot - start));
    start = dot + 1;
  }
  return instruction;
}

inline std::vector<AluIsa> Isas() {
  std::vector<AluIsa> isas = {AluIsa::kV2};
  if (HasAluIsa(AluIsa::kV3)) {
    isas.push_back(AluIsa::kV3);
  }
  return isas;
}

inline unsigned WidthOf(ptx::Type type) {
  return type == ptx::Type::kPred ? 1 : 8 * ptx::SizeOf(type);
}

inline std::uint64_t LowMask(unsigned bits) {
  return bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
}

/// A warp's register block with one slot for each operand.
class Slots {
 public:
  Slots() : bytes_(kSlotBytes * 12) {}

  static std::uint32_t Offset(int slot) { return static_cast<std::uint32_t>(slot) * kSlotBytes; }

  void Set(int slot, ptx::Type type, int lane, std::uint64_t value) {
    std::byte* const base = bytes_.data() + Offset(slot);
    if (type == ptx::Type::kPred) {
      std::uint32_t mask = 0;
      std::memcpy(&mask, base, sizeof mask);
      mask = (mask & ~(1U << lane)) | static_cast<std::uint32_t>(value & 1U) << lane;
      std::memcpy(base, &mask, sizeof mask);
    } else if (WidthOf(type) == 64) {
      std::memcpy(base + 8 * lane, &value, 8);
    } else {
      // Bits above a sub-word value are undefined by contract: make them garbage.
      const std::uint64_t garbage = value | (0xa5a5a5a5U & ~LowMask(WidthOf(type)));
      const auto word = static_cast<std::uint32_t>(garbage);
      std::memcpy(base + 4 * lane, &word, 4);
    }
  }

  [[nodiscard]] std::uint64_t Get(int slot, ptx::Type type, int lane) const {
    const std::byte* const base = bytes_.data() + Offset(slot);
    std::uint64_t value = 0;
    if (type == ptx::Type::kPred) {
      std::memcpy(&value, base, 4);
      return (value >> lane) & 1U;
    }
    if (WidthOf(type) == 64) {
      std::memcpy(&value, base + 8 * lane, 8);
      return value;
    }
    std::memcpy(&value, base + 4 * lane, 4);
    return value & LowMask(WidthOf(type));
  }

  std::byte* data() { return bytes_.data(); }

 private:
  static constexpr std::uint32_t kSlotBytes = 256;
  std::vector<std::byte> bytes_;
};

inline constexpr int kDst = 4;
inline constexpr int kDst2 = 5;
inline constexpr int kCarry = 8;

/// Operands in slots 0-3, destinations in 4-7, carry in 8.
inline AluOperands StandardOperands() {
  AluOperands operands;
  for (int k = 0; k < 4; ++k) {
    operands.src[k] = Slots::Offset(k);
  }
  operands.dst = Slots::Offset(kDst);
  operands.dst2 = Slots::Offset(kDst2);
  operands.dst3 = Slots::Offset(6);
  operands.dst4 = Slots::Offset(7);
  operands.carry = Slots::Offset(kCarry);
  return operands;
}

inline const std::vector<std::uint64_t>& Edges(ptx::Type type) {
  using List = std::vector<std::uint64_t>;
  static const List kFloat = {
      0,          0x80000000, 1,          0x80000001, 0x007fffff, 0x807fffff, 0x00800000,
      0x80800000, 0x3f800000, 0xbf800000, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000,
      0x7fffffff, 0xffc00001, 0x7f800001, 0x3f000000, 0xbf000000, 0x3fc00000, 0x40200000,
      0xc0200000, 0x4f000000, 0xcf000000, 0x4f800000, 0x5f000000, 0x5f800000, 0x4effffff,
      0x3f7fffff, 0x33800000, 0x477fe000, 0x477ff000, 0x33000000, 0x387fc000, 0x38800000,
      0x437f8000, 0x43800000, 0x42fe0000, 0xc3008000, 0x43e00000, 0x43e80000, 0x7e800001};
  static const List kDouble = {0,
                               0x8000000000000000,
                               1,
                               0x8000000000000001,
                               0x000fffffffffffff,
                               0x0010000000000000,
                               0x3ff0000000000000,
                               0xbff0000000000000,
                               0x7fefffffffffffff,
                               0xffefffffffffffff,
                               0x7ff0000000000000,
                               0xfff0000000000000,
                               0x7ff8000000000000,
                               0xfff8000000000001,
                               0x7ff0000000000001,
                               0x3fe0000000000000,
                               0x4004000000000000,
                               0x41dfffffffc00000,
                               0x41e0000000000000,
                               0xc1e0000000100000,
                               0x43e0000000000000,
                               0xc3e0000000000000,
                               0x43f0000000000000,
                               0x36a0000000000000,
                               0x3810000000000000,
                               0x380fffffe0000000,
                               0x47efffffe0000000,
                               0x47effffff0000000,
                               0x3ff0000010000000,
                               0x40effe0000000000};
  static const List kHalf = {0,      0x8000, 1,      0x8001, 0x03ff, 0x0400, 0x8400,
                             0x3c00, 0xbc00, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00,
                             0x7fff, 0xfe01, 0x7c01, 0x3800, 0x3e00, 0x4100, 0x3bff,
                             0x0200, 0x7f80, 0xff80, 0x7fc0, 0x3f80, 0xbf80};
  static const List kInteger = {0,
                                1,
                                2,
                                3,
                                7,
                                8,
                                15,
                                16,
                                31,
                                32,
                                33,
                                63,
                                64,
                                65,
                                127,
                                128,
                                255,
                                256,
                                0x7fff,
                                0x8000,
                                0xffff,
                                0x10000,
                                0x7fffff,
                                0x800000,
                                0x7fffffff,
                                0x80000000,
                                0xffffffff,
                                0x100000000,
                                0x7fffffffffffffff,
                                0x8000000000000000,
                                ~std::uint64_t{0},
                                ~std::uint64_t{1},
                                0xfffffffffffffff0,
                                0x123456789abcdef0};
  switch (type) {
    case ptx::Type::kF32:
      return kFloat;
    case ptx::Type::kF64:
      return kDouble;
    case ptx::Type::kF16:
    case ptx::Type::kBF16:
      return kHalf;
    default:
      return kInteger;
  }
}

/// Two in three values are edges; the rest are uniform bits, or floats near 1 so that sums and
/// products of them meet.
inline std::uint64_t Draw(ptx::Type type, std::mt19937_64& rng) {
  const std::uint64_t bits = rng();
  const auto& edges = Edges(type);
  if (bits % 3 != 0) {
    return edges[(bits >> 8U) % edges.size()] & LowMask(WidthOf(type));
  }
  const std::uint64_t random = rng();
  const bool near_one = (bits & 0x80U) != 0;
  if (type == ptx::Type::kF32 && near_one) {
    return (random & 0x81ffffffU) | 0x3e000000U;
  }
  if (type == ptx::Type::kF64 && near_one) {
    return (random & 0x803fffffffffffffU) | 0x3fc0000000000000U;
  }
  return random & LowMask(WidthOf(type));
}

struct Drawn {
  Slots slots;
  std::array<Values, kWarpSize> lanes{};
};

inline Drawn DrawWarp(const AluDecode& decode, std::mt19937_64& rng) {
  Drawn drawn;
  for (int lane = 0; lane < kWarpSize; ++lane) {
    for (int k = 0; k < decode.sources; ++k) {
      const std::uint64_t value = Draw(decode.src[k], rng);
      drawn.lanes[static_cast<std::size_t>(lane)][static_cast<std::size_t>(k)] = value;
      drawn.slots.Set(k, decode.src[k], lane, value);
    }
    drawn.slots.Set(kDst, decode.dst, lane, 0x5a5a5a5a5a5a5a5aU);
  }
  return drawn;
}

inline std::string Describe(std::string_view opcode, const Values& values, int sources) {
  std::string text(opcode);
  for (int k = 0; k < sources; ++k) {
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, " %016llx",
                  static_cast<unsigned long long>(values[static_cast<std::size_t>(k)]));
    text += buffer;
  }
  return text;
}

/// One opcode, `warps` random warps, every instruction set.
inline void CheckOpcode(std::string_view opcode, const Oracle& oracle, int warps = 60) {
  for (const AluIsa isa : Isas()) {
    const AluDecode decode = SelectAluFor(isa, Parse(opcode));
    ASSERT_NE(decode.run, nullptr) << opcode;
    std::mt19937_64 rng(std::hash<std::string_view>{}(opcode));
    for (int warp = 0; warp < warps; ++warp) {
      Drawn drawn = DrawWarp(decode, rng);
      const LaneMask mask = warp % 3 == 0   ? kAllLanes
                            : warp % 3 == 1 ? static_cast<LaneMask>(rng())
                                            : LaneMask{1} << (rng() % 32);
      const std::uint64_t before = drawn.slots.Get(kDst, decode.dst, 0);
      decode.run(drawn.slots.data(), StandardOperands(), mask);
      for (int lane = 0; lane < kWarpSize; ++lane) {
        const Values& values = drawn.lanes[static_cast<std::size_t>(lane)];
        const bool active = ((mask >> lane) & 1U) != 0;
        const std::uint64_t expected =
            active ? oracle(values) & LowMask(WidthOf(decode.dst)) : before;
        ASSERT_EQ(drawn.slots.Get(kDst, decode.dst, lane), expected)
            << std::hex << Describe(opcode, values, decode.sources) << " lane " << lane << " isa v"
            << (isa == AluIsa::kV3 ? 3 : 2) << (active ? "" : " (masked out)");
      }
    }
  }
}

inline bool Supported(std::string_view opcode) {
  return SelectAlu(Parse(opcode)).run != nullptr;
}

inline float AsF32(std::uint64_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
}

inline double AsF64(std::uint64_t bits) {
  return std::bit_cast<double>(bits);
}

inline std::uint64_t Bits(float x) {
  return std::bit_cast<std::uint32_t>(x);
}

inline std::uint64_t Bits(double x) {
  return std::bit_cast<std::uint64_t>(x);
}

}  // namespace kernelpro::simt::alu_test
