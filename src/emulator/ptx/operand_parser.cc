// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/operand_parser.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "emulator/ptx/cursor.h"
#include "emulator/ptx/lexer.h"
#include "emulator/ptx/module.h"
#include "emulator/ptx/symbol_table.h"

namespace kernelpro::ptx {
namespace {

using Kind = Operand::Kind;

constexpr std::array<std::pair<std::string_view, Special>, 30> kSpecials = {{
    {"%tid.x", Special::kTidX},
    {"%tid.y", Special::kTidY},
    {"%tid.z", Special::kTidZ},
    {"%ntid.x", Special::kNtidX},
    {"%ntid.y", Special::kNtidY},
    {"%ntid.z", Special::kNtidZ},
    {"%ctaid.x", Special::kCtaidX},
    {"%ctaid.y", Special::kCtaidY},
    {"%ctaid.z", Special::kCtaidZ},
    {"%nctaid.x", Special::kNctaidX},
    {"%nctaid.y", Special::kNctaidY},
    {"%nctaid.z", Special::kNctaidZ},
    {"%laneid", Special::kLaneId},
    {"%warpid", Special::kWarpId},
    {"%nwarpid", Special::kNwarpId},
    {"%smid", Special::kSmId},
    {"%nsmid", Special::kNsmId},
    {"%gridid", Special::kGridId},
    {"%lanemask_eq", Special::kLanemaskEq},
    {"%lanemask_le", Special::kLanemaskLe},
    {"%lanemask_lt", Special::kLanemaskLt},
    {"%lanemask_ge", Special::kLanemaskGe},
    {"%lanemask_gt", Special::kLanemaskGt},
    {"%clock", Special::kClock},
    {"%clock_hi", Special::kClockHi},
    {"%clock64", Special::kClock64},
    {"%globaltimer", Special::kGlobalTimer},
    {"%globaltimer_lo", Special::kGlobalTimerLo},
    {"%globaltimer_hi", Special::kGlobalTimerHi},
    {"%dynamic_smem_size", Special::kDynamicSmemSize},
}};

constexpr std::array<std::string_view, 8> kVectorSpecials = {
    "%tid",       "%ntid",       "%ctaid",         "%nctaid",
    "%clusterid", "%nclusterid", "%cluster_ctaid", "%cluster_nctaid"};

constexpr std::array<std::string_view, 11> kOtherSpecials = {
    "%cluster_ctarank",          "%cluster_nctarank",         "%is_explicit_cluster",
    "%current_graph_exec",       "%aggr_smem_size",           "%reserved_smem_offset_begin",
    "%reserved_smem_offset_end", "%reserved_smem_offset_cap", "%reserved_smem_offset_0",
    "%reserved_smem_offset_1",   "%total_smem_size"};

/// %envreg0 to %envreg31, %pm0 to %pm7 and %pm0_64 to %pm7_64.
bool IsNumberedSpecial(std::string_view name) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (name.starts_with("%envreg")) {
    name.remove_prefix(7);
    return !name.empty() && name.size() <= 2 && std::ranges::all_of(name, is_digit);
  }
  if (name.starts_with("%pm")) {
    name.remove_prefix(3);
    return !name.empty() && is_digit(name.front()) && (name.size() == 1 || name.substr(1) == "_64");
  }
  return false;
}

bool IsComponent(const Token& token) {
  return token.kind == Token::Kind::kDirective && token.text.size() == 1 &&
         std::string_view("xyzw").find(token.text.front()) != std::string_view::npos;
}

}  // namespace

Status OperandParser::Parse(Operand& operand, bool lists) {
  if (lists && cursor_.Accept('(')) {
    return ParseVector(operand, ')', 0);
  }
  return ParseOne(operand, 0);
}

Status OperandParser::ParseGuard(Instruction& instruction) {
  instruction.guard_negated = cursor_.Accept('!');
  const std::uint32_t line = cursor_.Peek().line;
  KP_ASSIGN_OR_RETURN(const std::string_view name, cursor_.ExpectWord("a predicate register"));
  const auto symbol = symbols_.Find(name);
  if (!symbol || symbol->kind != Symbol::Kind::kRegister || symbol->type != Type::kPred) {
    return cursor_.ErrorAt(line, fmt::format("{} is not a predicate register here", Quoted(name)));
  }
  instruction.guard = symbol->index;
  return Ok();
}

/// One operand and, after it, the second of a pair: `%p1|%p2`.
Status OperandParser::ParseOne(Operand& operand, int depth) {
  if (++budget_.operands > kMostOperands) {
    return cursor_.Unexpected(fmt::format("at most {} operands in one module", kMostOperands));
  }
  const Token& token = cursor_.Peek();
  if (token.Is('{')) {
    cursor_.Next();
    return ParseVector(operand, '}', depth);
  }
  if (token.Is('[')) {
    cursor_.Next();
    return ParseAddress(operand, depth);
  }
  if (token.kind != Token::Kind::kWord && !token.Is('!')) {
    return ParseNumber(operand);
  }
  operand.negated = cursor_.Accept('!');
  KP_RETURN_IF_ERROR(ParseName(operand));
  if (operand.negated && operand.kind != Kind::kRegister) {
    return cursor_.Unexpected("a predicate register after '!', before this");
  }
  if (operand.kind == Kind::kSymbol) {
    return ParseOffset(operand);
  }
  if (cursor_.Accept('|')) {
    Operand pair;
    pair.kind = Kind::kPredicatePair;
    pair.elements.resize(2);
    pair.elements[0] = std::move(operand);
    KP_RETURN_IF_ERROR(ParseName(pair.elements[1]));
    operand = std::move(pair);
  }
  return Ok();
}

Status OperandParser::ParseVector(Operand& operand, char close, int depth) {
  if (depth >= kDeepest) {
    return cursor_.Unexpected(fmt::format("braces at most {} deep", kDeepest));
  }
  operand.kind = Kind::kVector;
  if (cursor_.Accept(close)) {
    return Ok();
  }
  do {
    KP_RETURN_IF_ERROR(ParseOne(operand.elements.emplace_back(), depth + 1));
  } while (cursor_.Accept(','));
  return cursor_.Expect(close);
}

/// `[%rd1+-4]`, `[sym+8]`, `[64]`, `[%rd9, {%r1, %r2}]`; what follows a comma is in `elements`.
Status OperandParser::ParseAddress(Operand& operand, int depth) {
  if (depth >= kDeepest) {
    return cursor_.Unexpected(fmt::format("brackets at most {} deep", kDeepest));
  }
  operand.kind = Kind::kAddress;
  KP_RETURN_IF_ERROR(ParseAddressTerm(operand, cursor_.Accept('-')));
  while (cursor_.Peek().Is('+') || cursor_.Peek().Is('-')) {
    KP_RETURN_IF_ERROR(ParseAddressTerm(operand, cursor_.Next().Is('-')));
  }
  while (cursor_.Accept(',')) {
    KP_RETURN_IF_ERROR(ParseOne(operand.elements.emplace_back(), depth + 1));
  }
  return cursor_.Expect(']');
}

Status OperandParser::ParseAddressTerm(Operand& operand, bool minus) {
  const Token token = cursor_.Peek();
  if (token.kind != Token::Kind::kWord) {
    KP_ASSIGN_OR_RETURN(const std::uint64_t value, cursor_.ExpectInteger("an address"));
    const auto sum = static_cast<std::uint64_t>(operand.offset) + (minus ? 0 - value : value);
    operand.offset = static_cast<std::int64_t>(sum);
    return Ok();
  }
  Operand base;
  KP_RETURN_IF_ERROR(ParseName(base));
  if (minus || (base.kind != Kind::kRegister && base.kind != Kind::kSymbol)) {
    return cursor_.ErrorAt(token.line,
                           fmt::format("{} cannot be part of an address", Quoted(token.text)));
  }
  const bool is_register = base.kind == Kind::kRegister;
  if (is_register ? operand.reg != Operand::kNoRegister : !operand.text.empty()) {
    return cursor_.ErrorAt(token.line,
                           fmt::format("a second base {} in one address", Quoted(token.text)));
  }
  if (is_register) {
    operand.reg = base.reg;
  } else {
    operand.text = std::move(base.text);
  }
  return Ok();
}

Status OperandParser::ParseNumber(Operand& operand) {
  const bool negative = cursor_.Accept('-');
  const bool inverted = !negative && cursor_.Accept('~');
  const Token token = cursor_.Peek();
  if (token.kind == Token::Kind::kInteger) {
    operand.kind = Kind::kInteger;
    operand.bits = negative ? 0 - token.bits : token.bits;
    operand.bits = inverted ? ~operand.bits : operand.bits;
  } else if (token.kind == Token::Kind::kFloat && !inverted) {
    operand.kind = Kind::kFloat;
    operand.float_bits = token.float_bits;
    operand.bits =
        token.bits ^ (negative ? std::uint64_t{1} << (unsigned{token.float_bits} - 1) : 0);
  } else {
    return cursor_.Unexpected("an operand");
  }
  cursor_.Next();
  return Ok();
}

/// `sym+4`, `sym-4` as a value.
Status OperandParser::ParseOffset(Operand& operand) {
  const bool minus = cursor_.Peek().Is('-');
  if (minus || cursor_.Peek().Is('+')) {
    cursor_.Next();
    KP_ASSIGN_OR_RETURN(const std::uint64_t offset, cursor_.ExpectInteger("an offset"));
    operand.offset = static_cast<std::int64_t>(minus ? 0 - offset : offset);
  }
  return Ok();
}

void OperandParser::UseSymbol(std::string_view name, const Symbol& symbol, Operand& operand) const {
  operand.kind = Kind::kSymbol;
  switch (symbol.kind) {
    case Symbol::Kind::kRegister:
      operand.kind = Kind::kRegister;
      operand.reg = symbol.index;
      break;
    case Symbol::Kind::kVariable:
      operand.text = function_.variables[symbol.index].name;
      break;
    case Symbol::Kind::kSlot:
      operand.text = function_.call_slots[symbol.index].name;
      break;
    default:
      operand.text = name;
      break;
  }
}

Status OperandParser::ParseName(Operand& operand) {
  const std::uint32_t line = cursor_.Peek().line;
  KP_ASSIGN_OR_RETURN(const std::string_view name, cursor_.ExpectWord("a name"));
  if (name == "_") {
    operand.kind = Kind::kSink;
    return Ok();
  }
  const auto symbol = symbols_.Find(name);
  if (!symbol && name.front() == '%') {
    return ParseSpecial(name, line, operand);
  }
  if (!symbol && name == "WARP_SZ") {
    operand.kind = Kind::kInteger;
    operand.bits = 32;
    return Ok();
  }
  if (symbol &&
      (symbol->kind == Symbol::Kind::kLabel || symbol->kind == Symbol::Kind::kTargetList)) {
    return cursor_.ErrorAt(line, fmt::format("label {} used as a value", Quoted(name)));
  }
  if (symbol) {
    UseSymbol(name, *symbol, operand);
  } else if (module_names_.contains(name)) {
    operand.kind = Kind::kSymbol;
    operand.text = name;
  } else {
    return cursor_.ErrorAt(line, fmt::format("{} is not declared here", Quoted(name)));
  }
  if (operand.kind == Kind::kRegister) {
    if (IsComponent(cursor_.Peek())) {
      return cursor_.ErrorAt(line,
                             fmt::format("vector register {} is not supported", Quoted(name)));
    }
    return Ok();
  }
  return Ok();
}

Status OperandParser::ParseSpecial(std::string_view name, std::uint32_t line, Operand& operand) {
  operand.kind = Kind::kSpecial;
  operand.text = name;
  const bool is_vector = std::ranges::find(kVectorSpecials, name) != kVectorSpecials.end();
  if (is_vector && IsComponent(cursor_.Peek())) {
    operand.text += '.';
    operand.text += cursor_.Next().text;
  }
  const auto* const found =
      std::ranges::find(kSpecials, operand.text, &std::pair<std::string_view, Special>::first);
  if (found != kSpecials.end()) {
    operand.special = found->second;
    return Ok();
  }
  operand.special = name == "%total_smem_size" ? Special::kTotalSmemSize : Special::kOther;
  const bool known = std::ranges::find(kOtherSpecials, name) != kOtherSpecials.end();
  if (is_vector || known || IsNumberedSpecial(name)) {
    return Ok();
  }
  return cursor_.ErrorAt(line, fmt::format("register {} is not declared here", Quoted(name)));
}

}  // namespace kernelpro::ptx
