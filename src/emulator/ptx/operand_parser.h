// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_set>

#include "base/result.h"
#include "emulator/ptx/budget.h"
#include "emulator/ptx/cursor.h"
#include "emulator/ptx/module.h"
#include "emulator/ptx/symbol_table.h"

namespace kernelpro::ptx {

/// Reads one operand of an instruction; names are looked up in the function's scopes, then in the
/// module.
class OperandParser {
 public:
  OperandParser(Cursor& cursor, SymbolTable& symbols, const Function& function,
                const std::unordered_set<std::string_view>& module_names, Budget& budget)
      : cursor_(cursor),
        symbols_(symbols),
        function_(function),
        module_names_(module_names),
        budget_(budget) {}

  /// `lists` allows `(a, b)`, which only call has.
  Status Parse(Operand& operand, bool lists);
  /// `@p`, `@!p`: after the @.
  Status ParseGuard(Instruction& instruction);

 private:
  static constexpr int kDeepest = 4;

  Status ParseOne(Operand& operand, int depth);
  Status ParseVector(Operand& operand, char close, int depth);
  Status ParseAddress(Operand& operand, int depth);
  Status ParseAddressTerm(Operand& operand, bool minus);
  Status ParseOffset(Operand& operand);
  Status ParseNumber(Operand& operand);
  Status ParseName(Operand& operand);
  Status ParseSpecial(std::string_view name, std::uint32_t line, Operand& operand);
  void UseSymbol(std::string_view name, const Symbol& symbol, Operand& operand) const;

  Cursor& cursor_;
  SymbolTable& symbols_;
  const Function& function_;
  const std::unordered_set<std::string_view>& module_names_;
  Budget& budget_;
};

}  // namespace kernelpro::ptx
