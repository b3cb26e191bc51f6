// SPDX-License-Identifier: Apache-2.0
#include "emulator/simt/alu_compare.h"

#include <type_traits>

#include "emulator/simt/alu_families.h"

namespace kernelpro::KP_ALU_ISA {
namespace {

/// lo, ls, hi, hs are lt, le, gt, ge of unsigned types.
Compare OfUnsigned(Compare compare) {
  switch (compare) {
    case Compare::kLo:
      return Compare::kLt;
    case Compare::kLs:
      return Compare::kLe;
    case Compare::kHi:
      return Compare::kGt;
    case Compare::kHs:
      return Compare::kGe;
    default:
      return compare;
  }
}

template <class T>
AluDecode SelectInteger(const AluSpec& spec, Form form) {
  const Compare compare = std::is_unsigned_v<T> ? OfUnsigned(spec.compare) : spec.compare;
  return spec.flags == 0 ? SelectOrdered<Comparisons<T, false>>(compare, form) : AluDecode{};
}

template <class T>
AluDecode SelectBitwise(const AluSpec& spec, Form form) {
  const bool allowed = spec.compare == Compare::kEq || spec.compare == Compare::kNe;
  return allowed ? SelectInteger<T>(spec, form) : AluDecode{};
}

AluDecode SelectByType(const AluSpec& spec, Type type, Form form) {
  switch (type) {
    case Type::kB16:
      return SelectBitwise<u16>(spec, form);
    case Type::kB32:
      return SelectBitwise<u32>(spec, form);
    case Type::kB64:
      return SelectBitwise<u64>(spec, form);
    case Type::kU16:
      return SelectInteger<u16>(spec, form);
    case Type::kS16:
      return SelectInteger<s16>(spec, form);
    case Type::kU32:
      return SelectInteger<u32>(spec, form);
    case Type::kS32:
      return SelectInteger<s32>(spec, form);
    case Type::kU64:
      return SelectInteger<u64>(spec, form);
    case Type::kS64:
      return SelectInteger<s64>(spec, form);
    case Type::kF32:
      if (spec.flags == kFtz) {
        return SelectFloatComparison<Comparisons<float, true>>(spec.compare, form);
      }
      return spec.flags == 0 ? SelectFloatComparison<Comparisons<float, false>>(spec.compare, form)
                             : AluDecode{};
    case Type::kF64:
      return spec.flags == 0 ? SelectFloatComparison<Comparisons<double, false>>(spec.compare, form)
                             : AluDecode{};
    default:
      return {};
  }
}

template <class T>
constexpr bool Tests(T a, u64 property) {
  const T magnitude = AbsBits(a);
  constexpr T kLeastNormal = sizeof(T) == 8 ? static_cast<T>(0x1p-1022) : static_cast<T>(0x1p-126);
  const bool finite = magnitude < static_cast<T>(__builtin_inf());
  switch (property) {
    case simt::kFinite:
      return finite;
    case simt::kInfinite:
      return !finite && !IsNan(a);
    case simt::kNumber:
      return !IsNan(a);
    case simt::kNotANumber:
      return IsNan(a);
    case simt::kNormal:
      return finite && (magnitude >= kLeastNormal || magnitude == 0);  // zero counts as normal
    default:
      return magnitude > 0 && magnitude < kLeastNormal;
  }
}

template <class T, u64 kProperty>
AluDecode TestFor() {
  return kLanewise<[](T a) -> bool { return Tests(a, kProperty); }>;
}

template <class T>
AluDecode SelectTest(const AluSpec& spec) {
  switch (spec.flags) {
    case simt::kFinite:
      return TestFor<T, simt::kFinite>();
    case simt::kInfinite:
      return TestFor<T, simt::kInfinite>();
    case simt::kNumber:
      return TestFor<T, simt::kNumber>();
    case simt::kNotANumber:
      return TestFor<T, simt::kNotANumber>();
    case simt::kNormal:
      return TestFor<T, simt::kNormal>();
    case simt::kSubnormal:
      return TestFor<T, simt::kSubnormal>();
    default:
      return {};
  }
}

}  // namespace

AluDecode SelectCompare(const AluSpec& spec) {
  if (spec.op == AluOp::kTestp && spec.types == 1) {
    return spec.type[0] == Type::kF32   ? SelectTest<float>(spec)
           : spec.type[0] == Type::kF64 ? SelectTest<double>(spec)
                                        : AluDecode{};
  }
  if (spec.op == AluOp::kSetp && spec.types == 1) {
    return SelectByType(spec, spec.type[0], {spec.combine, Result::kPredicate});
  }
  if (spec.op != AluOp::kSet || spec.types != 2) {
    return {};
  }
  switch (spec.type[0]) {
    case Type::kU32:
    case Type::kS32:
      return SelectByType(spec, spec.type[1], {spec.combine, Result::kOnes});
    case Type::kF32:
      return SelectByType(spec, spec.type[1], {spec.combine, Result::kOne});
    default:
      return {};
  }
}

}  // namespace kernelpro::KP_ALU_ISA
