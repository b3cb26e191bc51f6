// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/result.h"
#include "emulator/ptx/budget.h"
#include "emulator/ptx/cursor.h"
#include "emulator/ptx/line_table.h"
#include "emulator/ptx/module.h"
#include "emulator/ptx/operand_parser.h"
#include "emulator/ptx/symbol_table.h"

namespace kernelpro::ptx {

/// After .entry or .func: returns, name, parameters and launch directives, up to the `;` or `{`,
/// which is left. `name` is a view into the text.
[[nodiscard]] Status ParseFunctionHeader(Cursor& cursor, LineTable& lines, Function& function,
                                         std::string_view& name);

/// One function body, from after its `{` to its `}`.
class BodyParser {
 public:
  /// `module_names`: variables and functions declared so far, this function included.
  BodyParser(Cursor& cursor, LineTable& lines, Budget& budget,
             const std::unordered_set<std::string_view>& module_names, Function& function);

  Status Parse();

 private:
  Status DeclareParameters();
  Status ParseStatement();
  Status ParseDirective();
  Status ParseRegisters();
  Status ParseSlot();
  Status ParseVariables(Space space, bool is_extern);
  Status ParsePragma();
  Status ParseLabel(std::string_view name, std::uint32_t line);
  Status ParseTargetList();
  Status SkipPrototype();
  Status ParseGuarded();
  Status ParseInstruction(Instruction instruction, std::string_view base);
  Status ParseOperands(Instruction& instruction, bool is_call);
  Status ParseLabelOperand(Instruction& instruction);
  Status ParseBranchByIndex(Instruction& instruction);
  Status CloseScope();
  Status Settle(const LabelReference& reference, const Symbol& symbol);
  Status FillTargetLists();
  void EndWithReturn();
  [[nodiscard]] Error Redeclared(std::string_view name, std::uint32_t line) const;

  Cursor& cursor_;
  LineTable& lines_;
  Budget& budget_;
  Function& function_;
  SymbolTable symbols_;
  OperandParser operands_;
  std::uint32_t slot_end_ = 0;
  std::uint32_t highest_target_ = 0;
  std::vector<std::vector<std::uint32_t>> target_lists_;
  /// (instruction, list): copied once every label is known.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> indexed_branches_;
};

}  // namespace kernelpro::ptx
