// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "emulator/simt/alu_half.h"
#include "emulator/simt/alu_ieee.h"

/// setp and set: a comparison of all lanes, an optional predicate to combine with, a result form.
namespace kernelpro::KP_ALU_ISA {

using ptx::Type;
using simt::Combine;
using simt::Compare;
using simt::kFtz;

constexpr LaneMask Combined(Combine combine, LaneMask value, LaneMask with) {
  switch (combine) {
    case Combine::kAnd:
      return value & with;
    case Combine::kOr:
      return value | with;
    case Combine::kXor:
      return value ^ with;
    case Combine::kNone:
      return value;
  }
  return value;
}

inline LaneMask CombineOperand(std::byte* registers, const AluOperands& operands) {
  const LaneMask with = Predicate(registers, operands.src[2]);
  return operands.src_negated ? ~with : with;
}

/// All lanes compared, not inlined so that the four combinations share it.
template <auto F>
[[gnu::noinline]] LaneMask CompareLanes(std::byte* registers, const AluOperands& operands) {
  return LoopOf<F>::template CompareWith<F>(registers, operands, std::make_index_sequence<2>{});
}

template <auto F, Combine kCombine>
void RunSetp(std::byte* registers, const AluOperands& operands, LaneMask mask) {
  const LaneMask value = CompareLanes<F>(registers, operands);
  const LaneMask with = kCombine == Combine::kNone ? 0U : CombineOperand(registers, operands);
  StorePredicate(registers, operands.dst, Combined(kCombine, value, with), mask);
  if (operands.has_dst2) {
    StorePredicate(registers, operands.dst2, Combined(kCombine, ~value, with), mask);
  }
}

/// set: kTrue where the comparison holds, else 0.
template <auto F, u32 kTrue>
void RunSet(std::byte* registers, const AluOperands& operands, LaneMask mask) {
  const LaneMask value = CompareLanes<F>(registers, operands);
  u32* const out = Lanes<u32>(registers, operands.dst);
  for (int i = 0; i < kWarpSize; ++i) {
    const u32 result = (value & kLaneBit[i]) != 0 ? kTrue : 0U;
    out[i] = (mask & kLaneBit[i]) != 0 ? result : out[i];
  }
}

template <Compare kCompare, class T>
constexpr bool Ordered(T a, T b) {
  switch (kCompare) {
    case Compare::kEq:
    case Compare::kEqu:
      return a == b;
    case Compare::kNe:
    case Compare::kNeu:
      return a != b;
    case Compare::kLt:
    case Compare::kLo:
    case Compare::kLtu:
      return a < b;
    case Compare::kLe:
    case Compare::kLs:
    case Compare::kLeu:
      return a <= b;
    case Compare::kGt:
    case Compare::kHi:
    case Compare::kGtu:
      return a > b;
    case Compare::kGe:
    case Compare::kHs:
    case Compare::kGeu:
      return a >= b;
    default:
      return true;
  }
}

/// Comparisons of a NaN: false without u, true with it.
template <Compare kCompare, class T>
constexpr bool Holds(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return Ordered<kCompare>(a, b);
  } else {
    const bool unordered = IsNan(a) || IsNan(b);
    switch (kCompare) {
      case Compare::kNan:
        return unordered;
      case Compare::kNum:
        return !unordered;
      case Compare::kEqu:
      case Compare::kNeu:
      case Compare::kLtu:
      case Compare::kLeu:
      case Compare::kGtu:
      case Compare::kGeu:
        return unordered || Ordered<kCompare>(a, b);
      default:
        return !unordered && Ordered<kCompare>(a, b);
    }
  }
}

/// Widened to what the host compares.
template <bool kFlush, class T>
constexpr auto Comparable(T a) {
  if constexpr (std::is_same_v<T, F16> || std::is_same_v<T, BF16>) {
    return Widen(Flush<kFlush>(a));
  } else if constexpr (std::is_same_v<T, float>) {
    return Flush<kFlush>(a);
  } else {
    return a;
  }
}

/// What the comparison is for: setp, or set with the value of a true result (set with a predicate
/// to combine with is not supported).
enum class Result : u8 { kPredicate, kOnes, kOne };

struct Form {
  Combine combine = Combine::kNone;
  Result result = Result::kPredicate;
};

/// 1.0 in the format that a set of this type returns.
template <class T>
inline constexpr u32 kOneOf = 0x3f800000U;
template <>
inline constexpr u32 kOneOf<F16> = 0x3c00U;
template <>
inline constexpr u32 kOneOf<BF16> = 0x3f80U;

template <auto F, u32 kOne>
simt::AluHandler HandlerFor(Form form) {
  if (form.result != Result::kPredicate) {
    if (form.combine != Combine::kNone) {
      return nullptr;
    }
    return form.result == Result::kOne ? &RunSet<F, kOne> : &RunSet<F, 0xffffffffU>;
  }
  switch (form.combine) {
    case Combine::kNone:
      return &RunSetp<F, Combine::kNone>;
    case Combine::kAnd:
      return &RunSetp<F, Combine::kAnd>;
    case Combine::kOr:
      return &RunSetp<F, Combine::kOr>;
    case Combine::kXor:
      return &RunSetp<F, Combine::kXor>;
  }
  return nullptr;
}

template <auto F>
AluDecode DecodeComparison(Form form, simt::AluHandler run) {
  AluDecode decode = LoopOf<F>::Decode(run);
  decode.dst = form.result == Result::kPredicate ? Type::kPred : Type::kU32;
  if (form.combine != Combine::kNone) {
    decode.src[decode.sources++] = Type::kPred;
  }
  return decode;
}

template <class T, bool kFlush>
struct Comparisons {
  template <Compare kCompare>
  static AluDecode For(Form form) {
    constexpr auto kHolds = [](T a, T b) -> bool {
      return Holds<kCompare>(Comparable<kFlush>(a), Comparable<kFlush>(b));
    };
    return DecodeComparison<kHolds>(form, HandlerFor<kHolds, kOneOf<T>>(form));
  }
};

/// `C` provides the decoded form of every comparison (Comparisons, or one for pairs).
template <class C>
AluDecode SelectOrdered(Compare compare, Form form) {
  switch (compare) {
    case Compare::kEq:
      return C::template For<Compare::kEq>(form);
    case Compare::kNe:
      return C::template For<Compare::kNe>(form);
    case Compare::kLt:
      return C::template For<Compare::kLt>(form);
    case Compare::kLe:
      return C::template For<Compare::kLe>(form);
    case Compare::kGt:
      return C::template For<Compare::kGt>(form);
    case Compare::kGe:
      return C::template For<Compare::kGe>(form);
    default:
      return {};
  }
}

template <class C>
AluDecode SelectFloatComparison(Compare compare, Form form) {
  switch (compare) {
    case Compare::kEqu:
      return C::template For<Compare::kEqu>(form);
    case Compare::kNeu:
      return C::template For<Compare::kNeu>(form);
    case Compare::kLtu:
      return C::template For<Compare::kLtu>(form);
    case Compare::kLeu:
      return C::template For<Compare::kLeu>(form);
    case Compare::kGtu:
      return C::template For<Compare::kGtu>(form);
    case Compare::kGeu:
      return C::template For<Compare::kGeu>(form);
    case Compare::kNum:
      return C::template For<Compare::kNum>(form);
    case Compare::kNan:
      return C::template For<Compare::kNan>(form);
    default:
      return SelectOrdered<C>(compare, form);
  }
}

}  // namespace kernelpro::KP_ALU_ISA
