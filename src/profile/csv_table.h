// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace kernelpro {

struct CsvRow {
  std::size_t line = 0;  ///< 1-based, of the row's first character
  std::vector<std::string> fields;
};

struct CsvTable {
  CsvRow header;
  std::vector<CsvRow> rows;

  /// Index of the column of this name.
  [[nodiscard]] std::optional<std::size_t> Column(std::string_view name) const;
};

/// The CSV table (RFC 4180) that begins with a line `"ID",...` somewhere in a log. Lines before it,
/// and lines in it that do not begin with a quote, are other programs' output and are skipped. A
/// byte-order mark and "\r\n" are accepted. Nothing when there is no such line; kParse names label
/// and line when a quoted field never ends.
[[nodiscard]] Result<std::optional<CsvTable>> FindCsvTable(std::string_view text,
                                                           std::string_view label);

/// The fields of one line; nothing when a quoted field never ends.
[[nodiscard]] std::optional<std::vector<std::string>> ParseCsvLine(std::string_view line);

}  // namespace kernelpro
