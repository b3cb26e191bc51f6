// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace kernelpro {

/// The line of dashes that says where the columns of a printed table are:
///
///   Metric Name      Metric Unit Metric Value
///   ---------------- ----------- ------------
///   Elapsed Cycles         cycle       12,717
class Ruler {
 public:
  /// Nothing when the line holds anything but blanks and two or more groups of dashes.
  [[nodiscard]] static std::optional<Ruler> Parse(std::string_view line);

  [[nodiscard]] std::size_t size() const { return columns_.size(); }

  /// The trimmed cells of a line, as many as the ruler has columns; nothing when text stands
  /// between the columns, so that the line is no row of this table. Columns count characters, not
  /// bytes; the last one has no end.
  [[nodiscard]] std::optional<std::vector<std::string_view>> Cells(std::string_view line) const;

 private:
  struct Column {
    std::size_t begin = 0, end = 0;
  };

  std::vector<Column> columns_;
};

}  // namespace kernelpro
