// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "emulator/ptx/module.h"

namespace kernelpro::model {

/// What an instruction is to the memory system.
enum class MemoryKind : std::uint8_t {
  kNone,
  kLoad,
  kStore,
  kAtomic,     ///< atom, red
  kAsyncCopy,  ///< cp.async and cp.async.bulk between global and shared memory
};

struct MemoryAccess {
  MemoryKind kind = MemoryKind::kNone;
  /// kGeneric when the opcode names none; kNone for what costs no traffic (param, const).
  ptx::Space space = ptx::Space::kNone;
  std::uint32_t bytes_per_lane = 0;
};

[[nodiscard]] MemoryAccess MemoryAccessOf(const ptx::Instruction& instruction);

/// A CTA-wide barrier (not bar.warp.sync, which only joins the lanes of a warp).
[[nodiscard]] bool IsCtaBarrier(const ptx::Instruction& instruction);

}  // namespace kernelpro::model
