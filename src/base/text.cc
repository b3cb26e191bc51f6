// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <charconv>

namespace kernelpro {
namespace {

/// Starts of overlong forms, surrogates and code points past U+10FFFF.
bool IsBadPair(unsigned char lead, unsigned char second) {
  return (lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) ||
         (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f);
}

/// Length of the valid UTF-8 sequence at the start of `text`; 0 when there is none.
std::size_t SequenceLength(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xc2 ? 0
                             : lead < 0xe0 ? 2
                             : lead < 0xf0 ? 3
                             : lead < 0xf5 ? 4
                                           : 0;
  if (length == 0 || length > text.size()) {
    return 0;
  }
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0U) != 0x80U) {
      return 0;
    }
  }
  return length > 2 && IsBadPair(lead, static_cast<unsigned char>(text[1])) ? 0 : length;
}

template <class T>
bool ParseWhole(std::string_view text, T* value) {
  const char* const end = text.data() + text.size();
  // The end is given, so no terminator is needed.
  const auto [stop, error] = std::from_chars(
      text.data(), end, *value);  // NOLINT(bugprone-suspicious-stringview-data-usage)
  return error == std::errc() && stop == end && !text.empty();
}

}  // namespace

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  while (true) {
    const std::size_t end = text.find(separator);
    pieces.push_back(text.substr(0, end));
    if (end == std::string_view::npos) {
      return pieces;
    }
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines = Split(text, '\n');
  if (lines.back().empty()) {
    lines.pop_back();
  }
  for (std::string_view& line : lines) {
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
  }
  return lines;
}

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\f\v";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) {
    return {};
  }
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

bool ParseInteger(std::string_view text, long long* value) {
  return ParseWhole(text, value);
}

bool ParseDouble(std::string_view text, double* value) {
  return ParseWhole(text, value);
}

std::string Printable(std::string_view text, std::size_t limit) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = SequenceLength(text);
    const auto c = static_cast<unsigned char>(text[0]);
    const bool shown =
        length > 1 || (length == 1 && ((c >= 0x20 && c != 0x7f) || c == '\t' || c == '\n'));
    const std::size_t step = length == 0 ? 1 : length;
    if (out.size() + step > limit) {
      out += "[...]";
      break;
    }
    if (shown) {
      out += text.substr(0, length);
    } else {
      out += '?';
    }
    text.remove_prefix(step);
  }
  return out;
}

}  // namespace kernelpro
