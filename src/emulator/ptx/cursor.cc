// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/cursor.h"

#include <fmt/core.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/text.h"
#include "emulator/ptx/lexer.h"

namespace kernelpro::ptx {
namespace {

constexpr std::size_t kLongestQuote = 80;

}  // namespace

std::string Quoted(std::string_view name) {
  return "'" + Printable(name, kLongestQuote) + "'";
}

Error Cursor::ErrorAt(std::uint32_t line, std::string_view what) const {
  return Fail(ErrorCode::kParse, fmt::format("{}:{}: {}", label_, line, what));
}

Error Cursor::Unexpected(std::string_view wanted) const {
  std::string found;
  switch (token_.kind) {
    case Token::Kind::kEnd:
      found = "the end of the text";
      break;
    case Token::Kind::kBad:
      found = token_.text;
      break;
    case Token::Kind::kDirective:
      found = Quoted("." + std::string(token_.text.substr(0, kLongestQuote)));
      break;
    default:
      found = Quoted(token_.text);
      break;
  }
  return ErrorAt(token_.line, fmt::format("expected {}, found {}", wanted, found));
}

Status Cursor::Expect(char symbol) {
  if (!Accept(symbol)) {
    return Unexpected(fmt::format("'{}'", symbol));
  }
  return Ok();
}

Result<std::string_view> Cursor::ExpectWord(std::string_view wanted) {
  if (token_.kind != Token::Kind::kWord) {
    return Unexpected(wanted);
  }
  return Next().text;
}

Result<std::string_view> Cursor::ExpectString(std::string_view wanted) {
  if (token_.kind != Token::Kind::kString) {
    return Unexpected(wanted);
  }
  return Next().text;
}

Result<std::uint64_t> Cursor::ExpectInteger(std::string_view wanted) {
  const bool negative = Accept('-');
  if (token_.kind != Token::Kind::kInteger) {
    return Unexpected(wanted);
  }
  const std::uint64_t bits = Next().bits;
  return negative ? 0 - bits : bits;
}

Result<std::uint32_t> Cursor::ExpectCount(std::string_view wanted, std::uint32_t limit) {
  if (token_.kind != Token::Kind::kInteger) {
    return Unexpected(wanted);
  }
  if (token_.bits > limit) {
    return Unexpected(fmt::format("{} of at most {}", wanted, limit));
  }
  return static_cast<std::uint32_t>(Next().bits);
}

Status Cursor::SkipToClosing(char open, char close) {
  std::size_t depth = 1;
  while (depth > 0) {
    if (token_.kind == Token::Kind::kEnd || token_.kind == Token::Kind::kBad) {
      return Unexpected(fmt::format("'{}'", close));
    }
    depth += token_.Is(open) ? 1U : 0U;
    depth -= token_.Is(close) ? 1U : 0U;
    Next();
  }
  return Ok();
}

}  // namespace kernelpro::ptx
