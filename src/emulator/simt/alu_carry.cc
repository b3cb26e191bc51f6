// SPDX-License-Identifier: Apache-2.0
#include <type_traits>

#include "emulator/simt/alu_families.h"

// Extended-precision arithmetic through CC.CF: a lane mask in the slot AluOperands::carry. After a
// subtraction the flag is the borrow.
namespace kernelpro::KP_ALU_ISA {
namespace {

using simt::kCc;

template <class U>
struct Sum {
  U value;
  bool carry;
};

/// F(a, b, c, carry in) -> Sum; c is 0 for two sources.
template <class U, auto F, int kSources, bool kReads, bool kWrites>
void RunCarry(std::byte* registers, const AluOperands& operands, LaneMask mask) {
  const Source<U> a(registers, operands, 0);
  const Source<U> b(registers, operands, 1);
  const Source<U> c(registers, operands, 2);
  const LaneMask carry_in = kReads ? Predicate(registers, operands.carry) : 0U;
  U* const out = Lanes<U>(registers, operands.dst);
  LaneMask carry_out = 0;
  for (int i = 0; i < kWarpSize; ++i) {
    const Sum<U> sum = F(a[i], b[i], kSources == 3 ? c[i] : U{0}, (carry_in & kLaneBit[i]) != 0);
    carry_out |= sum.carry ? kLaneBit[i] : 0U;
    out[i] = (mask & kLaneBit[i]) != 0 ? sum.value : out[i];
  }
  if constexpr (kWrites) {
    StorePredicate(registers, operands.carry, carry_out, mask);
  }
}

template <class U, auto F, int kSources, bool kReads>
AluDecode Carrying(bool writes) {
  AluDecode decode;
  decode.run =
      writes ? &RunCarry<U, F, kSources, kReads, true> : &RunCarry<U, F, kSources, kReads, false>;
  decode.dst = TypeOf<U>();
  for (int k = 0; k < kSources; ++k) {
    decode.src[k] = TypeOf<U>();
  }
  decode.sources = kSources;
  decode.uses_carry = true;
  return decode;
}

template <class U>
constexpr Sum<U> AddCarry(U a, U b, bool carry) {
  const U partial = a + b;
  const U value = partial + (carry ? U{1} : U{0});
  return {value, partial < a || value < partial};
}

template <class U>
constexpr Sum<U> SubBorrow(U a, U b, bool borrow) {
  const U partial = a - b;
  const U value = partial - (borrow ? U{1} : U{0});
  return {value, a < b || partial < value};
}

/// T carries the signedness that the high half depends on.
template <class T, bool kHigh>
constexpr std::make_unsigned_t<T> ProductHalf(std::make_unsigned_t<T> a,
                                              std::make_unsigned_t<T> b) {
  using U = std::make_unsigned_t<T>;
  if constexpr (!kHigh) {
    return a * b;
  } else if constexpr (sizeof(T) == 4) {
    using W = std::conditional_t<std::is_signed_v<T>, s64, u64>;
    return static_cast<U>((W{static_cast<T>(a)} * W{static_cast<T>(b)}) >> 32);
  } else {
    using W = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
    return static_cast<U>((W{static_cast<T>(a)} * W{static_cast<T>(b)}) >> 64);
  }
}

template <class T, bool kHigh, bool kReads>
AluDecode MultiplyAdd(bool writes) {
  using U = std::make_unsigned_t<T>;
  return Carrying<U,
                  [](U a, U b, U c, bool carry) {
                    return AddCarry<U>(ProductHalf<T, kHigh>(a, b), c, carry);
                  },
                  3, kReads>(writes);
}

template <class T>
AluDecode SelectTyped(const AluSpec& spec) {
  using U = std::make_unsigned_t<T>;
  constexpr auto kAdd = [](U a, U b, U, bool carry) { return AddCarry<U>(a, b, carry); };
  constexpr auto kSub = [](U a, U b, U, bool borrow) { return SubBorrow<U>(a, b, borrow); };
  const bool writes = spec.Has(kCc);
  const u64 half = spec.flags & ~u64{kCc};
  const bool is_half = half == simt::kLo || half == simt::kHi;
  switch (spec.op) {
    case AluOp::kAdd:
      return writes && half == 0 ? Carrying<U, kAdd, 2, false>(true) : AluDecode{};
    case AluOp::kSub:
      return writes && half == 0 ? Carrying<U, kSub, 2, false>(true) : AluDecode{};
    case AluOp::kAddc:
      return half == 0 ? Carrying<U, kAdd, 2, true>(writes) : AluDecode{};
    case AluOp::kSubc:
      return half == 0 ? Carrying<U, kSub, 2, true>(writes) : AluDecode{};
    case AluOp::kMad:
      if (!writes || !is_half) {
        return {};
      }
      return half == simt::kHi ? MultiplyAdd<T, true, false>(true)
                               : MultiplyAdd<T, false, false>(true);
    case AluOp::kMadc:
      if (!is_half) {
        return {};
      }
      return half == simt::kHi ? MultiplyAdd<T, true, true>(writes)
                               : MultiplyAdd<T, false, true>(writes);
    default:
      return {};
  }
}

}  // namespace

AluDecode SelectCarry(const AluSpec& spec) {
  if (spec.types != 1) {
    return {};
  }
  switch (spec.type[0]) {
    case ptx::Type::kU32:
      return SelectTyped<u32>(spec);
    case ptx::Type::kS32:
      return SelectTyped<s32>(spec);
    case ptx::Type::kU64:
      return SelectTyped<u64>(spec);
    case ptx::Type::kS64:
      return SelectTyped<s64>(spec);
    default:
      return {};
  }
}

}  // namespace kernelpro::KP_ALU_ISA
