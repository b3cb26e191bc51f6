// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profile/metric_number.h"
#include "profile/nsys_table.h"

namespace kernelpro {

/// Numbers of one table of nsys, by the title of their column. Titles are looked up once.
class NsysColumns {
 public:
  NsysColumns(const NsysTable& table, NumberStyle::Kind style) : table_(table), style_(style) {}

  /// Of the first of `titles` that the table has; nothing when it has none or the cell is no
  /// number.
  [[nodiscard]] std::optional<double> Number(const std::vector<std::string>& row,
                                             std::initializer_list<std::string_view> titles) const;
  /// In nanoseconds, from the unit in the title; ns where none is printed.
  [[nodiscard]] std::optional<double> Nanoseconds(
      const std::vector<std::string>& row, std::initializer_list<std::string_view> titles) const;
  [[nodiscard]] std::optional<double> Bytes(const std::vector<std::string>& row,
                                            std::initializer_list<std::string_view> titles) const;
  /// A whole number; `otherwise` when it is none or does not fit.
  [[nodiscard]] std::uint64_t Whole(const std::vector<std::string>& row,
                                    std::initializer_list<std::string_view> titles,
                                    std::uint64_t otherwise) const;
  /// The cell, or nothing in it.
  [[nodiscard]] std::string_view Text(const std::vector<std::string>& row,
                                      std::string_view title) const;

 private:
  [[nodiscard]] std::optional<std::size_t> First(
      std::initializer_list<std::string_view> titles) const;
  [[nodiscard]] std::optional<double> Scaled(const std::vector<std::string>& row,
                                             std::initializer_list<std::string_view> titles,
                                             double (*factor)(std::string_view unit)) const;

  const NsysTable& table_;
  NumberStyle::Kind style_;
};

}  // namespace kernelpro
