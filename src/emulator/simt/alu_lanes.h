// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "emulator/simt/alu_spec.h"
#include "emulator/simt/handler.h"

/// How a scalar function becomes a 32-lane handler. Everything that is compiled once per
/// instruction set (KP_ALU_ISA is alu_v2 or alu_v3) lives in that namespace, and nothing here calls
/// a function template of the standard library at run time: the linker could otherwise keep the
/// AVX2 copy of a shared inline function for the baseline as well.
namespace kernelpro::KP_ALU_ISA {

using simt::AluDecode;
using simt::AluFlag;
using simt::AluOp;
using simt::AluOperands;
using simt::AluSpec;
using simt::kAllLanes;
using simt::kWarpSize;
using simt::LaneMask;

using s8 = std::int8_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;
using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

struct F16 {
  u16 bits;
};

struct BF16 {
  u16 bits;
};

template <class To, class From>
constexpr To BitCast(From value) {
  return __builtin_bit_cast(To, value);
}

/// A lane of a slot: 4 bytes up to 32 bits, else 8.
template <class T>
using Storage = std::conditional_t<(sizeof(T) > 4), u64, u32>;

template <class T>
constexpr T FromLane(Storage<T> lane) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(lane);
  } else if constexpr (sizeof(T) == 2) {
    return T{static_cast<u16>(lane)};
  } else {
    return BitCast<T>(lane);
  }
}

/// Sub-word integers are extended by their sign, as cvt into a wider register requires.
template <class T>
constexpr Storage<T> ToLane(T value) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<Storage<T>>(value);
  } else if constexpr (sizeof(T) == 2) {
    return value.bits;
  } else {
    return BitCast<Storage<T>>(value);
  }
}

alignas(128) inline constexpr u32 kLaneBit[kWarpSize] = {
    1U << 0U,  1U << 1U,  1U << 2U,  1U << 3U,  1U << 4U,  1U << 5U,  1U << 6U,  1U << 7U,
    1U << 8U,  1U << 9U,  1U << 10U, 1U << 11U, 1U << 12U, 1U << 13U, 1U << 14U, 1U << 15U,
    1U << 16U, 1U << 17U, 1U << 18U, 1U << 19U, 1U << 20U, 1U << 21U, 1U << 22U, 1U << 23U,
    1U << 24U, 1U << 25U, 1U << 26U, 1U << 27U, 1U << 28U, 1U << 29U, 1U << 30U, 1U << 31U};

template <class T>
Storage<T>* Lanes(std::byte* registers, u32 offset) {
  return reinterpret_cast<Storage<T>*>(registers + offset);
}

inline LaneMask& Predicate(std::byte* registers, u32 offset) {
  return *reinterpret_cast<LaneMask*>(registers + offset);
}

inline void StorePredicate(std::byte* registers, u32 offset, LaneMask value, LaneMask mask) {
  LaneMask& predicate = Predicate(registers, offset);
  predicate = (predicate & ~mask) | (value & mask);
}

/// A source operand as the loops read it.
template <class T>
class Source {
 public:
  Source(std::byte* registers, const AluOperands& operands, std::size_t k)
      : lanes_(Lanes<T>(registers, operands.src[k])) {}

  T operator[](int lane) const { return FromLane<T>(lanes_[lane]); }

 private:
  const Storage<T>* lanes_;
};

template <>
class Source<bool> {
 public:
  Source(std::byte* registers, const AluOperands& operands, std::size_t k)
      : mask_(Predicate(registers, operands.src[k]) ^ (operands.src_negated ? kAllLanes : 0U)) {}

  bool operator[](int lane) const { return (mask_ & kLaneBit[lane]) != 0; }

 private:
  LaneMask mask_;
};

template <class T>
constexpr ptx::Type TypeOf() {
  using ptx::Type;
  if constexpr (std::is_same_v<T, bool>) {
    return Type::kPred;
  } else if constexpr (std::is_same_v<T, float>) {
    return Type::kF32;
  } else if constexpr (std::is_same_v<T, double>) {
    return Type::kF64;
  } else if constexpr (std::is_same_v<T, F16>) {
    return Type::kF16;
  } else if constexpr (std::is_same_v<T, BF16>) {
    return Type::kBF16;
  } else if constexpr (sizeof(T) == 1) {
    return std::is_signed_v<T> ? Type::kS8 : Type::kU8;
  } else if constexpr (sizeof(T) == 2) {
    return std::is_signed_v<T> ? Type::kS16 : Type::kU16;
  } else if constexpr (sizeof(T) == 4) {
    return std::is_signed_v<T> ? Type::kS32 : Type::kU32;
  } else {
    return std::is_signed_v<T> ? Type::kS64 : Type::kU64;
  }
}

/// Loops over the signature of a scalar function object.
template <class Signature>
struct LaneLoop;

template <class C, class R, class... A>
struct LaneLoop<R (C::*)(A...) const> {
  template <auto F, bool kFull, class... S>
  static void Store(std::byte* registers, u32 dst, LaneMask mask, S... source) {
    Storage<R>* const out = Lanes<R>(registers, dst);
    // Lanes are independent: a destination is either a source's own slot or disjoint from it.
#pragma GCC ivdep
    for (int i = 0; i < kWarpSize; ++i) {
      const Storage<R> value = ToLane<R>(F(source[i]...));
      if constexpr (kFull) {
        out[i] = value;
      } else {
        out[i] = (mask & kLaneBit[i]) != 0 ? value : out[i];
      }
    }
  }

  template <auto F, class... S>
  static LaneMask Collect(S... source) {
    LaneMask result = 0;
    for (int i = 0; i < kWarpSize; ++i) {
      result |= F(source[i]...) ? kLaneBit[i] : 0U;
    }
    return result;
  }

  template <auto F, std::size_t... K>
  static void RunWith(std::byte* registers, const AluOperands& operands, LaneMask mask,
                      std::index_sequence<K...> /*k*/) {
    if constexpr (std::is_same_v<R, bool>) {
      StorePredicate(registers, operands.dst, Collect<F>(Source<A>(registers, operands, K)...),
                     mask);
    } else if (mask == kAllLanes) {
      Store<F, true>(registers, operands.dst, mask, Source<A>(registers, operands, K)...);
    } else {
      Store<F, false>(registers, operands.dst, mask, Source<A>(registers, operands, K)...);
    }
  }

  template <auto F>
  static void Run(std::byte* registers, const AluOperands& operands, LaneMask mask) {
    RunWith<F>(registers, operands, mask, std::index_sequence_for<A...>{});
  }

  template <auto F, std::size_t... K>
  static LaneMask CompareWith(std::byte* registers, const AluOperands& operands,
                              std::index_sequence<K...> /*k*/) {
    return Collect<F>(Source<A>(registers, operands, K)...);
  }

  static constexpr AluDecode Decode(simt::AluHandler run) {
    AluDecode decode;
    decode.run = run;
    decode.dst = TypeOf<R>();
    constexpr ptx::Type kSources[] = {TypeOf<A>()...};
    for (const ptx::Type type : kSources) {
      decode.src[decode.sources++] = type;
    }
    return decode;
  }
};

template <auto F>
using LoopOf = LaneLoop<decltype(&decltype(F)::operator())>;

/// The decoded form of the instruction that applies F to every lane; operand types are F's.
template <auto F>
inline constexpr AluDecode kLanewise = LoopOf<F>::Decode(&LoopOf<F>::template Run<F>);

}  // namespace kernelpro::KP_ALU_ISA
