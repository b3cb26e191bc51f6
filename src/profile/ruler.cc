// SPDX-License-Identifier: Apache-2.0
#include "profile/ruler.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace kernelpro {
namespace {

constexpr std::size_t kMostColumns = 40;

bool IsBlank(std::string_view text) {
  return Trim(text).empty();
}

/// Byte offsets of the characters of UTF-8 text, and its size behind them.
class Characters {
 public:
  explicit Characters(std::string_view line) : line_(line) {
    ascii_ = std::ranges::none_of(
        line, [](char c) { return (static_cast<unsigned char>(c) & 0x80U) != 0; });
    if (ascii_) {
      return;
    }
    for (std::size_t i = 0; i < line.size(); ++i) {
      if ((static_cast<unsigned char>(line[i]) & 0xc0U) != 0x80U) {
        offsets_.push_back(i);
      }
    }
  }

  [[nodiscard]] std::string_view Between(std::size_t begin, std::size_t end) const {
    const std::size_t first = Offset(begin);
    return line_.substr(first, Offset(end) - first);
  }

  [[nodiscard]] std::string_view From(std::size_t begin) const {
    return line_.substr(Offset(begin));
  }

 private:
  [[nodiscard]] std::size_t Offset(std::size_t character) const {
    if (ascii_) {
      return std::min(character, line_.size());
    }
    return character < offsets_.size() ? offsets_[character] : line_.size();
  }

  std::string_view line_;
  bool ascii_ = true;
  std::vector<std::size_t> offsets_;
};

}  // namespace

std::optional<Ruler> Ruler::Parse(std::string_view line) {
  Ruler ruler;
  line = line.substr(0, line.find_last_not_of(" \t\r") + 1);
  for (std::size_t i = 0; i < line.size();) {
    if (line[i] == ' ') {
      ++i;
      continue;
    }
    if (line[i] != '-' || ruler.columns_.size() == kMostColumns) {
      return std::nullopt;
    }
    const std::size_t end = std::min(line.find_first_not_of('-', i), line.size());
    ruler.columns_.push_back({i, end});
    i = end;
  }
  if (ruler.columns_.size() < 2) {
    return std::nullopt;
  }
  return ruler;
}

std::optional<std::vector<std::string_view>> Ruler::Cells(std::string_view line) const {
  const Characters characters(line);
  if (!IsBlank(characters.Between(0, columns_.front().begin))) {
    return std::nullopt;
  }
  std::vector<std::string_view> cells;
  for (std::size_t i = 0; i + 1 < columns_.size(); ++i) {
    cells.push_back(Trim(characters.Between(columns_[i].begin, columns_[i].end)));
    if (!IsBlank(characters.Between(columns_[i].end, columns_[i + 1].begin))) {
      return std::nullopt;
    }
  }
  cells.push_back(Trim(characters.From(columns_.back().begin)));
  return cells;
}

}  // namespace kernelpro
