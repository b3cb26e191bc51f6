// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace kernelpro {

/// Rows of the CSV table (RFC 4180) that begins with a line `"ID",...` somewhere in a log, one
/// after the other and without copies. Lines before it, and lines in it that do not begin with a
/// quote, are other programs' output and are skipped. A byte-order mark and "\r\n" are accepted.
class CsvScanner {
 public:
  /// `text` outlives the scanner; `label` names it in errors.
  CsvScanner(std::string_view text, std::string_view label) : text_(text), label_(label) {}

  /// Goes to the header line, which Next() then returns; false when there is none.
  [[nodiscard]] bool FindHeader();

  /// Reads the next row; false behind the last one. The views are into the text where a field
  /// stands there as it is, else into the scanner, and hold until the next call. kParse names label
  /// and line when a quoted field never ends.
  [[nodiscard]] Result<bool> Next(std::vector<std::string_view>& fields);

  /// Offset in the text of the row that Next() returned last.
  [[nodiscard]] std::size_t row_offset() const { return row_offset_; }

  /// The 1-based line of an offset. Counts from the start of the text: for messages.
  [[nodiscard]] std::size_t LineOf(std::size_t offset) const;

 private:
  [[nodiscard]] bool AtEnd() const { return position_ >= text_.size(); }

  friend std::optional<std::vector<std::string>> ParseCsvLine(std::string_view line);

  void SkipLine();
  void SkipByteOrderMark();
  /// False when a quoted field never ends.
  bool ReadRow(std::vector<std::string_view>& fields);
  /// Both stop on the comma or newline behind the field; false when a quote stays open.
  bool ReadField(std::string_view& field);
  bool ReadOddField(std::string_view& field);

  std::string_view text_;
  std::string label_;
  std::size_t position_ = 0;
  std::size_t row_offset_ = 0;
  std::deque<std::string> unquoted_;  ///< fields of this row that do not stand in the text as is
  std::size_t unquoted_used_ = 0;
};

/// The fields of one line; nothing when a quoted field never ends.
[[nodiscard]] std::optional<std::vector<std::string>> ParseCsvLine(std::string_view line);

}  // namespace kernelpro
