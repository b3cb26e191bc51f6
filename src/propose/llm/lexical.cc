// SPDX-License-Identifier: Apache-2.0
#include "propose/llm/lexical.h"

#include <algorithm>
#include <cctype>
#include <cstddef>

#include "base/text.h"

namespace kernelpro::agents {
namespace {

bool IsWord(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  Lexed Run() {
    out_.code.reserve(source_.size());
    while (at_ < source_.size()) {
      const std::string_view rest = source_.substr(at_);
      if (rest.starts_with("//")) {
        LineComment();
      } else if (rest.starts_with("/*")) {
        BlockComment();
      } else if (rest.starts_with("R\"") && !AfterWord()) {
        RawString();
      } else if (rest[0] == '"' || (rest[0] == '\'' && !AfterWord())) {
        Literal(rest[0]);
      } else {
        Plain();
      }
    }
    return std::move(out_);
  }

 private:
  /// Then a quote is a digit separator (1'000) and an R the end of a name.
  [[nodiscard]] bool AfterWord() const { return at_ > 0 && IsWord(source_[at_ - 1]); }

  void Blank(std::size_t end) {
    for (; at_ < end; ++at_) {
      const bool line_end = source_[at_] == '\n';
      out_.code += line_end ? '\n' : ' ';
      code_on_line_ = code_on_line_ && !line_end;
    }
  }

  void Plain() {
    const char c = source_[at_++];
    out_.code += c;
    code_on_line_ = c != '\n' && (code_on_line_ || (c != ' ' && c != '\t'));
  }

  void LineComment() {
    const bool alone = !code_on_line_;
    std::size_t end = at_;
    while (end < source_.size() && (source_[end] != '\n' || source_[end - 1] == '\\')) {
      ++end;
    }
    Take(source_.substr(at_ + 2, end - at_ - 2), alone);
    Blank(end);
  }

  void BlockComment() {
    const std::size_t close = source_.find("*/", at_ + 2);
    const std::size_t end = close == std::string_view::npos ? source_.size() : close + 2;
    const std::size_t text_end = close == std::string_view::npos ? end : close;
    const std::size_t next = source_.find_first_not_of(" \t", end);
    const bool alone = !code_on_line_ && (next == std::string_view::npos || source_[next] == '\n');
    Take(source_.substr(at_ + 2, text_end - at_ - 2), alone);
    Blank(end);
  }

  void Take(std::string_view text, bool alone) {
    for (std::string_view line : Split(text, '\n')) {
      line = Trim(line);
      while (!line.empty() && (line[0] == '*' || line[0] == '/' || line[0] == '!')) {
        line.remove_prefix(1);
      }
      out_.comments.push_back({std::string(Trim(line)), alone});
    }
  }

  void RawString() {
    // At most 16 characters may stand between the quote and the bracket.
    const std::size_t offset = source_.substr(at_, 19).find('(');
    if (offset == std::string_view::npos) {
      Plain();
      return;
    }
    const std::size_t open = at_ + offset;
    code_on_line_ = true;
    const std::string close = ")" + std::string(source_.substr(at_ + 2, open - at_ - 2)) + "\"";
    const std::size_t end = source_.find(close, open);
    Blank(end == std::string_view::npos ? source_.size() : end + close.size());
  }

  void Literal(char quote) {
    out_.code += quote;
    code_on_line_ = true;
    std::size_t end = ++at_;
    while (end < source_.size() && source_[end] != quote && source_[end] != '\n') {
      end += source_[end] == '\\' && end + 1 < source_.size() ? 2 : 1;
    }
    Blank(std::min(end, source_.size()));
    if (at_ < source_.size() && source_[at_] == quote) {
      out_.code += quote;
      ++at_;
    }
  }

  std::string_view source_;
  std::size_t at_ = 0;
  bool code_on_line_ = false;
  Lexed out_;
};

std::size_t FindWord(std::string_view code, std::string_view name, std::size_t from) {
  for (std::size_t at = code.find(name, from); at != std::string_view::npos;
       at = code.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || !IsWord(code[at - 1])) && (end == code.size() || !IsWord(code[end]))) {
      return at;
    }
  }
  return std::string_view::npos;
}

/// Behind the bracket that closes the one at `open`; npos: none does.
std::size_t BehindClosing(std::string_view code, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < code.size(); ++i) {
    depth += code[i] == '(' ? 1 : code[i] == ')' ? -1 : 0;
    if (depth == 0) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

std::size_t SkipSpace(std::string_view code, std::size_t at) {
  return std::min(code.find_first_not_of(" \t\r\n", at), code.size());
}

}  // namespace

Lexed Lex(std::string_view source) {
  return Lexer(source).Run();
}

bool HasWord(std::string_view code, std::string_view name) {
  return FindWord(code, name, 0) != std::string_view::npos;
}

bool Defines(std::string_view code, std::string_view function) {
  // Calls within calls within calls would be read through once for each of them.
  constexpr int kMostMentions = 64;
  int mentions = 0;
  for (std::size_t at = FindWord(code, function, 0);
       at != std::string_view::npos && ++mentions <= kMostMentions;
       at = FindWord(code, function, at + 1)) {
    const std::size_t open = SkipSpace(code, at + function.size());
    if (open >= code.size() || code[open] != '(') {
      continue;
    }
    const std::size_t behind = BehindClosing(code, open);
    if (behind == std::string_view::npos) {
      return false;
    }
    std::size_t body = SkipSpace(code, behind);
    if (code.substr(body).starts_with("noexcept")) {
      body = SkipSpace(code, body + 8);
    }
    // "if (kernelpro_run(...)) {" has the bracket of the if between.
    if (body < code.size() && code[body] == '{') {
      return true;
    }
  }
  return false;
}

bool Balanced(std::string_view code) {
  std::string open;
  for (const char c : code) {
    if (c == '(' || c == '{' || c == '[') {
      open += c;
    } else if (c == ')' || c == '}' || c == ']') {
      const char want = c == ')' ? '(' : c == '}' ? '{' : '[';
      if (open.empty() || open.back() != want) {
        return false;
      }
      open.pop_back();
    }
  }
  return open.empty();
}

}  // namespace kernelpro::agents
