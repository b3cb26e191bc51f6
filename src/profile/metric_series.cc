// SPDX-License-Identifier: Apache-2.0
#include "profile/metric_series.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "kernelpro/profile.h"
#include "profile/metric_number.h"

namespace kernelpro {
namespace {

bool Is(const MetricSeries& series, std::string_view section, std::string_view name,
        std::string_view unit) {
  return series.name == name && series.unit == unit && series.section == section;
}

}  // namespace

std::size_t SeriesTable::Find(std::string_view section, std::string_view name,
                              std::string_view unit) {
  const std::size_t guess = all_.empty() ? 0 : all_[last_].next;
  if (guess < all_.size() && Is(all_[guess], section, name, unit)) {
    last_ = guess;
    return guess;
  }
  const std::size_t found = Lookup(section, name, unit);
  all_[last_].next = found;
  last_ = found;
  return found;
}

std::size_t SeriesTable::Lookup(std::string_view section, std::string_view name,
                                std::string_view unit) {
  std::string printed;
  for (const std::string_view part : {section, name, unit}) {
    printed.append(part).push_back('\0');
  }
  const auto [found, is_new] = by_text_.try_emplace(std::move(printed), all_.size());
  if (is_new) {
    MetricSeries series;
    series.section = section;
    series.name = name;
    series.unit = unit;
    series.scale = InBaseUnit(1, Printable(unit, 100));
    series.key = Printable(key_(section, name, series.scale.unit), 200);
    all_.push_back(std::move(series));
  }
  return found->second;
}

void PendingMetrics::MoveInto(std::map<std::string, Metric>& metrics, const SeriesTable& table) {
  if (series_ != ordered_) {
    ordered_ = series_;
    order_.resize(series_.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::ranges::stable_sort(order_, [&](std::size_t a, std::size_t b) {
      return table[series_[a]].key < table[series_[b]].key;
    });
  }
  for (const std::size_t i : order_) {
    const MetricSeries& series = table[series_[i]];
    Metric& metric = metrics.try_emplace(metrics.end(), series.key)->second;
    metric.value = values_[i];
    metric.unit = series.scale.unit;
    metric.provenance = Provenance::kMeasured;
  }
  series_.clear();
  values_.clear();
}

}  // namespace kernelpro
