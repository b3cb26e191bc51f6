// SPDX-License-Identifier: Apache-2.0
#include <type_traits>

#include "emulator/simt/alu_families.h"

namespace kernelpro::KP_ALU_ISA {
namespace {

using ptx::Type;

template <class T>
inline constexpr u32 kBits = 8 * sizeof(T);

// PTX shifts clamp at the width; the host's are undefined there.
template <class T>
constexpr T Shl(T a, u32 n) {
  const auto wide = static_cast<std::conditional_t<(sizeof(T) > 4), u64, u32>>(a);
  return n < kBits<T> ? static_cast<T>(wide << (n & (kBits<T> - 1))) : T{0};
}

/// Arithmetic for signed types: any amount past the width leaves the sign.
template <class T>
constexpr T Shr(T a, u32 n) {
  if constexpr (std::is_signed_v<T>) {
    return static_cast<T>(a >> (n < kBits<T> ? n : kBits<T> - 1));
  } else {
    return n < kBits<T> ? static_cast<T>(a >> (n & (kBits<T> - 1))) : T{0};
  }
}

/// The low n bits set, all of them when n reaches the width.
template <class T>
constexpr T LowBits(u32 n) {
  return static_cast<T>(Shl<T>(1, n) - 1U);
}

/// Positions and lengths of fields: PTX gives them 8 bits. 32-bit instructions take them from the
/// low byte; the sequences for 64 bits clamp the whole word instead.
template <class U>
constexpr u32 FieldNumber(u32 n) {
  if constexpr (sizeof(U) == 4) {
    return n & 0xffU;
  } else {
    return n < 64 ? n : 64U;
  }
}

template <class T>
constexpr T Bfi(T a, T b, u32 c, u32 d) {
  const u32 position = FieldNumber<T>(c);
  const T field = Shl<T>(LowBits<T>(FieldNumber<T>(d)), position);
  return (b & ~field) | (Shl<T>(a, position) & field);
}

/// U is unsigned; the field past the top is filled with the sign for kSigned, else with zeros.
template <class U, bool kSigned>
constexpr U Bfe(U a, u32 b, u32 c) {
  const u32 position = FieldNumber<U>(b);
  const u32 length = FieldNumber<U>(c);
  const u32 available = position < kBits<U> ? kBits<U> - position : 0;
  const U field = LowBits<U>(length < available ? length : available);
  const U value = Shr<U>(a, position) & field;
  if constexpr (!kSigned) {
    return value;
  }
  const u32 top = position + length - 1;  // wraps to a huge index when both are 0
  const u32 last = kBits<U> - 1;
  const U sign = (a >> (top < last ? top : last)) & 1U;
  return length != 0 && sign != 0 ? value | ~field : value;
}

template <class U>
constexpr u32 CountLeadingZeros(U a) {
  if (a == 0) {
    return kBits<U>;
  }
  return static_cast<u32>(sizeof(U) == 8 ? __builtin_clzll(a) : __builtin_clz(static_cast<u32>(a)));
}

template <class T, bool kShiftAmount>
constexpr u32 Bfind(T a) {
  using U = std::make_unsigned_t<T>;
  const U value = a < 0 ? ~static_cast<U>(a) : static_cast<U>(a);
  const u32 zeros = CountLeadingZeros<U>(value);
  const u32 found = kShiftAmount ? zeros : kBits<T> - 1 - zeros;
  return value == 0 ? ~0U : found;
}

constexpr u32 ReverseBytes(u32 a) {
  return __builtin_bswap32(a);
}

constexpr u64 ReverseBytes(u64 a) {
  return __builtin_bswap64(a);
}

template <class U>
constexpr U Brev(U a) {
  constexpr U kOnes = static_cast<U>(~U{0});
  U r = ReverseBytes(a);
  r = ((r >> 4U) & (kOnes / 17)) | ((r & (kOnes / 17)) << 4U);
  r = ((r >> 2U) & (kOnes / 5)) | ((r & (kOnes / 5)) << 2U);
  return ((r >> 1U) & (kOnes / 3)) | ((r & (kOnes / 3)) << 1U);
}

constexpr u32 Popc(u32 a) {
  a -= (a >> 1U) & 0x55555555U;
  a = (a & 0x33333333U) + ((a >> 2U) & 0x33333333U);
  return (((a + (a >> 4U)) & 0x0f0f0f0fU) * 0x01010101U) >> 24U;
}

constexpr u32 Popc(u64 a) {
  return Popc(static_cast<u32>(a)) + Popc(static_cast<u32>(a >> 32U));
}

/// Funnel shift of the 64-bit value b:a.
template <bool kLeft, bool kClamp>
constexpr u32 Funnel(u32 a, u32 b, u32 c) {
  const u64 pair = a | (u64{b} << 32U);
  const u32 n = kClamp ? (c < 32 ? c : 32U) : c & 31U;
  return static_cast<u32>(kLeft ? (pair << n) >> 32U : pair >> n);
}

constexpr u32 Lop3(u32 a, u32 b, u32 c, u32 table) {
  u32 result = 0;
  for (u32 term = 0; term < 8; ++term) {
    const u32 selected = 0U - ((table >> term) & 1U);
    result |= selected & ((term & 4U) != 0 ? a : ~a) & ((term & 2U) != 0 ? b : ~b) &
              ((term & 1U) != 0 ? c : ~c);
  }
  return result;
}

/// Nibbles of `selectors` name bytes of b:a for bytes 0 to 3 of the result; bit 3 replicates the
/// chosen byte's sign instead.
constexpr u32 Permute(u32 a, u32 b, u32 selectors) {
  u32 result = 0;
  for (u32 k = 0; k < 4; ++k) {
    const u32 selector = selectors >> (4 * k);
    const u32 word = (selector & 4U) != 0 ? b : a;
    const u32 byte = (word >> (8U * (selector & 3U))) & 0xffU;
    const u32 sign = (byte & 0x80U) != 0 ? 0xffU : 0U;
    result |= ((selector & 8U) != 0 ? sign : byte) << (8 * k);
  }
  return result;
}

/// The named prmt modes as four selector words, one for each value of c & 3.
template <u32 kSelect0, u32 kSelect1, u32 kSelect2, u32 kSelect3>
AluDecode PermuteMode() {
  return kLanewise<[](u32 a, u32 b, u32 c) -> u32 {
    const u32 low = (c & 1U) != 0 ? kSelect1 : kSelect0;
    const u32 high = (c & 1U) != 0 ? kSelect3 : kSelect2;
    return Permute(a, b, (c & 2U) != 0 ? high : low);
  }>;
}

AluDecode SelectPermute(const AluSpec& spec) {
  switch (spec.flags) {
    case 0:
      return kLanewise<[](u32 a, u32 b, u32 c) -> u32 { return Permute(a, b, c); }>;
    case simt::kF4e:
      return PermuteMode<0x3210, 0x4321, 0x5432, 0x6543>();
    case simt::kB4e:
      return PermuteMode<0x5670, 0x6701, 0x7012, 0x0123>();
    case simt::kRc8:
      return PermuteMode<0x0000, 0x1111, 0x2222, 0x3333>();
    case simt::kEcl:
      return PermuteMode<0x3210, 0x3211, 0x3222, 0x3333>();
    case simt::kEcr:
      return PermuteMode<0x0000, 0x1110, 0x2210, 0x3210>();
    case simt::kRc16:
      return PermuteMode<0x1010, 0x3232, 0x1010, 0x3232>();
    default:
      return {};
  }
}

AluDecode SelectFunnel(const AluSpec& spec) {
  switch (spec.flags) {
    case simt::kLeft | simt::kWrap:
      return kLanewise<[](u32 a, u32 b, u32 c) -> u32 { return Funnel<true, false>(a, b, c); }>;
    case simt::kLeft | simt::kClamp:
      return kLanewise<[](u32 a, u32 b, u32 c) -> u32 { return Funnel<true, true>(a, b, c); }>;
    case simt::kRight | simt::kWrap:
      return kLanewise<[](u32 a, u32 b, u32 c) -> u32 { return Funnel<false, false>(a, b, c); }>;
    case simt::kRight | simt::kClamp:
      return kLanewise<[](u32 a, u32 b, u32 c) -> u32 { return Funnel<false, true>(a, b, c); }>;
    default:
      return {};
  }
}

/// b32 and b64 only.
template <class U>
AluDecode SelectCounting(const AluSpec& spec) {
  switch (spec.op) {
    case AluOp::kBfi:
      return kLanewise<[](U a, U b, u32 c, u32 d) -> U { return Bfi<U>(a, b, c, d); }>;
    case AluOp::kBrev:
      return kLanewise<[](U a) -> U { return Brev(a); }>;
    case AluOp::kClz:
      return kLanewise<[](U a) -> u32 { return CountLeadingZeros<U>(a); }>;
    case AluOp::kPopc:
      return kLanewise<[](U a) -> u32 { return Popc(a); }>;
    default:
      return {};
  }
}

template <class U>
AluDecode SelectLogic(const AluSpec& spec) {
  switch (spec.op) {
    case AluOp::kAnd:
      return kLanewise<[](U a, U b) -> U { return a & b; }>;
    case AluOp::kOr:
      return kLanewise<[](U a, U b) -> U { return a | b; }>;
    case AluOp::kXor:
      return kLanewise<[](U a, U b) -> U { return a ^ b; }>;
    case AluOp::kNot:
      return kLanewise<[](U a) -> U { return static_cast<U>(~a); }>;
    case AluOp::kCnot:
      return kLanewise<[](U a) -> U { return a == 0 ? U{1} : U{0}; }>;
    case AluOp::kShl:
      return kLanewise<[](U a, u32 n) -> U { return Shl<U>(a, n); }>;
    case AluOp::kShr:
      return kLanewise<[](U a, u32 n) -> U { return Shr<U>(a, n); }>;
    default:
      break;
  }
  if constexpr (sizeof(U) >= 4) {
    return SelectCounting<U>(spec);
  }
  return {};
}

/// Instructions on .u and .s types: right shifts, and fields of 32 and 64 bits.
template <class T>
AluDecode SelectField(const AluSpec& spec) {
  if (spec.op == AluOp::kShr && spec.flags == 0) {
    return kLanewise<[](T a, u32 n) -> T { return Shr<T>(a, n); }>;
  }
  if constexpr (sizeof(T) >= 4) {
    using U = std::make_unsigned_t<T>;
    if (spec.op == AluOp::kBfe && spec.flags == 0) {
      return kLanewise<[](U a, u32 b, u32 c) -> U { return Bfe<U, std::is_signed_v<T>>(a, b, c); }>;
    }
    if (spec.op == AluOp::kBfind && spec.flags == 0) {
      return kLanewise<[](T a) -> u32 { return Bfind<T, false>(a); }>;
    }
    if (spec.op == AluOp::kBfind && spec.flags == simt::kShiftamt) {
      return kLanewise<[](T a) -> u32 { return Bfind<T, true>(a); }>;
    }
  }
  return {};
}

AluDecode SelectB32(const AluSpec& spec) {
  switch (spec.op) {
    case AluOp::kShf:
      return SelectFunnel(spec);
    case AluOp::kPrmt:
      return SelectPermute(spec);
    case AluOp::kLop3:
      return spec.flags == 0
                 ? kLanewise<[](u32 a, u32 b, u32 c, u32 d) -> u32 { return Lop3(a, b, c, d); }>
                 : AluDecode{};
    default:
      return spec.flags == 0 ? SelectLogic<u32>(spec) : AluDecode{};
  }
}

}  // namespace

AluDecode SelectBits(const AluSpec& spec) {
  if (spec.types != 1) {
    return {};
  }
  switch (spec.type[0]) {
    case Type::kB16:
      return spec.flags == 0 ? SelectLogic<u16>(spec) : AluDecode{};
    case Type::kB32:
      return SelectB32(spec);
    case Type::kB64:
      return spec.flags == 0 ? SelectLogic<u64>(spec) : AluDecode{};
    case Type::kU16:
      return SelectField<u16>(spec);
    case Type::kS16:
      return SelectField<s16>(spec);
    case Type::kU32:
      return SelectField<u32>(spec);
    case Type::kS32:
      return SelectField<s32>(spec);
    case Type::kU64:
      return SelectField<u64>(spec);
    case Type::kS64:
      return SelectField<s64>(spec);
    default:
      return {};
  }
}

}  // namespace kernelpro::KP_ALU_ISA
