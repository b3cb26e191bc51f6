// SPDX-License-Identifier: Apache-2.0
#include "emulator/model/memory_access.h"

#include <cstdint>
#include <string>

#include "emulator/ptx/module.h"

namespace kernelpro::model {
namespace {

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

MemoryAccess MemoryAccessOf(const ptx::Instruction& op) {
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
