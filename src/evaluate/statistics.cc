// SPDX-License-Identifier: Apache-2.0
#include "evaluate/statistics.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "base/rng.h"

namespace kernelpro {
namespace {

constexpr std::size_t kResamples = 2000;

/// Of values in any order, which it reorders: the middle one, or the mean of the two in the middle.
double Median(std::vector<double>* values) {
  const auto middle = values->begin() + static_cast<std::ptrdiff_t>(values->size() / 2);
  std::nth_element(values->begin(), middle, values->end());
  if (values->size() % 2 == 1) {
    return *middle;
  }
  return std::midpoint(*std::max_element(values->begin(), middle), *middle);
}

/// Of sorted values, with linear interpolation between neighbours.
double Quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], at - std::floor(at));
}

/// 95 % interval of the median of `values`, which are sorted and not empty.
std::pair<double, double> MedianInterval(const std::vector<double>& values, std::uint64_t seed) {
  if (values.size() < kFewestSamples) {
    return {values.front(), values.back()};
  }
  Rng rng(seed);
  std::vector<double> medians(kResamples);
  std::vector<double> resample(values.size());
  for (double& median : medians) {
    for (double& value : resample) {
      value = values[rng.Below(values.size())];
    }
    median = Median(&resample);
  }
  std::ranges::sort(medians);
  return {Quantile(medians, 0.025), Quantile(medians, 0.975)};
}

}  // namespace

Summary Summarize(std::span<const double> samples, std::uint64_t seed) {
  std::vector<double> values;
  std::ranges::copy_if(samples, std::back_inserter(values),
                       [](double value) { return std::isfinite(value); });
  Summary summary;
  summary.samples = values.size();
  if (values.empty()) {
    return summary;
  }
  std::ranges::sort(values);
  summary.median = Quantile(values, 0.5);
  std::tie(summary.low, summary.high) = MedianInterval(values, seed);
  if (summary.median != 0) {
    summary.spread = (Quantile(values, 0.75) - Quantile(values, 0.25)) / std::fabs(summary.median);
  }
  return summary;
}

Ratio PairedRatio(std::span<const double> baseline, std::span<const double> candidate,
                  std::uint64_t seed) {
  const auto usable = [](double time) { return std::isfinite(time) && time > 0; };
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(baseline.size(), candidate.size()); ++i) {
    if (usable(baseline[i]) && usable(candidate[i])) {
      ratios.push_back(baseline[i] / candidate[i]);
    }
  }
  Ratio ratio;
  ratio.pairs = ratios.size();
  if (ratios.empty()) {
    return ratio;
  }
  std::ranges::sort(ratios);
  ratio.value = Quantile(ratios, 0.5);
  std::tie(ratio.low, ratio.high) = MedianInterval(ratios, seed);
  return ratio;
}

bool Differs(const Ratio& ratio, double margin) {
  return ratio.pairs >= kFewestSamples && (ratio.low > 1 + margin || ratio.high < 1 / (1 + margin));
}

}  // namespace kernelpro
