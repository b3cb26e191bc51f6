// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "emulator/simt/decode.h"
#include "emulator/simt/operations.h"

namespace kernelpro::simt {

using ptx::Special;
using ptx::Type;

namespace {

bool IsClock(Special special) {
  switch (special) {
    case Special::kClock:
    case Special::kClockHi:
    case Special::kClock64:
    case Special::kGlobalTimer:
    case Special::kGlobalTimerLo:
    case Special::kGlobalTimerHi:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool Decoder::Mov(const Instruction& in, Decoded& d) {
  if (in.operands.size() != 2 || in.parts.size() < 2) {
    return Fail("mov with an unusual form");
  }
  const Operand& to = in.operands[0];
  const Operand& from = in.operands[1];
  if (to.kind == Operand::Kind::kVector || from.kind == Operand::Kind::kVector) {
    return Pack(in, d);
  }
  const Type type = ptx::ParseType(in.parts.back());
  if (type == Type::kPred || type == Type::kNone || ptx::SizeOf(type) > 8) {
    return Alu(in, d);
  }
  d.operands.dst = Destination(to, type);
  if (from.kind == Operand::Kind::kSpecial && IsClock(from.special)) {
    d.kind = Kind::kOperation;
    d.operation = Is64(type) ? RunClock64 : RunClock32;
    d.extra = static_cast<std::uint32_t>(from.special);
    return d.operands.dst != kNoSlot;
  }
  d.operands.src[0] = Source(from, type);
  d.kind = Kind::kAlu;
  d.alu = Is64(type) ? Move64 : Move32;
  return d.operands.dst != kNoSlot && d.operands.src[0] != kNoSlot;
}

bool Decoder::Pack(const Instruction& in, Decoded& d) {
  const Type type = ptx::ParseType(in.parts.back());
  const bool packs = in.operands[1].kind == Operand::Kind::kVector;
  const Operand& vector = packs ? in.operands[1] : in.operands[0];
  const Operand& whole = packs ? in.operands[0] : in.operands[1];
  const std::uint32_t size = ptx::SizeOf(type);
  const auto pieces = static_cast<std::uint32_t>(vector.elements.size());
  if ((size != 4 && size != 8) || (pieces != 2 && pieces != 4) || size / pieces < 1) {
    return Fail("mov of a vector of this shape");
  }
  Access access;
  access.width = static_cast<std::uint8_t>(size / pieces);
  access.elements = static_cast<std::uint8_t>(pieces);
  const Type piece = access.width == 4 ? Type::kB32 : (access.width == 2 ? Type::kB16 : Type::kB8);
  for (std::uint32_t i = 0; i < pieces; ++i) {
    const Operand& element = vector.elements[i];
    if (element.kind == Operand::Kind::kSink && !packs) {
      continue;
    }
    access.value[i] = packs ? Source(element, piece) : Destination(element, piece);
    if (access.value[i] == kNoSlot) {
      return false;
    }
  }
  d.operands.dst = packs ? Destination(whole, type) : Source(whole, type);
  d.operands.has_dst2 = size == 8;
  d.kind = Kind::kOperation;
  d.operation = packs ? RunPack : RunUnpack;
  d.extra = static_cast<std::uint32_t>(out_.accesses.size());
  out_.accesses.push_back(access);
  return d.operands.dst != kNoSlot;
}

bool Decoder::Cvta(const Instruction& in, Decoded& d) {
  if (in.operands.size() != 2 || in.parts.back() != "u64") {
    return Fail("cvta of 32-bit addresses");
  }
  const bool to_space = in.Has("to");
  std::uint64_t window = 0;
  if (in.Has("shared") || in.Has("shared::cta")) {
    window = kSharedWindow;
  } else if (in.Has("local")) {
    window = kLocalWindow;
  } else if (in.Has("param")) {
    window = kParamWindow;
  } else if (!in.Has("global") && !in.Has("const")) {
    return Fail("cvta of this space");
  }
  d.kind = Kind::kAlu;
  d.operands.dst = Destination(in.operands[0], Type::kU64);
  d.operands.src[0] = Source(in.operands[1], Type::kU64);
  d.alu = window == 0 ? Move64 : Add64;
  d.operands.src[1] = window == 0 ? 0 : Bits(to_space ? 0 - window : window, true);
  return d.operands.dst != kNoSlot && d.operands.src[0] != kNoSlot;
}

bool Decoder::IsSpace(const Instruction& in, Decoded& d) {
  if (in.operands.size() != 2 || in.parts.size() < 2) {
    return Fail("isspacep with an unusual form");
  }
  const std::string& space = in.parts[1];
  d.kind = Kind::kOperation;
  d.operation = RunIsWindow;
  d.operands.dst = Destination(in.operands[0], Type::kPred);
  d.operands.src[0] = Source(in.operands[1], Type::kU64);
  if (space == "global" || space == "const") {
    if (space == "const") {
      return Fail("isspacep.const");
    }
    d.operation = RunIsGlobal;
  } else if (space == "shared" || space == "shared::cta" || space == "shared::cluster") {
    d.operands.src[1] = Bits(kSharedWindow, true);
  } else if (space == "local") {
    d.operands.src[1] = Bits(kLocalWindow, true);
  } else if (space == "param") {
    d.operands.src[1] = Bits(kParamWindow, true);
  } else {
    return Fail("isspacep of this space");
  }
  return d.operands.dst != kNoSlot && d.operands.src[0] != kNoSlot;
}

}  // namespace kernelpro::simt
