// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "emulator/ptx/lexer.h"

namespace kernelpro::ptx {

/// The token stream with one token of lookahead, and the errors made from it.
class Cursor {
 public:
  /// Views must outlive the cursor.
  Cursor(std::string_view text, std::string_view label)
      : label_(label), lexer_(text), token_(lexer_.Next()) {}

  [[nodiscard]] const Token& Peek() const { return token_; }

  Token Next() {
    const Token token = token_;
    token_ = lexer_.Next();
    return token;
  }

  bool Accept(char symbol) {
    const bool found = token_.Is(symbol);
    if (found) {
      token_ = lexer_.Next();
    }
    return found;
  }

  bool AcceptDirective(std::string_view name) {
    const bool found = token_.IsDirective(name);
    if (found) {
      token_ = lexer_.Next();
    }
    return found;
  }

  Status Expect(char symbol);
  /// A kWord; `wanted` names it in the message: "a label".
  Result<std::string_view> ExpectWord(std::string_view wanted);
  Result<std::string_view> ExpectString(std::string_view wanted);
  /// A number with an optional minus sign, as a two's complement value.
  Result<std::uint64_t> ExpectInteger(std::string_view wanted);
  /// A number without a sign, at most `limit`.
  Result<std::uint32_t> ExpectCount(std::string_view wanted, std::uint32_t limit = 0xffffffffU);
  /// After `(`: everything up to its `)`, nested pairs too. Likewise for braces.
  Status SkipToClosing(char open, char close);

  /// "<label>:<line>: expected <wanted>, found '<token>'"
  [[nodiscard]] Error Unexpected(std::string_view wanted) const;
  [[nodiscard]] Error ErrorAt(std::uint32_t line, std::string_view what) const;

 private:
  std::string_view label_;
  Lexer lexer_;
  Token token_;
};

/// A name from the text, quoted and made fit for a message.
[[nodiscard]] std::string Quoted(std::string_view name);

}  // namespace kernelpro::ptx
