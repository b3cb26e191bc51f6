// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace kernelpro::model {

/// How often each machine instruction stands in one kernel's code (static counts: what the
/// assembler really emitted, without a disassembler).
struct SassHistogram {
  std::string kernel;  ///< as mangled: the part of the section name after ".text."
  std::uint64_t instructions = 0;
  /// By opcode id: the low 12 bits of each 16-byte instruction, operand form included. The padding
  /// NOPs after the last instruction are left out.
  std::map<std::uint16_t, std::uint64_t> by_id;

  /// Sum over the operand forms of one opcode: Count("FFMA"). 0 for a name that SassName never
  /// returns.
  [[nodiscard]] std::uint64_t Count(std::string_view name) const;
};

/// "FFMA" for 0x223; empty when the id is not one of those confirmed for sm_80 to sm_90.
[[nodiscard]] std::string_view SassName(std::uint16_t id);

/// One histogram per `.text.<kernel>` section of a cubin (64-bit little-endian ELF, sm_70 or newer:
/// 16-byte instructions), in file order. Safe for any bytes: kParse, with what is wrong and where,
/// for what is not such a file.
[[nodiscard]] Result<std::vector<SassHistogram>> ReadCubin(std::string_view bytes);

}  // namespace kernelpro::model
