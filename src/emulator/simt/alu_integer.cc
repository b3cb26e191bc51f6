// SPDX-License-Identifier: Apache-2.0
#include <type_traits>

#include "emulator/simt/alu_families.h"

// Quotient and remainder by zero are all ones, as on the hardware; MIN / -1 wraps to MIN with
// remainder 0.
namespace kernelpro::KP_ALU_ISA {
namespace {

using simt::kHi;
using simt::kLo;
using simt::kSat;
using simt::kWide;

template <class T>
using Unsigned = std::make_unsigned_t<T>;

/// At least 32 bits wide and unsigned: products of 16-bit values must not promote to int.
template <class T>
using Modular = std::conditional_t<(sizeof(T) > 4), u64, u32>;

template <class T>
struct WiderType;

template <>
struct WiderType<u16> {
  using type = u32;
};

template <>
struct WiderType<s16> {
  using type = s32;
};

template <>
struct WiderType<u32> {
  using type = u64;
};

template <>
struct WiderType<s32> {
  using type = s64;
};

template <>
struct WiderType<u64> {
  using type = unsigned __int128;
};

template <>
struct WiderType<s64> {
  using type = __int128;
};
template <class T>
using Wider = typename WiderType<T>::type;

template <class T>
constexpr T Add(T a, T b) {
  return static_cast<T>(static_cast<Modular<T>>(a) + static_cast<Modular<T>>(b));
}

template <class T>
constexpr T Sub(T a, T b) {
  return static_cast<T>(static_cast<Modular<T>>(a) - static_cast<Modular<T>>(b));
}

template <class T>
constexpr T MulLo(T a, T b) {
  return static_cast<T>(static_cast<Modular<T>>(a) * static_cast<Modular<T>>(b));
}

template <class T>
constexpr T MulHi(T a, T b) {
  return static_cast<T>((static_cast<Wider<T>>(a) * static_cast<Wider<T>>(b)) >> (8 * sizeof(T)));
}

template <class T>
constexpr Wider<T> MulWide(T a, T b) {
  if constexpr (std::is_signed_v<T>) {
    return static_cast<Wider<T>>(a) * static_cast<Wider<T>>(b);
  } else {
    return static_cast<Wider<T>>(static_cast<Wider<T>>(a) * static_cast<Wider<T>>(b));
  }
}

/// Quotients of 32-bit integers are exact through double: a quotient that is no integer is at
/// least 2^-32 of itself below the next one. This vectorises; a host division does not.
constexpr u32 QuotientU32(u32 a, u32 b) {
  const double quotient = static_cast<double>(a) / static_cast<double>(b == 0 ? 1U : b);
  const double biased = __builtin_floor(quotient) + 0x1p52;  // the integer is in the low mantissa
  return b == 0 ? ~0U : static_cast<u32>(BitCast<u64>(biased));
}

template <class T>
constexpr T Div(T a, T b) {
  if constexpr (sizeof(T) <= 4) {
    using U = Unsigned<T>;
    if constexpr (std::is_unsigned_v<T>) {
      const u32 quotient = QuotientU32(a, b);
      return static_cast<T>(quotient);
    } else {
      const U magnitude_a = a < 0 ? static_cast<U>(0U - static_cast<U>(a)) : static_cast<U>(a);
      const U magnitude_b = b < 0 ? static_cast<U>(0U - static_cast<U>(b)) : static_cast<U>(b);
      const u32 quotient = QuotientU32(magnitude_a, magnitude_b);
      const u32 result = (a < 0) != (b < 0) ? 0U - quotient : quotient;
      return b == 0 ? static_cast<T>(-1) : static_cast<T>(result);
    }
  } else {
    if (b == 0) {
      return static_cast<T>(~Unsigned<T>{0});
    }
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) {
      return Sub<T>(0, a);
    }
    return a / b;
  }
}

template <class T>
constexpr T Rem(T a, T b) {
  return b == 0 ? static_cast<T>(-1) : Sub<T>(a, MulLo<T>(Div<T>(a, b), b));
}

template <class T>
constexpr T Sad(T a, T b, T c) {
  return Add<T>(c, a < b ? Sub<T>(b, a) : Sub<T>(a, b));
}

constexpr s32 Saturate(s64 value) {
  const s64 low = value < INT32_MIN ? INT32_MIN : value;
  return static_cast<s32>(low > INT32_MAX ? INT32_MAX : low);
}

template <class T>
AluDecode SelectMul(const AluSpec& spec) {
  switch (spec.flags) {
    case kLo:
      return kLanewise<[](T a, T b) -> T { return MulLo<T>(a, b); }>;
    case kHi:
      return kLanewise<[](T a, T b) -> T { return MulHi<T>(a, b); }>;
    case kWide:
      if constexpr (sizeof(T) <= 4) {
        return kLanewise<[](T a, T b) -> Wider<T> { return MulWide<T>(a, b); }>;
      }
      return {};
    default:
      return {};
  }
}

template <class T>
AluDecode SelectMad(const AluSpec& spec) {
  switch (spec.flags) {
    case kLo:
      return kLanewise<[](T a, T b, T c) -> T { return Add<T>(MulLo<T>(a, b), c); }>;
    case kHi:
      return kLanewise<[](T a, T b, T c) -> T { return Add<T>(MulHi<T>(a, b), c); }>;
    case kWide:
      if constexpr (sizeof(T) <= 4) {
        return kLanewise<[](T a, T b, Wider<T> c) -> Wider<T> {
          return Add<Wider<T>>(MulWide<T>(a, b), c);
        }>;
      }
      return {};
    default:
      return {};
  }
}

template <class T>
AluDecode SelectArithmetic(const AluSpec& spec) {
  switch (spec.op) {
    case AluOp::kAdd:
      return kLanewise<[](T a, T b) -> T { return Add<T>(a, b); }>;
    case AluOp::kSub:
      return kLanewise<[](T a, T b) -> T { return Sub<T>(a, b); }>;
    case AluOp::kDiv:
      return kLanewise<[](T a, T b) -> T { return Div<T>(a, b); }>;
    case AluOp::kRem:
      return kLanewise<[](T a, T b) -> T { return Rem<T>(a, b); }>;
    case AluOp::kMin:
      return kLanewise<[](T a, T b) -> T { return a < b ? a : b; }>;
    case AluOp::kMax:
      return kLanewise<[](T a, T b) -> T { return b < a ? a : b; }>;
    case AluOp::kSad:
      return kLanewise<[](T a, T b, T c) -> T { return Sad<T>(a, b, c); }>;
    case AluOp::kNeg:
      if constexpr (std::is_signed_v<T>) {
        return kLanewise<[](T a) -> T { return Sub<T>(0, a); }>;
      }
      return {};
    case AluOp::kAbs:
      if constexpr (std::is_signed_v<T>) {
        return kLanewise<[](T a) -> T { return a < 0 ? Sub<T>(0, a) : a; }>;
      }
      return {};
    default:
      return {};
  }
}

template <class T>
AluDecode SelectTyped(const AluSpec& spec) {
  if (spec.op == AluOp::kMul) {
    return SelectMul<T>(spec);
  }
  if (spec.op == AluOp::kMad) {
    return SelectMad<T>(spec);
  }
  return spec.flags == 0 ? SelectArithmetic<T>(spec) : AluDecode{};
}

AluDecode SelectSaturating(const AluSpec& spec) {
  switch (spec.op) {
    case AluOp::kAdd:
      return kLanewise<[](s32 a, s32 b) -> s32 { return Saturate(s64{a} + b); }>;
    case AluOp::kSub:
      return kLanewise<[](s32 a, s32 b) -> s32 { return Saturate(s64{a} - b); }>;
    default:
      return {};
  }
}

AluDecode SelectMinMaxRelu(const AluSpec& spec) {
  switch (spec.op) {
    case AluOp::kMin:
      return kLanewise<[](s32 a, s32 b) -> s32 {
        const s32 least = a < b ? a : b;
        return least < 0 ? 0 : least;
      }>;
    case AluOp::kMax:
      return kLanewise<[](s32 a, s32 b) -> s32 {
        const s32 most = a < b ? b : a;
        return most < 0 ? 0 : most;
      }>;
    default:
      return {};
  }
}

/// The 48-bit product of the low 24 bits: its low or its high 32 bits.
template <class T, bool kHigh>
constexpr T Mul24(T a, T b) {
  if constexpr (std::is_signed_v<T>) {
    const s64 product = s64{static_cast<s32>(static_cast<u32>(a) << 8U) >> 8} *
                        (static_cast<s32>(static_cast<u32>(b) << 8U) >> 8);
    return static_cast<T>(kHigh ? product >> 16 : product);
  } else {
    const u64 product = u64{a & 0xffffffU} * (b & 0xffffffU);
    return static_cast<T>(kHigh ? product >> 16U : product);
  }
}

template <class T>
AluDecode SelectMul24(const AluSpec& spec) {
  const bool is_mad = spec.op == AluOp::kMad24;
  if (spec.flags == kLo) {
    return is_mad ? kLanewise<[](T a, T b, T c) -> T { return Add<T>(Mul24<T, false>(a, b), c); }>
                  : kLanewise<[](T a, T b) -> T { return Mul24<T, false>(a, b); }>;
  }
  if (spec.flags == kHi) {
    return is_mad ? kLanewise<[](T a, T b, T c) -> T { return Add<T>(Mul24<T, true>(a, b), c); }>
                  : kLanewise<[](T a, T b) -> T { return Mul24<T, true>(a, b); }>;
  }
  return {};
}

template <class A, class B>
constexpr u32 Dp4a(u32 a, u32 b, u32 c) {
  u32 sum = c;
  for (unsigned i = 0; i < 32; i += 8) {
    sum += static_cast<u32>(static_cast<A>(a >> i)) * static_cast<u32>(static_cast<B>(b >> i));
  }
  return sum;
}

/// Two 16-bit elements of a with two 8-bit elements of b: bytes 0 and 1, or 2 and 3.
template <class A, class B, bool kHigh>
constexpr u32 Dp2a(u32 a, u32 b, u32 c) {
  const u32 bytes = kHigh ? b >> 16U : b;
  return c + static_cast<u32>(static_cast<A>(a)) * static_cast<u32>(static_cast<B>(bytes)) +
         static_cast<u32>(static_cast<A>(a >> 16U)) * static_cast<u32>(static_cast<B>(bytes >> 8U));
}

template <class Byte, class Half, class ByteB>
AluDecode SelectDotTyped(const AluSpec& spec) {
  if (spec.op == AluOp::kDp4a && spec.flags == 0) {
    return kLanewise<[](u32 a, u32 b, u32 c) -> u32 { return Dp4a<Byte, ByteB>(a, b, c); }>;
  }
  if (spec.op == AluOp::kDp2a && spec.flags == kLo) {
    return kLanewise<[](u32 a, u32 b, u32 c) -> u32 { return Dp2a<Half, ByteB, false>(a, b, c); }>;
  }
  if (spec.op == AluOp::kDp2a && spec.flags == kHi) {
    return kLanewise<[](u32 a, u32 b, u32 c) -> u32 { return Dp2a<Half, ByteB, true>(a, b, c); }>;
  }
  return {};
}

AluDecode SelectDot(const AluSpec& spec) {
  const auto is = [](ptx::Type type) { return type == ptx::Type::kU32 || type == ptx::Type::kS32; };
  if (spec.types != 2 || !is(spec.type[0]) || !is(spec.type[1])) {
    return {};
  }
  const bool signed_b = spec.type[1] == ptx::Type::kS32;
  if (spec.type[0] == ptx::Type::kS32) {
    return signed_b ? SelectDotTyped<s8, s16, s8>(spec) : SelectDotTyped<s8, s16, u8>(spec);
  }
  return signed_b ? SelectDotTyped<u8, u16, s8>(spec) : SelectDotTyped<u8, u16, u8>(spec);
}

AluDecode SelectSpecial32(const AluSpec& spec) {
  const bool is_signed = spec.type[0] == ptx::Type::kS32;
  if (spec.op == AluOp::kMul24 || spec.op == AluOp::kMad24) {
    return is_signed ? SelectMul24<s32>(spec) : SelectMul24<u32>(spec);
  }
  if (!is_signed) {
    return {};
  }
  if (spec.flags == kSat) {
    return SelectSaturating(spec);
  }
  if (spec.flags == (kHi | kSat) && spec.op == AluOp::kMad) {
    return kLanewise<[](s32 a, s32 b, s32 c) -> s32 {
      return Saturate(s64{MulHi<s32>(a, b)} + c);
    }>;
  }
  return spec.flags == simt::kRelu ? SelectMinMaxRelu(spec) : AluDecode{};
}

}  // namespace

AluDecode SelectInteger(const AluSpec& spec) {
  if (spec.op == AluOp::kDp4a || spec.op == AluOp::kDp2a) {
    return SelectDot(spec);
  }
  if (spec.types != 1) {
    return {};
  }
  AluDecode decode;
  switch (spec.type[0]) {
    case ptx::Type::kU16:
      return SelectTyped<u16>(spec);
    case ptx::Type::kS16:
      return SelectTyped<s16>(spec);
    case ptx::Type::kU32:
      decode = SelectTyped<u32>(spec);
      break;
    case ptx::Type::kS32:
      decode = SelectTyped<s32>(spec);
      break;
    case ptx::Type::kU64:
      return SelectTyped<u64>(spec);
    case ptx::Type::kS64:
      return SelectTyped<s64>(spec);
    default:
      return {};
  }
  return decode.run != nullptr ? decode : SelectSpecial32(spec);
}

}  // namespace kernelpro::KP_ALU_ISA
