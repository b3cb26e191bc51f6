// SPDX-License-Identifier: Apache-2.0
#include "emulator/simt/decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "emulator/simt/operations.h"

namespace kernelpro::simt {

using ptx::Type;

Decoder::Decoder(const DecodeScope& scope, FunctionCode& out)
    : scope_(scope), out_(out), function_(*out.function), slots_(*out.function) {
  std::uint64_t local = 0;
  for (const ptx::Variable& variable : function_.variables) {
    if (variable.space == ptx::Space::kLocal) {
      const std::uint64_t alignment = std::max(variable.alignment, 1U);
      local = (local + alignment - 1) / alignment * alignment;
      locals_[variable.name] = Symbol{ptx::Space::kLocal, local};
      local += variable.bytes;
    }
  }
  out_.local_bytes = (local + 15) / 16 * 16;
  for (const ptx::Parameter& slot : function_.call_slots) {
    out_.arrays[slot.name] = slots_.Array(slot.bytes);
  }
  if (function_.is_entry) {
    for (const ptx::Parameter& parameter : function_.parameters) {
      locals_[parameter.name] = Symbol{ptx::Space::kParam, parameter.offset};
    }
    return;
  }
  for (const ptx::Parameter& parameter : function_.parameters) {
    out_.parameters.push_back(slots_.Array(parameter.bytes));
    out_.arrays[parameter.name] = out_.parameters.back();
  }
  for (const ptx::Parameter& parameter : function_.returns) {
    out_.returns.push_back(slots_.Array(parameter.bytes));
    out_.arrays[parameter.name] = out_.returns.back();
  }
}

void Decoder::Run() {
  const std::size_t count = function_.body.size();
  decoded_.assign(count, Decoded{});
  omitted_.assign(count, false);
  needs_meeting_.assign(count, false);
  for (std::uint32_t i = 0; i < count; ++i) {
    DecodeOne(i);
  }
  BuildSegments();
  slots_.Finish(out_);
}

void Decoder::Unsupported(const Instruction& in, Decoded& d) {
  d.kind = Kind::kOperation;
  d.operation = RunUnsupported;
  d.extra = static_cast<std::uint32_t>(out_.notes.size());
  out_.notes.push_back(why_.empty() ? in.opcode : fmt::format("{} ({})", in.opcode, why_));
}

void Decoder::DecodeOne(std::uint32_t index) {
  const Instruction& in = function_.body[index];
  Decoded& d = decoded_[index];
  d.instruction = index;
  if (in.parts.empty() || in.parts[0].starts_with('.') || in.parts[0] == "pragma") {
    omitted_[index] = true;
    return;
  }
  if (in.guard != Operand::kNoRegister && in.guard < function_.registers.size()) {
    d.guard = slots_.Register(in.guard);
    d.guard_negated = in.guard_negated;
  }
  why_.clear();
  if (!Dispatch(in, d)) {
    needs_meeting_[index] = false;
    Unsupported(in, d);
  }
}

bool Decoder::Dispatch(const Instruction& in, Decoded& d) {
  using Method = bool (Decoder::*)(const Instruction&, Decoded&);
  static const std::map<std::string_view, Method> kMethods = {
      {"mov", &Decoder::Mov},
      {"cvta", &Decoder::Cvta},
      {"isspacep", &Decoder::IsSpace},
      {"ld", &Decoder::LoadStore},
      {"ldu", &Decoder::LoadStore},
      {"st", &Decoder::LoadStore},
      {"atom", &Decoder::Atomic},
      {"red", &Decoder::Atomic},
      {"cp", &Decoder::AsyncCopy},
      {"mbarrier", &Decoder::MBarrier},
      {"bra", &Decoder::Branch},
      {"brx", &Decoder::BranchIndexed},
      {"ret", &Decoder::Leave},
      {"exit", &Decoder::Leave},
      {"trap", &Decoder::Leave},
      {"call", &Decoder::Call},
      {"bar", &Decoder::Barrier},
      {"barrier", &Decoder::Barrier},
      {"shfl", &Decoder::WarpOperation},
      {"vote", &Decoder::WarpOperation},
      {"match", &Decoder::WarpOperation},
      {"redux", &Decoder::WarpOperation},
      {"activemask", &Decoder::WarpOperation},
      {"elect", &Decoder::WarpOperation},
      {"nanosleep", &Decoder::WarpOperation},
      {"membar", &Decoder::WarpOperation},
      {"fence", &Decoder::WarpOperation},
      {"prefetch", &Decoder::WarpOperation},
      {"prefetchu", &Decoder::WarpOperation},
      {"griddepcontrol", &Decoder::WarpOperation},
  };
  if (in.parts[0] == "bar" && in.Has("warp")) {
    return WarpOperation(in, d);
  }
  const auto it = kMethods.find(in.parts[0]);
  return it == kMethods.end() ? Alu(in, d) : (this->*it->second)(in, d);
}

bool Decoder::Alu(const Instruction& in, Decoded& d) {
  const AluDecode alu = SelectAlu(in);
  if (alu.run == nullptr) {
    return false;
  }
  if (in.operands.size() != static_cast<std::size_t>(alu.sources) + 1) {
    return Fail("an unusual number of operands");
  }
  d.kind = Kind::kAlu;
  d.alu = alu.run;
  d.operands.carry = alu.uses_carry ? slots_.Carry() : 0;
  const Operand& to = in.operands[0];
  d.operands.dst2 = slots_.Scratch();
  if (to.kind == Operand::Kind::kPredicatePair) {
    d.operands.has_dst2 = to.elements[1].kind != Operand::Kind::kSink;
    if (d.operands.has_dst2) {
      d.operands.dst2 = Destination(to.elements[1], Type::kPred);
    }
    d.operands.dst = Destination(to.elements[0], alu.dst);
  } else {
    d.operands.dst = Destination(to, alu.dst);
  }
  if (d.operands.dst == kNoSlot || d.operands.dst2 == kNoSlot) {
    return false;
  }
  for (int i = 0; i < alu.sources; ++i) {
    const Operand& from = in.operands[static_cast<std::size_t>(i) + 1];
    d.operands.src[i] = Source(from, alu.src[i]);
    if (d.operands.src[i] == kNoSlot) {
      return false;
    }
    d.operands.src_negated = d.operands.src_negated || from.negated;
  }
  d.operands.has_combine = (in.parts[0] == "setp" || in.parts[0] == "set") && alu.sources == 3;
  return true;
}

}  // namespace kernelpro::simt
