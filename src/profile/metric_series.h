// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kernelpro/profile.h"

namespace kernelpro {

/// What all values of one metric of a file share.
struct MetricSeries {
  std::string section, name, unit;  ///< as printed
  std::string key;                  ///< its name in a Profile
  Metric scale;                     ///< what 1 of `unit` is in base units
  std::size_t next = 0;             ///< the series that came after it last time
};

/// The metrics of a file. Launches repeat them in the same order, so the next one is mostly known.
class SeriesTable {
 public:
  /// (section, name, base unit) -> name in a Profile
  using KeyFunction = std::string (*)(std::string_view, std::string_view, std::string_view);

  explicit SeriesTable(KeyFunction key) : key_(key) {}

  std::size_t Find(std::string_view section, std::string_view name, std::string_view unit);

  const MetricSeries& operator[](std::size_t i) const { return all_[i]; }

 private:
  std::size_t Lookup(std::string_view section, std::string_view name, std::string_view unit);

  KeyFunction key_;
  std::vector<MetricSeries> all_;
  std::unordered_map<std::string, std::size_t> by_text_;
  std::size_t last_ = 0;
};

/// Numbers of the launch being read, in base units. They enter its map in the map's order, which is
/// worked out once for all launches with the same metrics: a sorted map grows at its end at no
/// cost. The last of several values with one key stays.
class PendingMetrics {
 public:
  void Add(std::size_t series, double value) {
    series_.push_back(series);
    values_.push_back(value);
  }

  void MoveInto(std::map<std::string, Metric>& metrics, const SeriesTable& table);

 private:
  std::vector<std::size_t> series_, ordered_, order_;
  std::vector<double> values_;
};

}  // namespace kernelpro
