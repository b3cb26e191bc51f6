// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

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
  const bool packs = in.operands[1].kind == Operand::Kind::kVector;
  const std::vector<Operand>& pieces = in.operands[packs ? 1 : 0].elements;
  const AluDecode alu = packs ? SelectPack(in, static_cast<int>(pieces.size()))
                              : SelectUnpack(in, static_cast<int>(pieces.size()));
  if (alu.run == nullptr || pieces.size() > 4) {
    return Fail("mov of a vector of this shape");
  }
  d.kind = Kind::kAlu;
  d.alu = alu.run;
  std::uint32_t slots[4] = {0, 0, 0, 0};
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (!packs && pieces[i].kind == Operand::Kind::kSink) {
      slots[i] = slots_.Scratch();
    } else {
      slots[i] = packs ? Source(pieces[i], alu.src[i]) : Destination(pieces[i], alu.dst);
    }
    if (slots[i] == kNoSlot) {
      return false;
    }
  }
  if (packs) {
    std::copy(std::begin(slots), std::end(slots), std::begin(d.operands.src));
    d.operands.dst = Destination(in.operands[0], alu.dst);
    return d.operands.dst != kNoSlot;
  }
  d.operands.dst = slots[0];
  d.operands.dst2 = slots[1];
  d.operands.dst3 = slots[2];
  d.operands.dst4 = slots[3];
  d.operands.src[0] = Source(in.operands[1], alu.src[0]);
  return d.operands.src[0] != kNoSlot;
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
