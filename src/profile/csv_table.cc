// SPDX-License-Identifier: Apache-2.0
#include "profile/csv_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace kernelpro {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kHeaderStart = "\"ID\",";

/// Position of the next quote at or behind `from`. Most fields are a few characters long, where a
/// call of memchr costs more than the search.
std::size_t FindQuote(std::string_view text, std::size_t from) {
  const std::size_t near = std::min(text.size(), from + 8);
  for (; from < near; ++from) {
    if (text[from] == '"') {
      return from;
    }
  }
  return text.find('"', from);
}

}  // namespace

bool CsvScanner::FindHeader() {
  SkipByteOrderMark();
  while (!AtEnd() && !text_.substr(position_).starts_with(kHeaderStart)) {
    SkipLine();
    SkipByteOrderMark();
  }
  return !AtEnd();
}

Result<bool> CsvScanner::Next(std::vector<std::string_view>& fields) {
  while (!AtEnd() && text_[position_] != '"') {
    SkipLine();
  }
  if (AtEnd()) {
    return false;
  }
  row_offset_ = position_;
  if (!ReadRow(fields)) {
    return Fail(ErrorCode::kParse,
                fmt::format("{}:{}: a quoted field never ends; is the file cut off?", label_,
                            LineOf(row_offset_)));
  }
  return true;
}

bool CsvScanner::ReadRow(std::vector<std::string_view>& fields) {
  fields.clear();
  unquoted_used_ = 0;
  while (true) {
    std::string_view field;
    if (!ReadField(field)) {
      return false;
    }
    fields.push_back(field);
    if (AtEnd() || text_[position_++] == '\n') {
      return true;
    }
  }
}

std::size_t CsvScanner::LineOf(std::size_t offset) const {
  return 1 + static_cast<std::size_t>(std::ranges::count(text_.substr(0, offset), '\n'));
}

void CsvScanner::SkipLine() {
  const std::size_t end = text_.find('\n', position_);
  position_ = end == std::string_view::npos ? text_.size() : end + 1;
}

void CsvScanner::SkipByteOrderMark() {
  if (text_.substr(position_).starts_with(kByteOrderMark)) {
    position_ += kByteOrderMark.size();
  }
}

bool CsvScanner::ReadField(std::string_view& field) {
  if (AtEnd() || text_[position_] == ',' || text_[position_] == '\n') {
    return true;  // nothing between two separators
  }
  if (text_[position_] == '"') {
    const std::size_t close = FindQuote(text_, position_ + 1);
    if (close == std::string_view::npos) {
      return false;
    }
    const std::size_t after = close + 1;
    if (after == text_.size() || text_[after] == ',' || text_[after] == '\n') {
      field = text_.substr(position_ + 1, close - position_ - 1);
      position_ = after;
      return true;
    }
  }
  return ReadOddField(field);
}

bool CsvScanner::ReadOddField(std::string_view& field) {
  if (unquoted_used_ == unquoted_.size()) {
    unquoted_.emplace_back();
  }
  std::string& plain = unquoted_[unquoted_used_++];
  plain.clear();
  bool quoted = text_[position_] == '"';
  position_ += quoted ? 1 : 0;
  while (quoted) {
    const std::size_t close = text_.find('"', position_);
    if (close == std::string_view::npos) {
      return false;
    }
    plain += text_.substr(position_, close - position_);
    position_ = close + 1;
    quoted = !AtEnd() && text_[position_] == '"';  // a doubled quote is one quote of the text
    if (quoted) {
      plain.push_back('"');
      ++position_;
    }
  }
  for (; !AtEnd() && text_[position_] != ',' && text_[position_] != '\n'; ++position_) {
    if (text_[position_] != '\r') {
      plain.push_back(text_[position_]);
    }
  }
  field = plain;
  return true;
}

std::optional<std::vector<std::string>> ParseCsvLine(std::string_view line) {
  CsvScanner scanner(line, "");
  std::vector<std::string_view> fields;
  if (!scanner.ReadRow(fields)) {
    return std::nullopt;
  }
  return std::vector<std::string>(fields.begin(), fields.end());
}

}  // namespace kernelpro
