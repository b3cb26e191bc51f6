// SPDX-License-Identifier: Apache-2.0
#include "propose/llm/neutralise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/hash.h"
#include "base/text.h"
#include "propose/llm/unicode.h"

namespace kernelpro::agents {
namespace {

char Lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool IsWord(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool StartsWithWord(std::string_view text, std::string_view lower) {
  return text.size() >= lower.size() &&
         std::ranges::equal(text.substr(0, lower.size()), lower, {}, Lower) &&
         (text.size() == lower.size() || !IsWord(text[lower.size()]));
}

/// Names of marks in the chat templates of today's models, and of our own blocks.
constexpr std::array<std::string_view, 22> kTags = {
    "data",           "s",           "sys",
    "system",         "assistant",   "user",
    "human",          "inst",        "instructions",
    "start_of_turn",  "think",       "end_of_turn",
    "tool_call",      "tool_result", "tool_response",
    "function_calls", "invoke",      "function_results",
    "begin_of_text",  "bos",         "eos",
    "prompt",
};

constexpr std::array<std::string_view, 9> kRoles = {
    "human", "assistant", "system", "user", "developer", "tool", "instruction", "response", "ai",
};

/// Where in `rest` (which begins with '<') a space breaks a tag of a chat template; 0: it is none.
/// "<|x|>" is no C++; "<system>" may be a template argument, and "< system>" is the same one.
std::size_t BreakInTag(std::string_view rest) {
  if (rest.size() < 2) {
    return 0;
  }
  if (rest[1] == '|') {
    return 1;
  }
  // At most "<</": a line of "<" must not be walked through once for each of them.
  std::size_t at = 1;
  while (at < std::min<std::size_t>(rest.size(), 3) && (rest[at] == '/' || rest[at] == '<')) {
    ++at;
  }
  // "a <s" is a comparison; only a whole tag is one.
  constexpr std::size_t kLongestTag = 200;
  const std::string_view name = rest.substr(at, kLongestTag);
  for (const std::string_view tag : kTags) {
    if (!StartsWithWord(name, tag)) {
      continue;
    }
    const std::size_t line_end = std::min(name.find('\n'), name.size());
    const std::size_t close = name.substr(0, line_end).find('>');
    const bool data = tag == "data" && name.size() > 4 && name[4] == '-';
    if (data || (tag != "data" && (close == tag.size() ||
                                   (close != std::string_view::npos && name[tag.size()] == ' ')))) {
      return 1;
    }
  }
  return 0;
}

/// "[INST]", "[/INST]", "[SYSTEM_PROMPT]": where a space breaks it.
std::size_t BreakInBracket(std::string_view rest) {
  std::size_t at = 1;
  at += at < rest.size() && rest[at] == '/' ? 1 : 0;
  const std::string_view name = rest.substr(std::min(at, rest.size()));
  for (const std::string_view word :
       {"inst", "system_prompt", "available_tools", "tool_calls", "tool_results"}) {
    if (StartsWithWord(name, word) && name.size() > word.size() && name[word.size()] == ']') {
      return 1;
    }
  }
  return 0;
}

/// Where the colon of a speaker's name at the start of a line stands ("Human:", "**System** :",
/// "### Instruction:"); 0: nobody speaks. A label or a qualified name keeps its meaning with the
/// space that goes before the colon.
std::size_t SpeakerColon(std::string_view line) {
  const std::size_t start = line.find_first_not_of(" \t#*>-_/\"'");
  if (start == std::string_view::npos) {
    return 0;
  }
  for (const std::string_view role : kRoles) {
    if (!StartsWithWord(line.substr(start), role)) {
      continue;
    }
    std::size_t at = start + role.size();
    while (at < line.size() && (line[at] == '*' || line[at] == '_')) {
      ++at;
    }
    if (at < line.size() && line[at] == ':') {
      return at;
    }
  }
  return 0;
}

std::string DefuseLine(std::string_view line) {
  std::string out;
  const std::size_t colon = SpeakerColon(line);
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (i == colon && colon > 0) {
      out += ' ';
    }
    out += c;
    const std::string_view rest = line.substr(i);
    const bool fence = (c == '`' || c == '~') && rest.size() > 1 && rest[1] == c;
    const bool pipe = c == '|' && rest.size() > 1 && rest[1] == '>';
    if (fence || pipe || (c == '<' && BreakInTag(rest) > 0) ||
        (c == '[' && BreakInBracket(rest) > 0)) {
      out += ' ';
    }
  }
  return out;
}

/// The end of the last whole line in the first `most` bytes; `most` (not inside a character) when
/// that would give away more than a quarter of them.
std::size_t HeadEnd(std::string_view text, std::size_t most) {
  const std::size_t line = text.substr(0, most).rfind('\n');
  if (line != std::string_view::npos && line >= most - most / 4) {
    return line;
  }
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0U) == 0x80U) {
    --most;
  }
  return most;
}

std::size_t TailStart(std::string_view text, std::size_t most) {
  std::size_t start = text.size() - most;
  const std::size_t line = text.find('\n', start);
  if (line != std::string_view::npos && line + 1 - start <= most / 2) {
    return line + 1;
  }
  while (start < text.size() && (static_cast<unsigned char>(text[start]) & 0xc0U) == 0x80U) {
    ++start;
  }
  return start;
}

std::string Cut(std::string text, std::size_t limit) {
  if (text.size() <= limit) {
    return text;
  }
  const std::size_t head = HeadEnd(text, limit - limit / 4);
  const std::size_t tail = TailStart(text, limit / 4);
  return fmt::format("{}\n[{} of {} bytes cut here]\n{}", text.substr(0, head), tail - head,
                     text.size(), text.substr(tail));
}

}  // namespace

std::string Neutralise(std::string_view text, std::size_t limit) {
  const std::string visible = Cut(Visible(text), limit);
  std::string out;
  bool first = true;
  for (const std::string_view line : Split(visible, '\n')) {
    out += first ? "" : "\n";
    out += DefuseLine(line);
    first = false;
  }
  return out;
}

std::string NeutraliseLine(std::string_view text, std::size_t limit) {
  std::string line = Visible(text);
  std::ranges::replace(line, '\n', ' ');
  std::ranges::replace(line, '\t', ' ');
  if (line.size() > limit) {
    line = line.substr(0, HeadEnd(line, limit)) + " [cut]";
  }
  return DefuseLine(Trim(line));
}

std::string DataBlock(std::string_view kind, std::string_view text, std::size_t limit) {
  std::string content = Neutralise(text, limit);
  while (content.ends_with('\n')) {
    content.pop_back();
  }
  // A content that guessed its own hash gets another one.
  std::string mark;
  for (int round = 0;; ++round) {
    const std::string number = std::to_string(round);
    const std::array<std::string_view, 3> parts = {kind, content, number};
    mark = "data-" + ContentHash(parts).substr(0, 16);
    if (content.find(mark) == std::string::npos) {
      break;
    }
  }
  return fmt::format("<{0} kind=\"{1}\">\n{2}\n</{0}>", mark, kind, content);
}

std::string FirstWords(std::string_view text, std::size_t most) {
  std::size_t words = 0;
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool blank = text[i] == ' ' || text[i] == '\n' || text[i] == '\t' || text[i] == '\r';
    if (!blank && !inside && ++words > most) {
      return std::string(Trim(text.substr(0, i))) + " [cut]";
    }
    inside = !blank;
  }
  return std::string(Trim(text));
}

}  // namespace kernelpro::agents
