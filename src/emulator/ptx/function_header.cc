// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "emulator/ptx/cursor.h"
#include "emulator/ptx/function_parser.h"
#include "emulator/ptx/lexer.h"
#include "emulator/ptx/line_table.h"
#include "emulator/ptx/module.h"
#include "emulator/ptx/variable_parser.h"

namespace kernelpro::ptx {
namespace {

/// After `(`: parameters up to `)`.
Status ParseParameters(Cursor& cursor, std::vector<Parameter>& parameters) {
  if (cursor.Accept(')')) {
    return Ok();
  }
  std::uint32_t end = 0;
  do {
    const std::uint32_t line = cursor.Peek().line;
    std::string_view name;
    KP_ASSIGN_OR_RETURN(Parameter parameter, ParseParameter(cursor, name));
    if (!PlaceParameter(parameter, end)) {
      return cursor.ErrorAt(line, "the parameters are larger than 256 MiB together");
    }
    parameters.push_back(std::move(parameter));
  } while (cursor.Accept(','));
  return cursor.Expect(')');
}

/// `x[, y[, z]]`; what is left out is 1.
Status ParseShape(Cursor& cursor, std::uint32_t (&shape)[3]) {
  shape[1] = shape[2] = 1;
  for (std::uint32_t& extent : shape) {
    KP_ASSIGN_OR_RETURN(extent, cursor.ExpectCount("a number of threads or CTAs"));
    if (&extent == &shape[2] || !cursor.Accept(',')) {
      break;
    }
  }
  return Ok();
}

Status ParsePragmas(Cursor& cursor) {
  do {
    KP_RETURN_IF_ERROR(cursor.ExpectString("a pragma in quotes"));
  } while (cursor.Accept(','));
  cursor.Accept(';');
  return Ok();
}

Status ParseCount(Cursor& cursor, std::uint32_t& count) {
  KP_ASSIGN_OR_RETURN(count, cursor.ExpectCount("a number"));
  return Ok();
}

/// After `.attribute`: `(.unified(1, 2))`.
Status SkipAttribute(Cursor& cursor) {
  KP_RETURN_IF_ERROR(cursor.Expect('('));
  return cursor.SkipToClosing('(', ')');
}

/// One of the directives between the parameters and the body.
Status ParseLaunchDirective(Cursor& cursor, LineTable& lines, Function& function) {
  const std::string_view name = cursor.Peek().text;
  std::uint32_t ignored = 0;
  const auto accept = [&](std::string_view directive) { return cursor.AcceptDirective(directive); };
  if (accept("maxntid")) {
    return ParseShape(cursor, function.max_ntid);
  }
  if (accept("reqntid")) {
    return ParseShape(cursor, function.req_ntid);
  }
  if (accept("reqnctapercluster")) {
    return ParseShape(cursor, function.req_cluster);
  }
  if (accept("minnctapersm")) {
    return ParseCount(cursor, function.min_ctas_per_sm);
  }
  if (accept("maxnreg")) {
    return ParseCount(cursor, function.max_registers);
  }
  if (accept("maxclusterrank")) {
    return ParseCount(cursor, function.max_cluster_ctas);
  }
  if (accept("maxnctapersm") || accept("abi_preserve") || accept("abi_preserve_control")) {
    return ParseCount(cursor, ignored);
  }
  if (accept("explicitcluster")) {
    function.explicit_cluster = true;
    return Ok();
  }
  if (accept("noreturn") || accept("blocksareclusters")) {
    return Ok();
  }
  if (accept("attribute")) {
    return SkipAttribute(cursor);
  }
  if (accept("pragma")) {
    return ParsePragmas(cursor);
  }
  if (accept("loc")) {
    return lines.ParseLocation(cursor);
  }
  return cursor.ErrorAt(cursor.Peek().line,
                        fmt::format("unknown function directive {}", Quoted(name)));
}

/// `(.param .b32 r)` where there is one.
Status ParseOptionalParameters(Cursor& cursor, std::vector<Parameter>& parameters) {
  return cursor.Accept('(') ? ParseParameters(cursor, parameters) : Ok();
}

}  // namespace

Status ParseFunctionHeader(Cursor& cursor, LineTable& lines, Function& function,
                           std::string_view& name) {
  while (cursor.AcceptDirective("attribute")) {
    KP_RETURN_IF_ERROR(SkipAttribute(cursor));
  }
  if (!function.is_entry) {
    KP_RETURN_IF_ERROR(ParseOptionalParameters(cursor, function.returns));
  }
  function.ptx_line = cursor.Peek().line;
  KP_ASSIGN_OR_RETURN(name, cursor.ExpectWord("the function's name"));
  function.name = name;
  KP_RETURN_IF_ERROR(ParseOptionalParameters(cursor, function.parameters));
  while (cursor.Peek().kind == Token::Kind::kDirective) {
    KP_RETURN_IF_ERROR(ParseLaunchDirective(cursor, lines, function));
  }
  return Ok();
}

}  // namespace kernelpro::ptx
