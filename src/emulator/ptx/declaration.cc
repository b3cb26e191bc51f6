// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "emulator/ptx/cursor.h"
#include "emulator/ptx/lexer.h"
#include "emulator/ptx/module.h"
#include "emulator/ptx/variable_parser.h"

namespace kernelpro::ptx {
namespace {

constexpr std::size_t kMostDimensions = 8;
constexpr std::uint32_t kLargestAlignment = 1U << 20U;
constexpr std::uint32_t kLargestParameterBlock = 256U << 20U;

Status ParseAlignment(Cursor& cursor, std::uint32_t& alignment) {
  const std::uint32_t line = cursor.Peek().line;
  KP_ASSIGN_OR_RETURN(alignment, cursor.ExpectCount("an alignment", kLargestAlignment));
  if (!std::has_single_bit(alignment)) {
    return cursor.ErrorAt(line, fmt::format("alignment {} is not a power of two", alignment));
  }
  return Ok();
}

/// After `.ptr`: the state space pointed to and its alignment, which say nothing about the
/// parameter itself.
Status SkipPointerAttributes(Cursor& cursor) {
  for (const std::string_view space : {"const", "global", "local", "shared", "param", "generic"}) {
    if (cursor.AcceptDirective(space)) {
      break;
    }
  }
  std::uint32_t alignment = 0;
  return cursor.AcceptDirective("align") ? ParseAlignment(cursor, alignment) : Ok();
}

Status SkipAttribute(Cursor& cursor) {
  KP_RETURN_IF_ERROR(cursor.Expect('('));
  return cursor.SkipToClosing('(', ')');
}

/// One directive that is not a type.
Status ParseQualifier(Cursor& cursor, bool is_parameter, Declaration& declaration) {
  if (cursor.AcceptDirective("align")) {
    return ParseAlignment(cursor, declaration.alignment);
  }
  if (cursor.AcceptDirective("v2")) {
    declaration.lanes = 2;
    return Ok();
  }
  if (cursor.AcceptDirective("v4")) {
    declaration.lanes = 4;
    return Ok();
  }
  if (cursor.AcceptDirective("attribute")) {
    return SkipAttribute(cursor);
  }
  if (is_parameter && cursor.AcceptDirective("ptr")) {
    return SkipPointerAttributes(cursor);
  }
  return cursor.Unexpected("a type or .align");
}

}  // namespace

Result<Declaration> ParseDeclaration(Cursor& cursor, bool is_parameter) {
  Declaration declaration;
  while (cursor.Peek().kind == Token::Kind::kDirective) {
    const Type type = ParseType(cursor.Peek().text);
    if (type == Type::kNone) {
      KP_RETURN_IF_ERROR(ParseQualifier(cursor, is_parameter, declaration));
      continue;
    }
    if (declaration.type != Type::kNone) {
      return cursor.Unexpected("one type only");
    }
    cursor.Next();
    declaration.type = type;
  }
  if (declaration.type == Type::kNone) {
    return cursor.Unexpected("a type");
  }
  return declaration;
}

Result<std::vector<std::uint64_t>> ParseDimensions(Cursor& cursor) {
  std::vector<std::uint64_t> dimensions;
  while (cursor.Accept('[')) {
    if (dimensions.size() >= kMostDimensions) {
      return cursor.Unexpected(fmt::format("at most {} dimensions", kMostDimensions));
    }
    if (cursor.Accept(']')) {
      if (!dimensions.empty()) {
        return cursor.Unexpected("a size in every dimension but the first; before this");
      }
      dimensions.push_back(0);
      continue;
    }
    const Token& size = cursor.Peek();
    if (size.kind != Token::Kind::kInteger) {
      return cursor.Unexpected("an array size");
    }
    if (size.bits == 0 || size.bits > kLargestVariable) {
      return cursor.Unexpected("an array size from 1 to 2^62");
    }
    dimensions.push_back(cursor.Next().bits);
    KP_RETURN_IF_ERROR(cursor.Expect(']'));
  }
  return dimensions;
}

Result<Parameter> ParseParameter(Cursor& cursor, std::string_view& name) {
  if (cursor.Peek().IsDirective("reg")) {
    return cursor.Unexpected("a .param (parameters in registers are not supported)");
  }
  if (!cursor.AcceptDirective("param")) {
    return cursor.Unexpected("a .param");
  }
  KP_ASSIGN_OR_RETURN(const Declaration declaration, ParseDeclaration(cursor, true));
  const std::uint32_t line = cursor.Peek().line;
  KP_ASSIGN_OR_RETURN(name, cursor.ExpectWord("the parameter's name"));
  KP_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> dimensions, ParseDimensions(cursor));
  std::uint64_t bytes = std::uint64_t{SizeOf(declaration.type)} * declaration.lanes;
  const std::uint64_t natural = bytes;
  for (const std::uint64_t dimension : dimensions) {
    if (dimension > kLargestParameterBlock || bytes * dimension > kLargestParameterBlock) {
      return cursor.ErrorAt(line, fmt::format("parameter {} is larger than 256 MiB", Quoted(name)));
    }
    bytes *= dimension;
  }
  Parameter parameter;
  parameter.name = name;
  parameter.type = declaration.type;
  parameter.alignment = declaration.alignment;
  if (parameter.alignment == 0) {
    parameter.alignment = natural == 0 ? 1 : static_cast<std::uint32_t>(natural);
  }
  parameter.bytes = static_cast<std::uint32_t>(bytes);
  return parameter;
}

bool PlaceParameter(Parameter& parameter, std::uint32_t& end) {
  const std::uint64_t mask = std::uint64_t{parameter.alignment} - 1;
  const std::uint64_t offset = (std::uint64_t{end} + mask) & ~mask;
  if (offset + parameter.bytes > kLargestParameterBlock) {
    return false;
  }
  parameter.offset = static_cast<std::uint32_t>(offset);
  end = static_cast<std::uint32_t>(offset + parameter.bytes);
  return true;
}

}  // namespace kernelpro::ptx
