// SPDX-License-Identifier: Apache-2.0
#include "propose/llm/unicode.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/text.h"

namespace kernelpro::agents {
namespace {

struct Range {
  char32_t first, last;
};

/// Unicode 15: Default_Ignorable_Code_Point, C1 controls, and separators of lines.
constexpr std::array<Range, 20> kUnseen = {{
    {0x80, 0x9f},       {0xad, 0xad},       {0x34f, 0x34f},     {0x61c, 0x61c},
    {0x115f, 0x1160},   {0x17b4, 0x17b5},   {0x180b, 0x180f},   {0x200b, 0x200f},
    {0x2028, 0x2029},   {0x202a, 0x202e},   {0x2060, 0x206f},   {0x3164, 0x3164},
    {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},   {0xfff0, 0xfffb},
    {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff}, {0xf0000, 0x10ffff},
}};

bool IsUnseen(char32_t c) {
  return std::ranges::any_of(
      kUnseen, [c](const Range& range) { return c >= range.first && c <= range.last; });
}

std::size_t LengthOf(unsigned char lead) {
  return lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/// Of a valid sequence.
char32_t Decode(std::string_view sequence) {
  const auto lead = static_cast<unsigned char>(sequence[0]);
  char32_t c = sequence.size() == 1   ? lead
               : sequence.size() == 2 ? lead & 0x1fU
               : sequence.size() == 3 ? lead & 0x0fU
                                      : lead & 0x07U;
  for (const char byte : sequence.substr(1)) {
    c = (c << 6U) | (static_cast<unsigned char>(byte) & 0x3fU);
  }
  return c;
}

/// Length of a terminal's escape sequence at the start: ESC [ ... letter, ESC ] ... BEL; 0: none.
std::size_t EscapeLength(std::string_view text) {
  if (text.size() < 2 || text[0] != '\x1b') {
    return 0;
  }
  if (text[1] == '[') {
    std::size_t end = 2;
    while (end < text.size() && text[end] >= 0x20 && text[end] < 0x40) {
      ++end;
    }
    return end < text.size() && text[end] >= 0x40 && text[end] < 0x7f ? end + 1 : 1;
  }
  if (text[1] == ']') {
    const std::size_t end = text.find('\a');
    return end == std::string_view::npos || text.substr(0, end).find('\n') != std::string_view::npos
               ? 1
               : end + 1;
  }
  return 1;
}

/// "\r\n" and a lone "\r" become "\n": a model takes either for a new line.
std::string WithoutEscapes(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    if (const std::size_t escape = EscapeLength(text.substr(i)); escape > 0) {
      i += escape;
      continue;
    }
    const char c = text[i++];
    if (c == '\r') {
      out += '\n';
      i += i < text.size() && text[i] == '\n' ? 1 : 0;
    } else if (c == '\v' || c == '\f') {
      out += ' ';
    } else if (static_cast<unsigned char>(c) >= 0x20 || c == '\t' || c == '\n') {
      out += c == '\x7f' ? ' ' : c;
    }
  }
  return out;
}

}  // namespace

std::string Visible(std::string_view text) {
  const std::string valid = Printable(WithoutEscapes(text), std::string::npos);
  std::string out;
  out.reserve(valid.size());
  for (std::size_t i = 0; i < valid.size();) {
    const std::size_t length = LengthOf(static_cast<unsigned char>(valid[i]));
    const std::string_view sequence = std::string_view(valid).substr(i, length);
    if (!IsUnseen(Decode(sequence))) {
      out += sequence;
    }
    i += length;
  }
  return out;
}

}  // namespace kernelpro::agents
