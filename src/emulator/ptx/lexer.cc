// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/lexer.h"

#include <array>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <system_error>

namespace kernelpro::ptx {
namespace {

enum : std::uint8_t { kIsWord = 1, kStartsWord = 2, kIsDigit = 4, kIsHex = 8, kIsBlank = 16 };

constexpr std::array<std::uint8_t, 256> MakeClasses() {
  std::array<std::uint8_t, 256> classes{};
  for (unsigned c = '0'; c <= '9'; ++c) {
    classes[c] = kIsWord | kIsDigit | kIsHex;
  }
  for (unsigned c = 'a'; c <= 'z'; ++c) {
    classes[c] = kIsWord | kStartsWord | (c <= 'f' ? kIsHex : 0);
    classes[c - 'a' + 'A'] = classes[c];
  }
  for (const unsigned char c : {'_', '$'}) {
    classes[c] = kIsWord | kStartsWord;
  }
  classes['%'] = kStartsWord;
  for (const unsigned char c : {' ', '\t', '\r', '\n', '\f', '\v'}) {
    classes[c] = kIsBlank;
  }
  return classes;
}

constexpr std::array<std::uint8_t, 256> kClasses = MakeClasses();

bool Is(char c, std::uint8_t classes) {
  return (kClasses[static_cast<unsigned char>(c)] & classes) != 0;
}

}  // namespace

Token Lexer::Bad(Token token, std::string_view what) {
  token.kind = Token::Kind::kBad;
  token.text = what;
  return token;
}

void Lexer::SkipLine() {
  const std::size_t end = text_.find('\n', position_);
  position_ = end == std::string_view::npos ? text_.size() : end;
}

bool Lexer::SkipBlockComment() {
  const std::size_t end = text_.find("*/", position_ + 2);
  if (end == std::string_view::npos) {
    return false;
  }
  for (; position_ < end; ++position_) {
    line_ += text_[position_] == '\n' ? 1U : 0U;
  }
  position_ = end + 2;
  return true;
}

bool Lexer::SkipBlanks() {
  while (position_ < text_.size()) {
    const char c = text_[position_];
    if (c == '\n') {
      ++line_;
      ++position_;
    } else if (Is(c, kIsBlank)) {
      ++position_;
    } else if (c == '#' || (c == '/' && At(1) == '/') || (c == '@' && At(1) == '@')) {
      SkipLine();
    } else if (c == '/' && At(1) == '*') {
      if (!SkipBlockComment()) {
        return false;
      }
    } else {
      break;
    }
  }
  return true;
}

void Lexer::LexWord(Token& token) {
  const std::size_t begin = position_++;
  while (Is(At(0), kIsWord)) {
    ++position_;
  }
  token.kind = Token::Kind::kWord;
  token.text = text_.substr(begin, position_ - begin);
}

void Lexer::LexDirective(Token& token) {
  const std::size_t begin = ++position_;
  while (Is(At(0), kIsWord) || (At(0) == ':' && At(1) == ':' && Is(At(2), kIsWord))) {
    position_ += At(0) == ':' ? 2 : 1;
  }
  token.kind = Token::Kind::kDirective;
  token.text = text_.substr(begin, position_ - begin);
}

void Lexer::LexString(Token& token) {
  const std::size_t begin = position_ + 1;
  std::size_t end = begin;
  while (end < text_.size() && text_[end] != '"' && text_[end] != '\n') {
    end += text_[end] == '\\' && end + 1 < text_.size() && text_[end + 1] != '\n' ? 2 : 1;
  }
  if (end >= text_.size() || text_[end] != '"') {
    token = Bad(token, "a string that does not end on its line");
    return;
  }
  token.kind = Token::Kind::kString;
  token.text = text_.substr(begin, end - begin);
  position_ = end + 1;
}

void Lexer::FinishInteger(Token& token, std::size_t begin, int radix) {
  const char* first = text_.data() + begin;
  const char* last = text_.data() + text_.size();
  const auto [end, error] = std::from_chars(first, last, token.bits, radix);
  if (error != std::errc{}) {
    token = Bad(token, error == std::errc::result_out_of_range ? "an integer above 64 bits"
                                                               : "a number without digits");
    return;
  }
  const std::size_t number = token.text.data() - text_.data();
  position_ = static_cast<std::size_t>(end - text_.data());
  if (At(0) == 'U' || At(0) == 'u') {
    ++position_;
  }
  if (Is(At(0), kIsWord)) {
    token = Bad(token, "a malformed number");
    return;
  }
  token.kind = Token::Kind::kInteger;
  token.text = text_.substr(number, position_ - number);
}

void Lexer::LexFloatBits(Token& token) {
  const bool is_double = At(1) == 'd' || At(1) == 'D';
  const std::size_t digits = is_double ? 16 : 8;
  const std::size_t begin = position_;
  std::size_t count = 0;
  while (count <= digits && Is(At(2 + count), kIsHex)) {
    ++count;
  }
  if (count != digits || Is(At(2 + count), kIsWord)) {
    token = Bad(token, is_double ? "0d without exactly 16 hexadecimal digits"
                                 : "0f without exactly 8 hexadecimal digits");
    return;
  }
  const char* first = text_.data() + begin + 2;
  std::from_chars(first, first + digits, token.bits, 16);
  position_ = begin + 2 + digits;
  token.kind = Token::Kind::kFloat;
  token.float_bits = is_double ? 64 : 32;
  token.text = text_.substr(begin, position_ - begin);
}

void Lexer::LexDecimalFloat(Token& token) {
  double value = 0;
  const char* first = text_.data() + position_;
  const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), value);
  if (error != std::errc{}) {
    token = Bad(token, "a floating-point number out of range");
    return;
  }
  const std::size_t begin = position_;
  position_ = static_cast<std::size_t>(end - text_.data());
  if (Is(At(0), kIsWord)) {
    token = Bad(token, "a malformed number");
    return;
  }
  token.kind = Token::Kind::kFloat;
  token.float_bits = 64;
  token.decimal = true;
  token.bits = std::bit_cast<std::uint64_t>(value);
  token.text = text_.substr(begin, position_ - begin);
}

void Lexer::LexNumber(Token& token) {
  token.text = text_.substr(position_, 1);
  if (At(0) == '0') {
    switch (At(1)) {
      case 'x':
      case 'X':
        return FinishInteger(token, position_ + 2, 16);
      case 'b':
      case 'B':
        return FinishInteger(token, position_ + 2, 2);
      case 'f':
      case 'F':
      case 'd':
      case 'D':
        return LexFloatBits(token);
      default:
        break;
    }
  }
  std::size_t digits = 1;
  while (Is(At(digits), kIsDigit)) {
    ++digits;
  }
  const char after = At(digits);
  if (after == '.' || after == 'e' || after == 'E') {
    return LexDecimalFloat(token);
  }
  FinishInteger(token, position_, At(0) == '0' && digits > 1 ? 8 : 10);
}

Token Lexer::Next() {
  Token token;
  const bool ended = SkipBlanks();
  token.line = line_;
  if (!ended) {
    return Bad(token, "a /* comment that does not end");
  }
  if (position_ >= text_.size()) {
    return token;
  }
  const char c = text_[position_];
  if (Is(c, kStartsWord)) {
    LexWord(token);
  } else if (c == '.' && Is(At(1), kIsWord)) {
    LexDirective(token);
  } else if (Is(c, kIsDigit)) {
    LexNumber(token);
  } else if (c == '"') {
    LexString(token);
  } else if (std::string_view(",;:()[]{}<>@!|+-=~*/&^?").find(c) != std::string_view::npos) {
    token.kind = Token::Kind::kSymbol;
    token.text = text_.substr(position_++, 1);
  } else {
    token = Bad(token, "a character that no PTX token starts with");
  }
  return token;
}

}  // namespace kernelpro::ptx
