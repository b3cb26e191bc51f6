// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "emulator/simt/decode.h"
#include "emulator/simt/operations.h"

namespace kernelpro::simt {

using ptx::Space;
using ptx::Type;

namespace {

bool ParseSpace(std::string_view part, Space* space) {
  struct Entry {
    std::string_view name;
    Space space;
  };

  static constexpr Entry kSpaces[] = {
      {"global", Space::kGlobal},      {"shared", Space::kShared},
      {"shared::cta", Space::kShared}, {"local", Space::kLocal},
      {"const", Space::kConst},        {"param", Space::kParam},
      {"param::entry", Space::kParam}, {"param::func", Space::kParam}};
  for (const Entry& entry : kSpaces) {
    if (entry.name == part) {
      *space = entry.space;
      return true;
    }
  }
  return false;
}

/// Cache, eviction and prefetch hints: they change neither the value nor what is counted.
bool IsHint(std::string_view part) {
  static constexpr std::string_view kHints[] = {"ca",
                                                "cs",
                                                "lu",
                                                "wb",
                                                "wt",
                                                "nc",
                                                "weak",
                                                "cta",
                                                "gpu",
                                                "sys",
                                                "cluster",
                                                "L1::no_allocate",
                                                "L1::evict_normal",
                                                "L1::evict_unchanged",
                                                "L1::evict_first",
                                                "L1::evict_last",
                                                "L2::64B",
                                                "L2::128B",
                                                "L2::256B",
                                                "L2::evict_normal",
                                                "L2::evict_first",
                                                "L2::evict_last"};
  return std::ranges::find(kHints, part) != std::end(kHints);
}

bool IsStrong(std::string_view part) {
  return part == "volatile" || part == "relaxed" || part == "acquire" || part == "release" ||
         part == "acq_rel";
}

}  // namespace

bool Decoder::ReadModifiers(const Instruction& in, Access& access) {
  for (std::size_t i = 1; i + 1 < in.parts.size(); ++i) {
    const std::string& part = in.parts[i];
    if (ParseSpace(part, &access.space) || IsHint(part)) {
      continue;
    }
    if (IsStrong(part)) {
      access.strong = true;
      access.skip_l1 = true;
    } else if (part == "cg" || part == "cv") {
      access.skip_l1 = true;
    } else if (part == "v2" || part == "v4") {
      access.elements = part == "v2" ? 2 : 4;
    } else {
      return Fail(fmt::format("the modifier .{}", part));
    }
  }
  return true;
}

bool Decoder::Address(const Operand& operand, Access& access) {
  if (operand.kind != Operand::Kind::kAddress) {
    return Fail("an address operand was expected");
  }
  access.offset = static_cast<std::uint64_t>(operand.offset);
  if (operand.reg != Operand::kNoRegister) {
    access.address_64 = Is64(function_.registers[operand.reg].type);
    access.address = slots_.Register(operand.reg);
    return true;
  }
  access.address_64 = true;
  if (operand.text.empty()) {
    access.address = Bits(0, true);
    return true;
  }
  Operand symbol = operand;
  symbol.offset = 0;
  access.address = SymbolSlot(symbol, true);
  return access.address != kNoSlot;
}

bool Decoder::Values(const Operand& operand, Access& access, bool destination) {
  const bool vector = operand.kind == Operand::Kind::kVector;
  if (vector != (access.elements > 1) || (vector && operand.elements.size() != access.elements)) {
    return Fail("the number of values does not fit the vector width");
  }
  for (std::uint32_t i = 0; i < access.elements; ++i) {
    const Operand& value = vector ? operand.elements[i] : operand;
    if (destination && value.kind == Operand::Kind::kSink) {
      continue;
    }
    Type type = access.width == 8 ? Type::kB64 : Type::kB32;
    if (IsRegister(value)) {
      const Type declared = RegisterType(value);
      if (declared == Type::kPred || ptx::SizeOf(declared) > 8 ||
          (access.width == 8 && !Is64(declared))) {
        return Fail("the value's register does not fit the access width");
      }
      type = Is64(declared) ? Type::kB64 : Type::kB32;
    } else if (destination) {
      return Fail("the destination is not a register");
    } else if (value.kind == Operand::Kind::kFloat) {
      type = access.type;
    }
    access.value[i] = Source(value, type);
    access.value_64[i] = Is64(type);
    if (access.value[i] == kNoSlot) {
      return false;
    }
  }
  return true;
}

bool Decoder::LoadStore(const Instruction& in, Decoded& d) {
  Access access;
  access.is_store = in.parts[0] == "st";
  access.type = ptx::ParseType(in.parts.back());
  access.width = static_cast<std::uint8_t>(ptx::SizeOf(access.type));
  access.sign_extend = ptx::IsSigned(access.type);
  if (access.width == 0 || access.width > 8 || in.operands.size() != 2) {
    return Fail("this access type");
  }
  if (!ReadModifiers(in, access)) {
    return false;
  }
  if (access.width * access.elements > 16) {
    return Fail("accesses of more than 16 bytes a thread");
  }
  const Operand& address = access.is_store ? in.operands[0] : in.operands[1];
  const Operand& value = access.is_store ? in.operands[1] : in.operands[0];
  if (!Values(value, access, !access.is_store)) {
    return false;
  }
  d.kind = Kind::kOperation;
  const bool symbolic = address.reg == Operand::kNoRegister && !address.text.empty();
  if (access.space == Space::kParam && symbolic) {
    access.offset = static_cast<std::uint64_t>(address.offset);
    return Parameter(in, d, access);
  }
  if (!Address(address, access)) {
    return false;
  }
  d.operation = SelectAccess(access);
  d.extra = static_cast<std::uint32_t>(out_.accesses.size());
  out_.accesses.push_back(access);
  return d.operation != nullptr || Fail("this access");
}

bool Decoder::Parameter(const Instruction& in, Decoded& d, Access access) {
  const Operand& address = access.is_store ? in.operands[0] : in.operands[1];
  const auto array = out_.arrays.find(address.text);
  if (array == out_.arrays.end()) {
    return access.is_store ? Fail("a store to a launch parameter") : LaunchParameter(in, d, access);
  }
  const std::uint64_t end = access.offset + access.width * std::uint64_t{access.elements};
  if (end > array->second.stride) {
    return Fail("an access past the end of a parameter");
  }
  access.operand[0] = array->second.stride;
  access.offset += array->second.slot;
  d.operation = access.is_store ? RunParameterStore : RunParameterLoad;
  d.extra = static_cast<std::uint32_t>(out_.accesses.size());
  out_.accesses.push_back(access);
  return true;
}

/// A scalar parameter is a vector that the launch filled in; loading it is a move. A vector load is
/// as many moves, so it reads the parameter block as memory.
bool Decoder::LaunchParameter(const Instruction& in, Decoded& d, const Access& access) {
  const Operand& address = in.operands[1];
  const auto it = std::ranges::find(function_.parameters, address.text, &ptx::Parameter::name);
  if (it == function_.parameters.end()) {
    return Fail(fmt::format("parameter '{}' is not known", address.text));
  }
  const std::uint64_t offset = it->offset + access.offset;
  if (access.elements > 1) {
    Access memory = access;
    memory.address = Bits(0, true);
    memory.offset = offset;
    d.operation = SelectAccess(memory);
    d.extra = static_cast<std::uint32_t>(out_.accesses.size());
    out_.accesses.push_back(memory);
    return true;
  }
  d.kind = Kind::kAlu;
  d.alu = access.value_64[0] ? Move64 : Move32;
  d.operands.dst = access.value[0];
  d.operands.src[0] = slots_.Constant(ConstantSlot{.kind = ConstantSlot::Kind::kParameter,
                                                   .is_64 = access.value_64[0],
                                                   .sign_extend = access.sign_extend,
                                                   .width = access.width,
                                                   .bits = offset});
  return true;
}

namespace {

bool ParseAtomicOp(std::string_view part, AtomicOp* op) {
  static constexpr std::string_view kNames[] = {"add", "min", "max", "inc",  "dec",
                                                "and", "or",  "xor", "exch", "cas"};
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    if (kNames[i] == part) {
      *op = static_cast<AtomicOp>(i);
      return true;
    }
  }
  return false;
}

}  // namespace

bool Decoder::Atomic(const Instruction& in, Decoded& d) {
  Access access;
  const bool returns = in.parts[0] == "atom";
  bool has_op = false;
  for (std::size_t i = 1; i + 1 < in.parts.size(); ++i) {
    const std::string& part = in.parts[i];
    if (ParseAtomicOp(part, &access.op)) {
      has_op = true;
    } else if (part == "v2" || part == "v4" || part == "v8") {
      access.elements = part == "v2" ? 2 : (part == "v4" ? 4 : 8);
    } else if (!ParseSpace(part, &access.space) && !IsHint(part) && !IsStrong(part) &&
               part != "noftz") {
      return Fail(fmt::format("the modifier .{}", part));
    }
  }
  access.type = ptx::ParseType(in.parts.back());
  access.width = static_cast<std::uint8_t>(ptx::SizeOf(access.type));
  access.is_store = true;
  access.strong = true;
  access.skip_l1 = true;
  const std::size_t sources = access.op == AtomicOp::kCas ? 2 : 1;
  if (!has_op || access.elements > 4 || access.width > 8 || access.width < 2 ||
      access.width * access.elements > 16 || in.operands.size() != sources + (returns ? 2U : 1U)) {
    return Fail("this atomic");
  }
  Access sources_view = access;
  if (returns && in.operands[0].kind != Operand::Kind::kSink &&
      !Values(in.operands[0], access, true)) {
    return false;
  }
  const std::size_t at = returns ? 1 : 0;
  if (!Address(in.operands[at], access) || !Values(in.operands[at + 1], sources_view, false)) {
    return false;
  }
  std::copy(std::begin(sources_view.value), std::end(sources_view.value),
            std::begin(access.operand));
  if (sources == 2) {
    access.operand2 = Source(in.operands[at + 2], access.width == 8 ? Type::kB64 : Type::kB32);
    if (access.operand2 == kNoSlot) {
      return false;
    }
  }
  d.kind = Kind::kOperation;
  d.operation = SelectAtomic(access);
  d.extra = static_cast<std::uint32_t>(out_.accesses.size());
  out_.accesses.push_back(access);
  return d.operation != nullptr || Fail("this atomic");
}

}  // namespace kernelpro::simt
