// SPDX-License-Identifier: Apache-2.0
// Any bytes as PTX text. Beyond not crashing: an error names a line, and whatever parses can be
// analysed and has every index in range.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "emulator/ptx/control_flow.h"
#include "emulator/ptx/liveness.h"
#include "emulator/ptx/module.h"

namespace {

using kernelpro::ptx::Operand;

void CheckOperand(const kernelpro::ptx::Function& function, const Operand& operand) {
  KP_CHECK(operand.reg == Operand::kNoRegister || operand.reg < function.registers.size());
  KP_CHECK(operand.kind != Operand::Kind::kLabel || operand.target < function.body.size());
  for (const Operand& element : operand.elements) {
    CheckOperand(function, element);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto module = kernelpro::ptx::Parse(text, "f");
  if (!module.ok()) {
    KP_CHECK(module.error().message.starts_with("f:")) << module.error().message;
    return 0;
  }
  for (const auto& function : module->functions) {
    KP_CHECK(function.is_declaration == function.body.empty());
    for (const auto& instruction : function.body) {
      KP_CHECK(instruction.where.file < module->files.size());
      for (const Operand& operand : instruction.operands) {
        CheckOperand(function, operand);
      }
    }
    const auto flow = kernelpro::ptx::BuildControlFlow(function);
    (void)kernelpro::ptx::ComputeLiveness(function, flow);
  }
  return 0;
}
