// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kernelpro::ptx {

/// One token of PTX text; `text` is a view into the input.
struct Token {
  enum class Kind : std::uint8_t {
    kEnd,
    kWord,       ///< %r1, ld, $L__BB0_2, _
    kDirective,  ///< without its dot: reg, f32, 2d, shared::cluster, L2::128B
    kInteger,    ///< value in bits: 12, 0x1F, 017, 0b101, 3U
    kFloat,      ///< 0fXXXXXXXX (float_bits 32), 0dXXXXXXXXXXXXXXXX or 1.5e3 (float_bits 64)
    kString,     ///< without the quotes
    kSymbol,     ///< one character of punctuation
    kBad,        ///< text says what is wrong
  };
  Kind kind = Kind::kEnd;
  std::uint8_t float_bits = 0;
  bool decimal = false;  ///< kFloat written in decimal
  std::uint32_t line = 1;
  std::string_view text;
  std::uint64_t bits = 0;

  [[nodiscard]] bool Is(char symbol) const {
    return kind == Kind::kSymbol && text.front() == symbol;
  }

  [[nodiscard]] bool IsWord(std::string_view word) const {
    return kind == Kind::kWord && text == word;
  }

  [[nodiscard]] bool IsDirective(std::string_view name) const {
    return kind == Kind::kDirective && text == name;
  }
};

/// Cuts PTX text into tokens; comments, `#` lines and the old `@@DWARF` lines are blank space. Time
/// is linear in the text, and no byte is read past its end.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  /// Stays at kEnd. A parser stops at kBad.
  [[nodiscard]] Token Next();

 private:
  [[nodiscard]] char At(std::size_t offset) const {
    return position_ + offset < text_.size() ? text_[position_ + offset] : '\0';
  }

  /// False at a comment that never ends.
  bool SkipBlanks();
  void SkipLine();
  bool SkipBlockComment();
  void LexWord(Token& token);
  void LexDirective(Token& token);
  void LexString(Token& token);
  void LexNumber(Token& token);
  void LexRadix(Token& token, int radix);
  void LexFloatBits(Token& token);
  void LexDecimalFloat(Token& token);
  void FinishInteger(Token& token, std::size_t begin, int radix);
  [[nodiscard]] static Token Bad(Token token, std::string_view what);

  std::string_view text_;
  std::size_t position_ = 0;
  std::uint32_t line_ = 1;
};

}  // namespace kernelpro::ptx
