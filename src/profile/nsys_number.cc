// SPDX-License-Identifier: Apache-2.0
#include "profile/nsys_number.h"

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
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

double FactorOf(std::string_view unit, const Unit* units, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (units[i].name == unit) {
      return units[i].factor;
    }
  }
  return 0;
}

/// 0: not a unit of time.
double ToNanoseconds(std::string_view unit) {
  constexpr Unit kUnits[] = {{"", 1},     {"ns", 1},     {"nsec", 1},  {"us", 1e3}, {"usec", 1e3},
                             {"ms", 1e6}, {"msec", 1e6}, {"sec", 1e9}, {"s", 1e9}};
  return FactorOf(unit, kUnits, std::size(kUnits));
}

/// 0: not a unit of size, or none, for then it is not known (KiB in 2020, MB later).
double ToBytes(std::string_view unit) {
  constexpr Unit kUnits[] = {{"B", 1},      {"KB", 1e3},
                             {"MB", 1e6},   {"GB", 1e9},
                             {"KiB", 1024}, {"MiB", 1024.0 * 1024},
                             {"bytes", 1},  {"GiB", 1024.0 * 1024 * 1024}};
  return FactorOf(unit, kUnits, std::size(kUnits));
}

}  // namespace

std::optional<std::size_t> NsysColumns::First(
    std::initializer_list<std::string_view> titles) const {
  for (const std::string_view title : titles) {
    if (const auto column = table_.Find(title)) {
      return column;
    }
  }
  return std::nullopt;
}

std::optional<double> NsysColumns::Number(const std::vector<std::string>& row,
                                          std::initializer_list<std::string_view> titles) const {
  const auto column = First(titles);
  return column ? ParseMetricNumber(row[*column], style_) : std::nullopt;
}

std::optional<double> NsysColumns::Scaled(const std::vector<std::string>& row,
                                          std::initializer_list<std::string_view> titles,
                                          double (*factor)(std::string_view unit)) const {
  const auto column = First(titles);
  const double scale = column ? factor(table_.columns[*column].unit) : 0;
  const auto number = Number(row, titles);
  if (!number || scale == 0 || *number < 0) {
    return std::nullopt;
  }
  return *number * scale;
}

std::optional<double> NsysColumns::Nanoseconds(
    const std::vector<std::string>& row, std::initializer_list<std::string_view> titles) const {
  return Scaled(row, titles, ToNanoseconds);
}

std::optional<double> NsysColumns::Bytes(const std::vector<std::string>& row,
                                         std::initializer_list<std::string_view> titles) const {
  return Scaled(row, titles, ToBytes);
}

std::uint64_t NsysColumns::Whole(const std::vector<std::string>& row,
                                 std::initializer_list<std::string_view> titles,
                                 std::uint64_t otherwise) const {
  constexpr double kLargest = 9e15;  // whole numbers are exact below
  const auto number = Number(row, titles);
  return number && *number >= 0 && *number < kLargest ? static_cast<std::uint64_t>(*number)
                                                      : otherwise;
}

std::string_view NsysColumns::Text(const std::vector<std::string>& row,
                                   std::string_view title) const {
  const auto column = table_.Find(title);
  return column ? std::string_view(row[*column]) : std::string_view();
}

}  // namespace kernelpro
