// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "emulator/simt/decode.h"
#include "emulator/simt/operations.h"

namespace kernelpro::simt {

using ptx::Type;

bool Decoder::Branch(const Instruction& in, Decoded& d) {
  if (in.operands.size() != 1 || in.operands[0].kind != Operand::Kind::kLabel) {
    return Fail("bra with an unusual form");
  }
  d.kind = Kind::kBranch;
  d.target = in.operands[0].target;  // an instruction; ResolveTargets makes it a segment
  return true;
}

bool Decoder::BranchIndexed(const Instruction& in, Decoded& d) {
  if (in.operands.empty() || in.branch_targets.empty()) {
    return Fail("brx.idx without targets");
  }
  d.kind = Kind::kBranchIndexed;
  d.operands.src[0] = Source(in.operands[0], Type::kU32);
  d.extra = static_cast<std::uint32_t>(out_.branch_tables.size());
  out_.branch_tables.push_back(in.branch_targets);
  return d.operands.src[0] != kNoSlot;
}

bool Decoder::Leave(const Instruction& in, Decoded& d) {
  if (in.parts[0] == "trap") {
    d.kind = Kind::kTrap;
  } else if (in.parts[0] == "exit" || function_.is_entry) {
    d.kind = Kind::kExit;
  } else {
    d.kind = Kind::kReturn;
  }
  return true;
}

bool Decoder::CallCopies(const Instruction& in, const FunctionCode& callee, CallOp& call) {
  const auto connect = [&](const Operand& list, const std::vector<ParameterArray>& theirs,
                           bool arguments) {
    if (list.kind != Operand::Kind::kVector || list.elements.size() != theirs.size()) {
      return Fail("a call with another number of parameters than the function has");
    }
    for (std::size_t i = 0; i < theirs.size(); ++i) {
      const auto mine = out_.arrays.find(list.elements[i].text);
      if (mine == out_.arrays.end()) {
        return Fail("a call that passes registers");
      }
      const ParameterArray& a = arguments ? mine->second : theirs[i];
      const ParameterArray& b = arguments ? theirs[i] : mine->second;
      (arguments ? call.arguments : call.results)
          .push_back(CallOp::Copy{.from = a.slot,
                                  .to = b.slot,
                                  .from_stride = a.stride,
                                  .to_stride = b.stride,
                                  .bytes = std::min(a.bytes, b.bytes)});
    }
    return true;
  };
  for (std::size_t i = 0; i < in.operands.size(); ++i) {
    if (in.operands[i].kind != Operand::Kind::kSymbol) {
      continue;
    }
    if (i > 0 && !connect(in.operands[i - 1], callee.returns, false)) {
      return false;
    }
    if (i + 1 < in.operands.size() && !connect(in.operands[i + 1], callee.parameters, true)) {
      return false;
    }
  }
  return true;
}

bool Decoder::Call(const Instruction& in, Decoded& d) {
  const auto name = std::ranges::find(in.operands, Operand::Kind::kSymbol, &Operand::kind);
  if (name == in.operands.end()) {
    return Fail("a call through a function pointer");
  }
  CallOp call;
  call.name = name->text;
  const auto callee = std::ranges::find(scope_.functions, call.name, &ptx::Function::name);
  if (callee != scope_.functions.end()) {
    call.callee = static_cast<std::uint32_t>(callee - scope_.functions.begin());
    if (!CallCopies(in, *scope_.codes[call.callee], call)) {
      return false;
    }
  } else if (call.name == "vprintf" || call.name == "__assertfail") {
    call.builtin = call.name == "vprintf" ? Builtin::kVprintf : Builtin::kAssertFail;
    const auto arrays = [&](const Operand& list, std::vector<CallOp::Copy>& copies) {
      for (const Operand& element : list.elements) {
        const auto mine = out_.arrays.find(element.text);
        if (mine == out_.arrays.end()) {
          return Fail("a call that passes registers");
        }
        copies.push_back(CallOp::Copy{.from = mine->second.slot,
                                      .to = mine->second.slot,
                                      .from_stride = mine->second.stride,
                                      .to_stride = mine->second.stride,
                                      .bytes = mine->second.bytes});
      }
      return true;
    };
    const std::size_t at = static_cast<std::size_t>(name - in.operands.begin());
    if (at > 0 && !arrays(in.operands[at - 1], call.results)) {
      return false;
    }
    if (at + 1 < in.operands.size() && !arrays(in.operands[at + 1], call.arguments)) {
      return false;
    }
  } else {
    return Fail(fmt::format("a call of {}, which is not in this module", call.name));
  }
  d.kind = Kind::kCall;
  d.extra = static_cast<std::uint32_t>(out_.calls.size());
  out_.calls.push_back(std::move(call));
  return true;
}

/// bar[.cta] and barrier[.cta]: .sync id{, n}; .arrive id, n; .red.op d, id{, n}, p.
bool Decoder::Barrier(const Instruction& in, Decoded& d) {
  BarrierOp op;
  op.aligned = in.parts[0] == "bar" || in.Has("aligned");
  if (in.Has("cluster")) {
    return Fail("barriers of a cluster");
  }
  std::size_t at = 0;
  std::size_t end = in.operands.size();
  op.arrive = in.Has("arrive");
  if (in.Has("red")) {
    if (end < 3) {
      return Fail("bar.red with an unusual form");
    }
    op.reduce = in.Has("popc") ? BarrierOp::Reduce::kPopc
                               : (in.Has("and") ? BarrierOp::Reduce::kAnd : BarrierOp::Reduce::kOr);
    const Type type = op.reduce == BarrierOp::Reduce::kPopc ? Type::kU32 : Type::kPred;
    op.destination = Destination(in.operands[0], type);
    op.source = Source(in.operands[end - 1], Type::kPred);
    op.source_negated = in.operands[end - 1].negated;
    if (op.destination == kNoSlot || op.source == kNoSlot) {
      return false;
    }
    at = 1;
    --end;
  } else if (!op.arrive && !in.Has("sync")) {
    return Fail("this barrier");
  }
  if (at >= end) {
    return Fail("a barrier without an id");
  }
  op.id = Source(in.operands[at], Type::kU32);
  if (at + 1 < end) {
    op.count = Source(in.operands[at + 1], Type::kU32);
    if (op.count == kNoSlot) {
      return false;
    }
  }
  if (op.id == kNoSlot || (op.arrive && op.count == kNoSlot)) {
    return Fail("a barrier with an unusual form");
  }
  d.kind = Kind::kBarrier;
  d.extra = static_cast<std::uint32_t>(out_.barriers.size());
  out_.barriers.push_back(op);
  needs_meeting_[d.instruction] = op.aligned;
  return true;
}

}  // namespace kernelpro::simt
