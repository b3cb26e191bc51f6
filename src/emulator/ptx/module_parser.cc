// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/result.h"
#include "emulator/ptx/budget.h"
#include "emulator/ptx/cursor.h"
#include "emulator/ptx/function_parser.h"
#include "emulator/ptx/lexer.h"
#include "emulator/ptx/line_table.h"
#include "emulator/ptx/module.h"
#include "emulator/ptx/variable_parser.h"

namespace kernelpro::ptx {
namespace {

class ModuleParser {
 public:
  ModuleParser(std::string_view text, std::string label)
      : label_(std::move(label)), cursor_(text, label_) {
    module_.files.emplace_back();
  }

  Result<Module> Run() {
    KP_RETURN_IF_ERROR(ParseVersion());
    while (cursor_.Peek().kind != Token::Kind::kEnd) {
      KP_RETURN_IF_ERROR(ParseDirective());
    }
    lines_.Resolve(module_);
    module_.label = label_;
    return std::move(module_);
  }

 private:
  /// `.version 9.0` comes first: it tells PTX from any other text at once.
  Status ParseVersion() {
    if (!cursor_.AcceptDirective("version")) {
      return cursor_.Unexpected(".version, as PTX text begins");
    }
    const std::string_view text = cursor_.Peek().text;
    const std::size_t dot = text.find('.');
    if (cursor_.Peek().kind != Token::Kind::kFloat || dot == std::string_view::npos ||
        !ToNumber(text.substr(0, dot), module_.version_major) ||
        !ToNumber(text.substr(dot + 1), module_.version_minor)) {
      return cursor_.Unexpected("a version such as 9.0");
    }
    cursor_.Next();
    return Ok();
  }

  static bool ToNumber(std::string_view digits, std::uint32_t& number) {
    const char* end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, number);
    return error == std::errc{} && stop == end;
  }

  Status ParseDirective() {
    const auto accept = [&](std::string_view name) { return cursor_.AcceptDirective(name); };
    if (accept("target")) {
      return ParseTarget();
    }
    if (accept("address_size")) {
      return ParseAddressSize();
    }
    if (accept("file")) {
      return lines_.ParseFile(cursor_, module_.files);
    }
    if (accept("loc")) {
      return lines_.ParseLocation(cursor_);
    }
    if (accept("section")) {
      return SkipSection();
    }
    if (accept("pragma")) {
      KP_RETURN_IF_ERROR(cursor_.ExpectString("a pragma in quotes"));
      return cursor_.Expect(';');
    }
    return cursor_.Accept(';') ? Ok() : ParseDeclaredEntity();
  }

  /// `sm_90a`, or with options: `sm_90, debug`.
  Status ParseTarget() {
    KP_ASSIGN_OR_RETURN(const std::string_view target, cursor_.ExpectWord("a target"));
    module_.target = target;
    while (cursor_.Accept(',')) {
      KP_RETURN_IF_ERROR(cursor_.ExpectWord("a target option"));
    }
    return Ok();
  }

  Status ParseAddressSize() {
    if (cursor_.Peek().kind == Token::Kind::kInteger && cursor_.Peek().bits != 64) {
      return cursor_.Unexpected("64 (other address sizes are not supported)");
    }
    KP_RETURN_IF_ERROR(cursor_.ExpectCount("an address size"));
    return Ok();
  }

  /// Debug information in DWARF: `.section .debug_str { ... }`.
  Status SkipSection() {
    if (cursor_.Peek().kind != Token::Kind::kDirective &&
        cursor_.Peek().kind != Token::Kind::kWord) {
      return cursor_.Unexpected("the section's name");
    }
    cursor_.Next();
    KP_RETURN_IF_ERROR(cursor_.Expect('{'));
    return cursor_.SkipToClosing('{', '}');
  }

  /// A variable or function after its linkage.
  Status ParseDeclaredEntity() {
    bool is_extern = false;
    while (true) {
      if (cursor_.AcceptDirective("extern")) {
        is_extern = true;
      } else if (!cursor_.AcceptDirective("visible") && !cursor_.AcceptDirective("weak") &&
                 !cursor_.AcceptDirective("common")) {
        break;
      }
    }
    if (cursor_.AcceptDirective("entry")) {
      return ParseFunction(true);
    }
    if (cursor_.AcceptDirective("func")) {
      return ParseFunction(false);
    }
    if (cursor_.AcceptDirective("global")) {
      return ParseVariables(Space::kGlobal, is_extern);
    }
    if (cursor_.AcceptDirective("const")) {
      return ParseVariables(Space::kConst, is_extern);
    }
    if (cursor_.AcceptDirective("shared")) {
      return ParseVariables(Space::kShared, is_extern);
    }
    if (cursor_.Peek().IsDirective("alias") || cursor_.Peek().IsDirective("local") ||
        cursor_.Peek().IsDirective("tex")) {
      return cursor_.Unexpected("a directive that this parser supports at module scope");
    }
    return cursor_.Unexpected("a function, a variable or a module directive");
  }

  Status ParseVariables(Space space, bool is_extern) {
    return VariableParser(cursor_, budget_)
        .Parse(space, is_extern, [&](Variable variable, std::string_view name, std::uint32_t line) {
          return AddVariable(std::move(variable), name, line);
        });
  }

  /// An .extern declaration may come before or after the definition of the same name.
  Status AddVariable(Variable variable, std::string_view name, std::uint32_t line) {
    const auto [known, is_new] = variables_.try_emplace(name, module_.variables.size());
    if (is_new && names_.insert(name).second) {
      module_.variables.push_back(std::move(variable));
      return Ok();
    }
    if (is_new || (!variable.is_extern && !module_.variables[known->second].is_extern)) {
      return cursor_.ErrorAt(line, fmt::format("{} is declared twice", Quoted(name)));
    }
    if (!variable.is_extern) {
      module_.variables[known->second] = std::move(variable);
    }
    return Ok();
  }

  Status ParseFunction(bool is_entry) {
    Function function;
    function.is_entry = is_entry;
    lines_.StartFunction();
    std::string_view name;
    KP_RETURN_IF_ERROR(ParseFunctionHeader(cursor_, lines_, function, name));
    const auto [known, is_new] = functions_.try_emplace(name, module_.functions.size());
    if (is_new && !names_.insert(name).second) {
      return cursor_.ErrorAt(function.ptx_line, fmt::format("{} is declared twice", Quoted(name)));
    }
    if (cursor_.Accept(';')) {
      function.is_declaration = true;
    } else {
      KP_RETURN_IF_ERROR(cursor_.Expect('{'));
      KP_RETURN_IF_ERROR(BodyParser(cursor_, lines_, budget_, names_, function).Parse());
    }
    if (is_new) {
      module_.functions.push_back(std::move(function));
      return Ok();
    }
    Function& earlier = module_.functions[known->second];
    if (!function.is_declaration && !earlier.is_declaration) {
      return cursor_.ErrorAt(function.ptx_line,
                             fmt::format("function {} is defined twice", Quoted(name)));
    }
    if (earlier.is_declaration) {
      earlier = std::move(function);
    }
    return Ok();
  }

  std::string label_;
  Cursor cursor_;
  Module module_;
  LineTable lines_;
  Budget budget_;
  std::unordered_set<std::string_view> names_;  ///< of variables and functions
  std::unordered_map<std::string_view, std::size_t> variables_;
  std::unordered_map<std::string_view, std::size_t> functions_;
};

}  // namespace

Result<Module> Parse(std::string_view text, std::string label) {
  if (text.size() > kLongestText) {
    return Fail(ErrorCode::kParse,
                fmt::format("{}:1: the text is {} bytes long; at most {} are read", label,
                            text.size(), kLongestText));
  }
  return ModuleParser(text, std::move(label)).Run();
}

}  // namespace kernelpro::ptx
