// SPDX-License-Identifier: Apache-2.0
#include "profile/csv_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace kernelpro {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kHeaderStart = "\"ID\",";

class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  [[nodiscard]] bool AtEnd() const { return position_ >= text_.size(); }

  [[nodiscard]] std::size_t line() const { return line_; }

  [[nodiscard]] std::string_view Rest() const { return text_.substr(position_); }

  void SkipLine() {
    const std::size_t end = text_.find('\n', position_);
    position_ = end == std::string_view::npos ? text_.size() : end + 1;
    ++line_;
  }

  void Skip(std::string_view prefix) {
    if (Rest().starts_with(prefix)) {
      position_ += prefix.size();
    }
  }

  /// Reads one row; false when a quoted field is still open at the end of the text.
  bool ReadRow(CsvRow& row) {
    row.line = line_;
    row.fields.clear();
    while (true) {
      std::string field;
      if (!ReadField(field)) {
        return false;
      }
      row.fields.push_back(std::move(field));
      if (AtEnd()) {
        return true;
      }
      const char separator = text_[position_];
      ++position_;
      if (separator == '\n') {
        ++line_;
        return true;
      }
    }
  }

 private:
  /// Stops on the comma or newline behind the field.
  bool ReadField(std::string& field) {
    if (!AtEnd() && text_[position_] == '"') {
      ++position_;
      if (!ReadQuoted(field)) {
        return false;
      }
    }
    while (!AtEnd() && text_[position_] != ',' && text_[position_] != '\n') {
      if (text_[position_] != '\r') {
        field.push_back(text_[position_]);
      }
      ++position_;
    }
    return true;
  }

  bool ReadQuoted(std::string& field) {
    while (!AtEnd()) {
      const char c = text_[position_];
      ++position_;
      if (c != '"') {
        line_ += c == '\n' ? 1 : 0;
        field.push_back(c);
      } else if (!AtEnd() && text_[position_] == '"') {
        field.push_back('"');
        ++position_;
      } else {
        return true;
      }
    }
    return false;
  }

  std::string_view text_;
  std::size_t position_ = 0;
  std::size_t line_ = 1;
};

}  // namespace

std::optional<std::size_t> CsvTable::Column(std::string_view name) const {
  const auto found = std::ranges::find(header.fields, name);
  if (found == header.fields.end()) {
    return std::nullopt;
  }
  return static_cast<std::size_t>(std::distance(header.fields.begin(), found));
}

Result<std::optional<CsvTable>> FindCsvTable(std::string_view text, std::string_view label) {
  Cursor cursor(text);
  cursor.Skip(kByteOrderMark);
  while (!cursor.AtEnd() && !cursor.Rest().starts_with(kHeaderStart)) {
    cursor.SkipLine();
    cursor.Skip(kByteOrderMark);
  }
  if (cursor.AtEnd()) {
    return std::optional<CsvTable>();
  }
  CsvTable table;
  const auto read = [&](CsvRow& row) -> Status {
    if (!cursor.ReadRow(row)) {
      return Fail(
          ErrorCode::kParse,
          fmt::format("{}:{}: a quoted field never ends; is the file cut off?", label, row.line));
    }
    return Ok();
  };
  KP_RETURN_IF_ERROR(read(table.header));
  while (!cursor.AtEnd()) {
    if (!cursor.Rest().starts_with('"')) {
      cursor.SkipLine();
      continue;
    }
    CsvRow row;
    KP_RETURN_IF_ERROR(read(row));
    table.rows.push_back(std::move(row));
  }
  return std::optional<CsvTable>(std::move(table));
}

std::optional<std::vector<std::string>> ParseCsvLine(std::string_view line) {
  Cursor cursor(line);
  CsvRow row;
  if (!cursor.ReadRow(row)) {
    return std::nullopt;
  }
  return std::move(row.fields);
}

}  // namespace kernelpro
