// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/result.h"
#include "emulator/ptx/budget.h"
#include "emulator/ptx/cursor.h"
#include "emulator/ptx/function_parser.h"
#include "emulator/ptx/lexer.h"
#include "emulator/ptx/line_table.h"
#include "emulator/ptx/module.h"
#include "emulator/ptx/symbol_table.h"
#include "emulator/ptx/variable_parser.h"

namespace kernelpro::ptx {
namespace {

/// A constant written in 64 bits is converted to the instruction's type when it is used (PTX ISA,
/// "Floating-Point Constants").
void NarrowConstants(Instruction& instruction) {
  if (ParseType(instruction.parts.back()) != Type::kF32) {
    return;
  }
  for (Operand& operand : instruction.operands) {
    if (operand.kind == Operand::Kind::kFloat && operand.float_bits == 64) {
      const auto value = static_cast<float>(std::bit_cast<double>(operand.bits));
      operand.bits = std::bit_cast<std::uint32_t>(value);
      operand.float_bits = 32;
    }
  }
}

bool AlwaysLeaves(const Instruction& instruction) {
  const std::string& base = instruction.parts.front();
  return instruction.guard == Operand::kNoRegister &&
         (base == "ret" || base == "exit" || base == "trap" || base == "bra" || base == "brx");
}

}  // namespace

BodyParser::BodyParser(Cursor& cursor, LineTable& lines, Budget& budget,
                       const std::unordered_set<std::string_view>& module_names, Function& function)
    : cursor_(cursor),
      lines_(lines),
      budget_(budget),
      function_(function),
      symbols_(function, module_names),
      operands_(cursor, symbols_, function, module_names, budget) {}

Error BodyParser::Redeclared(std::string_view name, std::uint32_t line) const {
  return cursor_.ErrorAt(line, fmt::format("{} is declared twice in one scope", Quoted(name)));
}

Status BodyParser::Parse() {
  KP_RETURN_IF_ERROR(DeclareParameters());
  while (symbols_.depth() > 0) {
    KP_RETURN_IF_ERROR(ParseStatement());
  }
  KP_RETURN_IF_ERROR(FillTargetLists());
  EndWithReturn();
  return Ok();
}

Status BodyParser::DeclareParameters() {
  for (const auto* list : {&function_.parameters, &function_.returns}) {
    for (const Parameter& parameter : *list) {
      if (parameter.name != "_" &&
          !symbols_.Declare(parameter.name, {.kind = Symbol::Kind::kParameter})) {
        return Redeclared(parameter.name, function_.ptx_line);
      }
    }
  }
  return Ok();
}

Status BodyParser::ParseStatement() {
  const Token token = cursor_.Peek();
  if (token.kind == Token::Kind::kDirective) {
    return ParseDirective();
  }
  if (cursor_.Accept('@')) {
    return ParseGuarded();
  }
  if (token.kind == Token::Kind::kWord) {
    cursor_.Next();
    if (cursor_.Accept(':')) {
      return ParseLabel(token.text, token.line);
    }
    Instruction instruction;
    instruction.where.ptx_line = token.line;
    return ParseInstruction(std::move(instruction), token.text);
  }
  if (cursor_.Accept('{')) {
    return symbols_.Open()
               ? Ok()
               : Status(cursor_.ErrorAt(token.line, fmt::format("scopes more than {} deep",
                                                                SymbolTable::kDeepestScope)));
  }
  if (cursor_.Accept('}')) {
    return CloseScope();
  }
  return cursor_.Accept(';') ? Ok() : Status(cursor_.Unexpected("a statement or '}'"));
}

Status BodyParser::ParseDirective() {
  const auto accept = [&](std::string_view name) { return cursor_.AcceptDirective(name); };
  if (accept("reg")) {
    return ParseRegisters();
  }
  if (cursor_.Peek().IsDirective("param")) {
    return ParseSlot();
  }
  if (accept("loc")) {
    return lines_.ParseLocation(cursor_);
  }
  const bool is_extern = accept("extern");
  if (accept("shared")) {
    return ParseVariables(Space::kShared, is_extern);
  }
  if (accept("local")) {
    return ParseVariables(Space::kLocal, is_extern);
  }
  if (accept("pragma")) {
    return ParsePragma();
  }
  return cursor_.Unexpected("a statement");
}

Status BodyParser::ParseRegisters() {
  KP_ASSIGN_OR_RETURN(const Declaration declaration, ParseDeclaration(cursor_, false));
  if (declaration.lanes > 1) {
    return cursor_.Unexpected(
        "a scalar register (vector registers are not supported); before this");
  }
  do {
    const std::uint32_t line = cursor_.Peek().line;
    KP_ASSIGN_OR_RETURN(const std::string_view name, cursor_.ExpectWord("a register name"));
    bool is_new = false;
    if (cursor_.Accept('<')) {
      KP_ASSIGN_OR_RETURN(const std::uint32_t count, cursor_.ExpectCount("a number of registers"));
      KP_RETURN_IF_ERROR(cursor_.Expect('>'));
      is_new = symbols_.DeclareRange(name, count, declaration.type);
    } else {
      is_new = symbols_.DeclareRegister(name, declaration.type);
    }
    if (!is_new) {
      return Redeclared(name, line);
    }
  } while (cursor_.Accept(','));
  return cursor_.Expect(';');
}

Status BodyParser::ParseSlot() {
  const std::uint32_t line = cursor_.Peek().line;
  std::string_view name;
  KP_ASSIGN_OR_RETURN(Parameter slot, ParseParameter(cursor_, name));
  KP_RETURN_IF_ERROR(cursor_.Expect(';'));
  if (!PlaceParameter(slot, slot_end_)) {
    return cursor_.ErrorAt(line, "the .param variables of this body are larger than 256 MiB");
  }
  const auto index = static_cast<std::uint32_t>(function_.call_slots.size());
  if (!symbols_.Declare(name, {.kind = Symbol::Kind::kSlot, .index = index})) {
    return Redeclared(name, line);
  }
  slot.name = symbols_.UniqueVariableName(name);
  function_.call_slots.push_back(std::move(slot));
  return Ok();
}

Status BodyParser::ParseVariables(Space space, bool is_extern) {
  return VariableParser(cursor_, budget_)
      .Parse(space, is_extern,
             [&](Variable variable, std::string_view name, std::uint32_t line) -> Status {
               const auto index = static_cast<std::uint32_t>(function_.variables.size());
               if (!symbols_.Declare(name, {.kind = Symbol::Kind::kVariable, .index = index})) {
                 return Redeclared(name, line);
               }
               variable.name = symbols_.UniqueVariableName(name);
               function_.variables.push_back(std::move(variable));
               return Ok();
             });
}

Status BodyParser::ParsePragma() {
  do {
    KP_RETURN_IF_ERROR(cursor_.ExpectString("a pragma in quotes"));
  } while (cursor_.Accept(','));
  return cursor_.Expect(';');
}

Status BodyParser::ParseLabel(std::string_view name, std::uint32_t line) {
  Symbol symbol{.kind = Symbol::Kind::kLabel,
                .index = static_cast<std::uint32_t>(function_.body.size())};
  const bool is_list = cursor_.AcceptDirective("branchtargets");
  const bool is_prototype = !is_list && (cursor_.AcceptDirective("callprototype") ||
                                         cursor_.AcceptDirective("calltargets"));
  if (is_list) {
    symbol = {.kind = Symbol::Kind::kTargetList,
              .index = static_cast<std::uint32_t>(target_lists_.size())};
  } else if (is_prototype) {
    symbol.kind = Symbol::Kind::kPrototype;
  }
  if (!symbols_.Declare(name, symbol)) {
    return Redeclared(name, line);
  }
  if (is_list) {
    return ParseTargetList();
  }
  return is_prototype ? SkipPrototype() : Ok();
}

/// After `.branchtargets`: `L1, L2, L1;`
Status BodyParser::ParseTargetList() {
  const auto list = static_cast<std::uint32_t>(target_lists_.size());
  std::uint32_t count = 0;
  do {
    const std::uint32_t line = cursor_.Peek().line;
    KP_ASSIGN_OR_RETURN(const std::string_view name, cursor_.ExpectWord("a label"));
    symbols_.Refer(
        {.name = name, .line = line, .holder = list, .operand = count++, .in_target_list = true});
  } while (cursor_.Accept(','));
  target_lists_.emplace_back(count, 0);
  return cursor_.Expect(';');
}

/// A prototype says nothing that the call's own arguments do not.
Status BodyParser::SkipPrototype() {
  while (!cursor_.Peek().Is(';')) {
    const Token token = cursor_.Peek();
    const bool fits =
        token.kind == Token::Kind::kWord || token.kind == Token::Kind::kDirective ||
        token.kind == Token::Kind::kInteger ||
        (token.kind == Token::Kind::kSymbol &&
         std::string_view("()[],").find(token.text.front()) != std::string_view::npos);
    if (!fits) {
      return cursor_.Unexpected("a prototype or a list of functions, then ';'");
    }
    cursor_.Next();
  }
  return cursor_.Expect(';');
}

Status BodyParser::ParseGuarded() {
  Instruction instruction;
  KP_RETURN_IF_ERROR(operands_.ParseGuard(instruction));
  instruction.where.ptx_line = cursor_.Peek().line;
  KP_ASSIGN_OR_RETURN(const std::string_view base, cursor_.ExpectWord("an instruction"));
  return ParseInstruction(std::move(instruction), base);
}

Status BodyParser::ParseInstruction(Instruction instruction, std::string_view base) {
  if (++budget_.instructions > kMostInstructions) {
    return cursor_.Unexpected(
        fmt::format("at most {} instructions in one module", kMostInstructions));
  }
  if (base.front() == '%' || base.front() == '$' || base == "_") {
    return cursor_.ErrorAt(instruction.where.ptx_line,
                           fmt::format("expected an instruction, found {}", Quoted(base)));
  }
  instruction.where.line = lines_.current();
  instruction.opcode = base;
  instruction.parts.emplace_back(base);
  while (cursor_.Peek().kind == Token::Kind::kDirective) {
    const std::string_view modifier = cursor_.Next().text;
    instruction.opcode += '.';
    instruction.opcode += modifier;
    instruction.parts.emplace_back(modifier);
  }
  if (base == "bra") {
    KP_RETURN_IF_ERROR(ParseLabelOperand(instruction));
  } else if (base == "brx") {
    KP_RETURN_IF_ERROR(ParseBranchByIndex(instruction));
  } else if (!cursor_.Peek().Is(';')) {
    KP_RETURN_IF_ERROR(ParseOperands(instruction, base == "call"));
  }
  if (!cursor_.Accept(';')) {
    return cursor_.Unexpected(
        fmt::format("',' or ';' after the operands of {}", instruction.opcode.substr(0, 80)));
  }
  NarrowConstants(instruction);
  function_.body.push_back(std::move(instruction));
  return Ok();
}

Status BodyParser::ParseOperands(Instruction& instruction, bool is_call) {
  do {
    KP_RETURN_IF_ERROR(operands_.Parse(instruction.operands.emplace_back(), is_call));
  } while (cursor_.Accept(','));
  return Ok();
}

Status BodyParser::ParseLabelOperand(Instruction& instruction) {
  const std::uint32_t line = cursor_.Peek().line;
  KP_ASSIGN_OR_RETURN(const std::string_view name, cursor_.ExpectWord("a label"));
  symbols_.Refer({.name = name,
                  .line = line,
                  .holder = static_cast<std::uint32_t>(function_.body.size()),
                  .operand = static_cast<std::uint32_t>(instruction.operands.size())});
  Operand& operand = instruction.operands.emplace_back();
  operand.kind = Operand::Kind::kLabel;
  operand.text = name;
  return Ok();
}

Status BodyParser::ParseBranchByIndex(Instruction& instruction) {
  KP_RETURN_IF_ERROR(operands_.Parse(instruction.operands.emplace_back(), false));
  KP_RETURN_IF_ERROR(cursor_.Expect(','));
  return ParseLabelOperand(instruction);
}

Status BodyParser::CloseScope() {
  std::vector<std::pair<LabelReference, Symbol>> settled;
  std::vector<LabelReference> unknown;
  symbols_.Close(settled, unknown);
  if (!unknown.empty()) {
    return cursor_.ErrorAt(unknown.front().line,
                           fmt::format("label {} is not in this function, or in a scope that this "
                                       "line does not see",
                                       Quoted(unknown.front().name)));
  }
  for (const auto& [reference, symbol] : settled) {
    KP_RETURN_IF_ERROR(Settle(reference, symbol));
  }
  return Ok();
}

Status BodyParser::Settle(const LabelReference& reference, const Symbol& symbol) {
  if (symbol.kind == Symbol::Kind::kLabel) {
    highest_target_ = std::max(highest_target_, symbol.index);
  }
  if (reference.in_target_list && symbol.kind == Symbol::Kind::kLabel) {
    target_lists_[reference.holder][reference.operand] = symbol.index;
    return Ok();
  }
  const bool wants_list =
      !reference.in_target_list && function_.body[reference.holder].parts.front() == "brx";
  const auto wanted = wants_list ? Symbol::Kind::kTargetList : Symbol::Kind::kLabel;
  if (reference.in_target_list || symbol.kind != wanted) {
    return cursor_.ErrorAt(reference.line,
                           fmt::format("{} is not a {}", Quoted(reference.name),
                                       wants_list ? "list of .branchtargets" : "label"));
  }
  if (wants_list) {
    indexed_branches_.emplace_back(reference.holder, symbol.index);
  } else {
    function_.body[reference.holder].operands[reference.operand].target = symbol.index;
  }
  return Ok();
}

Status BodyParser::FillTargetLists() {
  for (const auto& [instruction, list] : indexed_branches_) {
    budget_.branch_targets += target_lists_[list].size();
    if (budget_.branch_targets > kMostBranchTargets) {
      return cursor_.ErrorAt(
          function_.body[instruction].where.ptx_line,
          fmt::format("more than {} branch targets in one module", kMostBranchTargets));
    }
    function_.body[instruction].branch_targets = target_lists_[list];
  }
  return Ok();
}

void BodyParser::EndWithReturn() {
  const std::size_t size = function_.body.size();
  if (size > 0 && highest_target_ < size && AlwaysLeaves(function_.body.back())) {
    return;
  }
  Instruction end;
  end.opcode = "ret";
  end.parts = {"ret"};
  end.where = {.ptx_line = cursor_.Peek().line, .file = 0, .line = lines_.current()};
  function_.body.push_back(std::move(end));
}

}  // namespace kernelpro::ptx
