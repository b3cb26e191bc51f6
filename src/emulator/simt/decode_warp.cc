// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "emulator/simt/decode.h"
#include "emulator/simt/operations.h"

namespace kernelpro::simt {

using ptx::Type;

/// Operations that lanes must reach together carry their member mask in src[3].
bool Decoder::WarpOperation(const Instruction& in, Decoded& d) {
  d.kind = Kind::kOperation;
  const std::string& name = in.parts[0];
  if (name == "membar" || name == "fence" || name == "prefetch" || name == "prefetchu") {
    if (in.Has("proxy") || in.Has("tensormap") || in.Has("mbarrier_init")) {
      return Fail("fences of other proxies");
    }
    d.operation = RunNothing;
    return true;
  }
  if (name == "activemask") {
    d.operation = RunActiveMask;
    d.operands.dst = Destination(in.operands[0], Type::kB32);
    return d.operands.dst != kNoSlot;
  }
  if (name == "nanosleep") {
    d.operation = RunNanosleep;
    return true;
  }
  if (!in.Has("sync") || in.operands.empty()) {
    return Fail("the form without .sync");
  }
  d.operands.src[3] = Source(in.operands.back(), Type::kB32);
  needs_meeting_[d.instruction] = true;
  if (d.operands.src[3] == kNoSlot) {
    return false;
  }
  if (name == "bar") {
    d.operation = RunNothing;
    return true;
  }
  if (name == "shfl") {
    return Shuffle(in, d);
  }
  if (name == "vote") {
    return Vote(in, d);
  }
  if (name == "match") {
    return Match(in, d);
  }
  if (name == "redux") {
    return Reduce(in, d);
  }
  if (name == "elect") {
    const Operand& to = in.operands[0];
    if (to.kind != Operand::Kind::kPredicatePair) {
      return Fail("an unusual form");
    }
    const bool sink = to.elements[0].kind == Operand::Kind::kSink;
    d.operation = RunElect;
    d.operands.dst = sink ? kNoSlot : Destination(to.elements[0], Type::kB32);
    d.operands.dst2 = Destination(to.elements[1], Type::kPred);
    return (sink || d.operands.dst != kNoSlot) && d.operands.dst2 != kNoSlot;
  }
  return false;
}

bool Decoder::Shuffle(const Instruction& in, Decoded& d) {
  if (in.operands.size() != 5) {
    return Fail("an unusual form");
  }
  const Operand& to = in.operands[0];
  const bool pair = to.kind == Operand::Kind::kPredicatePair;
  d.operands.dst = Destination(pair ? to.elements[0] : to, Type::kB32);
  d.operands.has_dst2 = pair && to.elements[1].kind != Operand::Kind::kSink;
  if (d.operands.has_dst2) {
    d.operands.dst2 = Destination(to.elements[1], Type::kPred);
  }
  for (std::size_t i = 0; i < 3; ++i) {
    d.operands.src[i] = Source(in.operands[i + 1], Type::kB32);
    if (d.operands.src[i] == kNoSlot) {
      return false;
    }
  }
  if (in.Has("idx")) {
    d.operation = RunShuffleIdx;
  } else if (in.Has("up")) {
    d.operation = RunShuffleUp;
  } else if (in.Has("down")) {
    d.operation = RunShuffleDown;
  } else if (in.Has("bfly")) {
    d.operation = RunShuffleBfly;
  } else {
    return Fail("this shuffle mode");
  }
  return d.operands.dst != kNoSlot && d.operands.dst2 != kNoSlot;
}

bool Decoder::Vote(const Instruction& in, Decoded& d) {
  if (in.operands.size() != 3) {
    return Fail("an unusual form");
  }
  const bool ballot = in.Has("ballot");
  d.operands.dst = Destination(in.operands[0], ballot ? Type::kB32 : Type::kPred);
  d.operands.src[0] = Source(in.operands[1], Type::kPred);
  d.operands.src_negated = in.operands[1].negated;
  if (ballot) {
    d.operation = RunVoteBallot;
  } else if (in.Has("any")) {
    d.operation = RunVoteAny;
  } else if (in.Has("all")) {
    d.operation = RunVoteAll;
  } else if (in.Has("uni")) {
    d.operation = RunVoteUni;
  } else {
    return Fail("this vote mode");
  }
  return d.operands.dst != kNoSlot && d.operands.src[0] != kNoSlot;
}

bool Decoder::Match(const Instruction& in, Decoded& d) {
  if (in.operands.size() != 3) {
    return Fail("an unusual form");
  }
  const bool wide = in.parts.back() == "b64";
  const bool all = in.Has("all");
  const Operand& to = in.operands[0];
  const bool pair = to.kind == Operand::Kind::kPredicatePair;
  d.operands.dst = Destination(pair ? to.elements[0] : to, Type::kB32);
  d.operands.has_dst2 = pair && to.elements[1].kind != Operand::Kind::kSink;
  if (d.operands.has_dst2) {
    d.operands.dst2 = Destination(to.elements[1], Type::kPred);
  }
  d.operands.src[0] = Source(in.operands[1], wide ? Type::kB64 : Type::kB32);
  if (all) {
    d.operation = wide ? RunMatchAll64 : RunMatchAll32;
  } else {
    d.operation = wide ? RunMatchAny64 : RunMatchAny32;
  }
  return d.operands.dst != kNoSlot && d.operands.dst2 != kNoSlot && d.operands.src[0] != kNoSlot;
}

bool Decoder::Reduce(const Instruction& in, Decoded& d) {
  if (in.operands.size() != 3 || in.parts.size() < 4) {
    return Fail("an unusual form");
  }
  const Type type = ptx::ParseType(in.parts.back());
  d.operands.dst = Destination(in.operands[0], type);
  d.operands.src[0] = Source(in.operands[1], type);
  d.operation = SelectReduce(in.parts[2], type);
  if (d.operation == nullptr) {
    return Fail("this reduction");
  }
  return d.operands.dst != kNoSlot && d.operands.src[0] != kNoSlot;
}

}  // namespace kernelpro::simt
