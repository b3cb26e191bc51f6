// SPDX-License-Identifier: Apache-2.0
#include "propose/llm/elision.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "base/text.h"

namespace kernelpro::agents {
namespace {

/// Lower case, words separated by single spaces, dots of any kind as "...".
std::string Simplified(std::string_view comment) {
  std::string out;
  for (std::size_t i = 0; i < comment.size(); ++i) {
    const char c = comment[i];
    const std::string_view rest = comment.substr(i);
    if (rest.starts_with("\xe2\x80\xa6")) {  // U+2026
      out += " ... ";
      i += 2;
    } else if (rest.starts_with("...")) {
      out += " ... ";
      i = std::min(comment.find_first_not_of('.', i), comment.size()) - 1;
    } else if (c >= 'A' && c <= 'Z') {
      out += static_cast<char>(c - 'A' + 'a');
    } else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_') {
      out += c;
    } else {
      out += ' ';
    }
  }
  std::string words = " ";
  for (const char c : out) {
    if (c != ' ' || words.back() != ' ') {
      words += c;
    }
  }
  return words.back() == ' ' ? words : words + " ";
}

std::size_t WordCount(std::string_view simplified) {
  return static_cast<std::size_t>(std::ranges::count(simplified, ' ')) - 1;
}

template <std::size_t N>
bool HoldsOne(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::ranges::any_of(
      words, [text](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

/// Said of code that is not there. The blanks make them whole words.
constexpr std::array<std::string_view, 10> kUnchanged = {
    " unchanged ",   " omitted ",          " as before ",   " goes here ", " stays the same ",
    " is the same ", " remains the same ", " for brevity ", " not shown ", " same as the original ",
};
constexpr std::array<std::string_view, 14> kOfWhat = {
    " rest ",     " remainder ", " remaining ", " other ",          " existing ",
    " previous ", " original ",  " code ",      " kernel ",         " kernels ",
    " helpers ",  " body ",      " function ",  " implementation ",
};
constexpr std::array<std::string_view, 14> kPhrases = {
    " existing code ",    " existing implementation ", " existing kernel ",
    " existing helpers ", " existing functions ",      " your code here ",
    " code goes here ",   " implementation here ",     " implementation goes here ",
    " keep the rest ",    " keep existing ",           " rest of the code ",
    " rest of code ",     " rest of the file ",
};

bool IsElision(const Comment& comment) {
  const std::string text = Simplified(comment.text);
  if (text.size() < 3 || WordCount(text) > 14) {
    return false;
  }
  const bool dots = text.find(" ... ") != std::string::npos;
  if (text == " ... ") {
    return comment.alone;
  }
  if (text.starts_with(" ... ") && (HoldsOne(text, kOfWhat) || HoldsOne(text, kUnchanged))) {
    return true;
  }
  if (HoldsOne(text, kUnchanged) && HoldsOne(text, kOfWhat)) {
    return comment.alone || dots;
  }
  return HoldsOne(text, kPhrases) && comment.alone && WordCount(text) <= 6;
}

}  // namespace

bool LooksLikePatch(std::string_view text) {
  const std::vector<std::string_view> lines = Lines(text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = lines[i];
    const std::string_view next = i + 1 < lines.size() ? lines[i + 1] : std::string_view();
    if (line.starts_with("@@ ") || line.starts_with("@@@ ") || Trim(line) == "@@" ||
        line.starts_with("<<<<<<< ") || Trim(line) == "<<<<<<<" || line.starts_with(">>>>>>> ") ||
        line.starts_with("*** Begin Patch") || line.starts_with("diff --git ") ||
        (line.starts_with("--- ") && next.starts_with("+++ "))) {
      return true;
    }
  }
  return false;
}

std::string FindElision(const Lexed& source) {
  for (const Comment& comment : source.comments) {
    if (IsElision(comment)) {
      return comment.text;
    }
  }
  // "f(...)" and "template <class... T>" have more than dots on their line.
  for (const std::string_view line : Lines(source.code)) {
    if (Trim(line) == "..." || Trim(line) == "\xe2\x80\xa6") {
      return std::string(Trim(line));
    }
  }
  return {};
}

}  // namespace kernelpro::agents
