// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <bit>
#include <utility>

#include "emulator/simt/decode.h"

namespace kernelpro::simt {

using ptx::Space;
using ptx::Type;

bool Decoder::Fail(std::string why) {
  why_ = std::move(why);
  return false;
}

bool Decoder::IsRegister(const Operand& operand) const {
  return operand.kind == Operand::Kind::kRegister && operand.reg < function_.registers.size();
}

Type Decoder::RegisterType(const Operand& operand) const {
  return function_.registers[operand.reg].type;
}

std::uint32_t Decoder::Bits(std::uint64_t bits, bool is_64) {
  return slots_.Constant(ConstantSlot{.kind = ConstantSlot::Kind::kBits,
                                      .is_64 = is_64,
                                      .bits = is_64 ? bits : bits & 0xffffffffU});
}

std::optional<Symbol> Decoder::FindSymbol(std::string_view name) const {
  if (const auto it = locals_.find(name); it != locals_.end()) {
    return it->second;
  }
  if (const auto it = scope_.symbols.find(name); it != scope_.symbols.end()) {
    return it->second;
  }
  return std::nullopt;
}

std::uint32_t Decoder::SymbolSlot(const Operand& operand, bool is_64) {
  const std::optional<Symbol> symbol = FindSymbol(operand.text);
  if (!symbol) {
    (void)Fail(fmt::format("the address of '{}' is not known", operand.text));
    return kNoSlot;
  }
  const std::uint64_t value = symbol->value + static_cast<std::uint64_t>(operand.offset);
  if (symbol->space == Space::kLocal) {
    return slots_.Constant(
        ConstantSlot{.kind = ConstantSlot::Kind::kLocal, .is_64 = is_64, .bits = value});
  }
  return Bits(value, is_64);
}

namespace {

std::uint64_t FloatBits(const ptx::Operand& operand, Type type) {
  if (operand.float_bits == 64 && type == Type::kF32) {
    return std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(operand.bits)));
  }
  if (operand.float_bits == 32 && type == Type::kF64) {
    return std::bit_cast<std::uint64_t>(
        static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(operand.bits))));
  }
  return operand.bits;
}

}  // namespace

std::uint32_t Decoder::Source(const Operand& operand, Type type) {
  const bool is_64 = Is64(type);
  switch (operand.kind) {
    case Operand::Kind::kRegister: {
      if (!IsRegister(operand)) {
        break;
      }
      const Type declared = RegisterType(operand);
      const bool same = (declared == Type::kPred) == (type == Type::kPred) &&
                        Is64(declared) == is_64 && ptx::SizeOf(declared) <= 8;
      if (!same) {
        (void)Fail("an operand's register has another width than the instruction");
        return kNoSlot;
      }
      return slots_.Register(operand.reg);
    }
    case Operand::Kind::kInteger:
      if (type == Type::kPred) {
        return slots_.Constant(ConstantSlot{.kind = ConstantSlot::Kind::kPredicate,
                                            .bits = operand.bits != 0 ? kAllLanes : 0U});
      }
      return Bits(operand.bits, is_64);
    case Operand::Kind::kFloat:
      return Bits(FloatBits(operand, type), is_64);
    case Operand::Kind::kSpecial:
      if (operand.special == ptx::Special::kOther) {
        (void)Fail(fmt::format("special register {}", operand.text));
        return kNoSlot;
      }
      return slots_.Constant(ConstantSlot{
          .kind = ConstantSlot::Kind::kSpecial, .is_64 = is_64, .special = operand.special});
    case Operand::Kind::kSymbol:
      return SymbolSlot(operand, is_64);
    default:
      break;
  }
  (void)Fail("an operand of a kind that this instruction does not take");
  return kNoSlot;
}

std::uint32_t Decoder::Destination(const Operand& operand, Type type) {
  if (!IsRegister(operand)) {
    (void)Fail("the destination is not a register");
    return kNoSlot;
  }
  return Source(operand, type);
}

}  // namespace kernelpro::simt
