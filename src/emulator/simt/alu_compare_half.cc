// SPDX-License-Identifier: Apache-2.0
#include "emulator/simt/alu_compare.h"
#include "emulator/simt/alu_families.h"

// setp and set on f16 and bf16, scalar and in pairs.
namespace kernelpro::KP_ALU_ISA {
namespace {

/// Both halves of the lanes compared: dst from the low ones, dst2 from the high ones.
template <auto Low, auto High, Combine kCombine>
void RunSetpPair(std::byte* registers, const AluOperands& operands, LaneMask mask) {
  const LaneMask low = CompareLanes<Low>(registers, operands);
  const LaneMask high = CompareLanes<High>(registers, operands);
  const LaneMask with = kCombine == Combine::kNone ? 0U : CombineOperand(registers, operands);
  StorePredicate(registers, operands.dst, Combined(kCombine, low, with), mask);
  StorePredicate(registers, operands.dst2, Combined(kCombine, high, with), mask);
}

template <auto Low, auto High, u32 kTrue>
void RunSetPair(std::byte* registers, const AluOperands& operands, LaneMask mask) {
  const LaneMask low = CompareLanes<Low>(registers, operands);
  const LaneMask high = CompareLanes<High>(registers, operands);
  u32* const out = Lanes<u32>(registers, operands.dst);
  for (int i = 0; i < kWarpSize; ++i) {
    const u32 result =
        ((low & kLaneBit[i]) != 0 ? kTrue : 0U) | ((high & kLaneBit[i]) != 0 ? kTrue << 16U : 0U);
    out[i] = (mask & kLaneBit[i]) != 0 ? result : out[i];
  }
}

template <auto Low, auto High, u32 kOne>
simt::AluHandler PairHandlerFor(Form form) {
  if (form.result != Result::kPredicate) {
    if (form.combine != Combine::kNone) {
      return nullptr;
    }
    return form.result == Result::kOne ? &RunSetPair<Low, High, kOne>
                                       : &RunSetPair<Low, High, 0xffffU>;
  }
  switch (form.combine) {
    case Combine::kNone:
      return &RunSetpPair<Low, High, Combine::kNone>;
    case Combine::kAnd:
      return &RunSetpPair<Low, High, Combine::kAnd>;
    case Combine::kOr:
      return &RunSetpPair<Low, High, Combine::kOr>;
    case Combine::kXor:
      return &RunSetpPair<Low, High, Combine::kXor>;
  }
  return nullptr;
}

template <class H, bool kFlush, Compare kCompare, unsigned kShift>
constexpr bool HoldsAt(u32 a, u32 b) {
  return Holds<kCompare>(Comparable<kFlush>(H{static_cast<u16>(a >> kShift)}),
                         Comparable<kFlush>(H{static_cast<u16>(b >> kShift)}));
}

template <class H, bool kFlush>
struct PairComparisons {
  template <Compare kCompare>
  static AluDecode For(Form form) {
    constexpr auto kLow = [](u32 a, u32 b) -> bool {
      return HoldsAt<H, kFlush, kCompare, 0>(a, b);
    };
    constexpr auto kHigh = [](u32 a, u32 b) -> bool {
      return HoldsAt<H, kFlush, kCompare, 16>(a, b);
    };
    return DecodeComparison<kLow>(form, PairHandlerFor<kLow, kHigh, kOneOf<H>>(form));
  }
};

template <class H, bool kFlush>
AluDecode SelectFlushed(const AluSpec& spec, Form form, bool pair) {
  return pair ? SelectFloatComparison<PairComparisons<H, kFlush>>(spec.compare, form)
              : SelectFloatComparison<Comparisons<H, kFlush>>(spec.compare, form);
}

template <class H>
AluDecode SelectTyped(const AluSpec& spec, Form form, bool pair) {
  if (spec.flags == 0) {
    return SelectFlushed<H, false>(spec, form, pair);
  }
  if constexpr (std::is_same_v<H, F16>) {
    return spec.flags == kFtz ? SelectFlushed<H, true>(spec, form, pair) : AluDecode{};
  }
  return {};
}

AluDecode SelectByType(const AluSpec& spec, Type type, Form form) {
  switch (type) {
    case Type::kF16:
      return SelectTyped<F16>(spec, form, false);
    case Type::kF16x2:
      return SelectTyped<F16>(spec, form, true);
    case Type::kBF16:
      return SelectTyped<BF16>(spec, form, false);
    case Type::kBF16x2:
      return SelectTyped<BF16>(spec, form, true);
    default:
      return {};
  }
}

}  // namespace

AluDecode SelectCompareHalf(const AluSpec& spec) {
  if (spec.op == AluOp::kSetp && spec.types == 1) {
    return SelectByType(spec, spec.type[0], {spec.combine, Result::kPredicate});
  }
  if (spec.op != AluOp::kSet || spec.types != 2) {
    return {};
  }
  if (spec.type[0] == Type::kU32 || spec.type[0] == Type::kS32) {
    return SelectByType(spec, spec.type[1], {spec.combine, Result::kOnes});
  }
  return spec.type[0] == spec.type[1]
             ? SelectByType(spec, spec.type[1], {spec.combine, Result::kOne})
             : AluDecode{};
}

}  // namespace kernelpro::KP_ALU_ISA
