// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "emulator/simt/alu_isa.h"
#include "emulator/simt/alu_spec.h"
#include "emulator/simt/handler.h"

namespace kernelpro::simt {
namespace {

/// Width of the whole in `mov.<type>`, 0 when the opcode is no plain mov of bits.
int MovedBits(const ptx::Instruction& instruction) {
  if (instruction.parts.size() != 2 || instruction.parts[0] != "mov") {
    return 0;
  }
  switch (ptx::ParseType(instruction.parts[1])) {
    case ptx::Type::kB16:
      return 16;
    case ptx::Type::kB32:
      return 32;
    case ptx::Type::kB64:
      return 64;
    default:
      return 0;
  }
}

}  // namespace

AluIsa BestAluIsa() {
  static const bool has_v3 = HasAluIsa(AluIsa::kV3);
  return has_v3 ? AluIsa::kV3 : AluIsa::kV2;
}

bool HasAluIsa(AluIsa isa) {
#ifdef KP_ALU_HAS_V3
  if (isa == AluIsa::kV3) {
    return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
           __builtin_cpu_supports("bmi2") != 0;
  }
#endif
  return isa == AluIsa::kV2;
}

AluDecode SelectAluFor(AluIsa isa, const ptx::Instruction& instruction) {
  const std::optional<AluSpec> spec = ParseAluSpec(instruction);
  if (!spec) {
    return {};
  }
#ifdef KP_ALU_HAS_V3
  if (isa == AluIsa::kV3) {
    return alu_v3::Select(*spec);
  }
#endif
  return isa == AluIsa::kV2 ? alu_v2::Select(*spec) : AluDecode{};
}

AluDecode SelectAlu(const ptx::Instruction& instruction) {
  return SelectAluFor(BestAluIsa(), instruction);
}

AluDecode SelectPack(const ptx::Instruction& instruction, int elements) {
#ifdef KP_ALU_HAS_V3
  if (BestAluIsa() == AluIsa::kV3) {
    return alu_v3::Pack(MovedBits(instruction), elements);
  }
#endif
  return alu_v2::Pack(MovedBits(instruction), elements);
}

AluDecode SelectUnpack(const ptx::Instruction& instruction, int elements) {
#ifdef KP_ALU_HAS_V3
  if (BestAluIsa() == AluIsa::kV3) {
    return alu_v3::Unpack(MovedBits(instruction), elements);
  }
#endif
  return alu_v2::Unpack(MovedBits(instruction), elements);
}

}  // namespace kernelpro::simt
