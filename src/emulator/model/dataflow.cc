// SPDX-License-Identifier: Apache-2.0
#include "emulator/model/dataflow.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/ptx/module.h"

namespace kernelpro::model {
namespace {

void Append(const ptx::Operand& operand, std::vector<std::uint32_t>& out) {
  if (operand.reg != ptx::Operand::kNoRegister) {
    out.push_back(operand.reg);
  }
  for (const ptx::Operand& element : operand.elements) {
    Append(element, out);
  }
}

/// True when the first operand is written: not where it is an address, a branch target, or the
/// barrier number of an instruction without a result.
bool WritesFirstOperand(const ptx::Instruction& op) {
  constexpr std::array<std::string_view, 17> kNoResult = {
      "st",   "red",   "bra", "brx",     "ret",    "exit",     "trap",      "bar",     "barrier",
      "call", "fence", "cp",  "pmevent", "membar", "prefetch", "nanosleep", "stmatrix"};
  const std::string& base = op.parts.front();
  if ((base == "bar" || base == "barrier") && op.Has("red")) {
    return true;
  }
  if (base == "wmma" && op.Has("store")) {
    return false;
  }
  return std::ranges::find(kNoResult, base) == kNoResult.end();
}

std::uint32_t VectorLength(const ptx::Instruction& op) {
  for (const std::string& part : op.parts) {
    if (part == "v2" || part == "v4" || part == "v8") {
      return static_cast<std::uint32_t>(part[1] - '0');
    }
    if (part == "x2" || part == "x4") {
      return static_cast<std::uint32_t>(part[1] - '0');
    }
  }
  return 1;
}

std::uint32_t ElementBytes(const ptx::Instruction& op) {
  for (auto part = op.parts.rbegin(); part != op.parts.rend(); ++part) {
    if (const std::uint32_t bytes = ptx::SizeOf(ptx::ParseType(*part)); bytes != 0) {
      return bytes;
    }
  }
  return 0;
}

ptx::Space SpaceOf(const ptx::Instruction& op) {
  for (const std::string& part : op.parts) {
    if (part.starts_with("shared")) {
      return ptx::Space::kShared;
    }
    if (part == "global") {
      return ptx::Space::kGlobal;
    }
    if (part == "local") {
      return ptx::Space::kLocal;
    }
    if (part.starts_with("param") || part == "const") {
      return ptx::Space::kNone;
    }
  }
  return ptx::Space::kGeneric;
}

MemoryKind KindOf(const ptx::Instruction& op) {
  const std::string& base = op.parts.front();
  if (base == "ld" || base == "ldu" || base == "ldmatrix") {
    return MemoryKind::kLoad;
  }
  if (base == "st" || base == "stmatrix") {
    return MemoryKind::kStore;
  }
  if (base == "atom" || base == "red") {
    return MemoryKind::kAtomic;
  }
  if (base == "wmma") {
    return op.Has("load")    ? MemoryKind::kLoad
           : op.Has("store") ? MemoryKind::kStore
                             : MemoryKind::kNone;
  }
  const bool moves = op.Has("global") || op.Has("tensor");
  return base == "cp" && op.Has("async") && moves ? MemoryKind::kAsyncCopy : MemoryKind::kNone;
}

}  // namespace

RegisterUse RegistersOf(const ptx::Instruction& op) {
  RegisterUse use;
  if (op.parts.empty()) {
    return use;
  }
  if (op.guard != ptx::Operand::kNoRegister) {
    use.reads.push_back(op.guard);
  }
  // call: (returns), function, (arguments).
  const bool call_returns = op.parts.front() == "call" && op.operands.size() > 1 &&
                            op.operands[0].kind == ptx::Operand::Kind::kVector;
  const bool writes = WritesFirstOperand(op) || call_returns;
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    const ptx::Operand& operand = op.operands[i];
    const bool result = i == 0 && writes && operand.kind != ptx::Operand::Kind::kAddress;
    Append(operand, result ? use.writes : use.reads);
  }
  return use;
}

MemoryAccess AccessOf(const ptx::Instruction& op) {
  MemoryAccess access;
  if (op.parts.empty()) {
    return access;
  }
  access.kind = KindOf(op);
  if (access.kind == MemoryKind::kNone) {
    return access;
  }
  access.space = access.kind == MemoryKind::kAsyncCopy ? ptx::Space::kGlobal : SpaceOf(op);
  access.bytes_per_lane = ElementBytes(op) * VectorLength(op);
  return access;
}

bool IsCtaBarrier(const ptx::Instruction& op) {
  if (op.parts.empty()) {
    return false;
  }
  const std::string& base = op.parts.front();
  return (base == "bar" || base == "barrier") && !op.Has("warp") && !op.Has("arrive");
}

}  // namespace kernelpro::model
