// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

/// What is said about repeated measurements. Pure: the same samples and seed give the same figures.
/// Medians, because times have a heavy upper tail (interrupts, clock changes) and no lower one;
/// intervals by the percentile bootstrap (Efron, 1979), because nothing is assumed of the shape.
namespace kernelpro {

/// Samples below this many give no 95 % statement about a median without assumptions: five of five
/// on one side happen by chance in 6 % of the cases, six of six in 3 %. Then an interval is simply
/// the range of the samples.
inline constexpr std::size_t kFewestSamples = 6;

/// Over the finite samples; all zero when there is none. In the unit of the samples.
struct Summary {
  double median = 0;
  double low = 0, high = 0;  ///< 95 % bootstrap interval of the median (2,000 resamples)
  double spread = 0;         ///< interquartile range over median; 0 when the median is 0
  std::size_t samples = 0;   ///< finite ones
};

[[nodiscard]] Summary Summarize(std::span<const double> samples, std::uint64_t seed);

/// Baseline over candidate: above 1 the candidate is faster.
struct Ratio {
  double value = 1;
  double low = 1, high = 1;  ///< 95 % bootstrap interval over pairs
  std::size_t pairs = 0;
};

/// `baseline[i]` and `candidate[i]` were taken next to each other, in A/B/B/A order: drift raises
/// one pair's ratio and lowers the next one's, and so widens the interval but does not move the
/// median of the pairs' ratios. Pairs in which a time is not finite and above 0 are left out, and
/// so is what the longer list has too much. Without a pair: value, low and high are 1 and pairs 0.
[[nodiscard]] Ratio PairedRatio(std::span<const double> baseline, std::span<const double> candidate,
                                std::uint64_t seed);

/// Whether the two differ by more than `margin` (0.01: 1 %) in either direction, with 95 %
/// confidence. Never with fewer than kFewestSamples pairs.
[[nodiscard]] bool Differs(const Ratio& ratio, double margin);

}  // namespace kernelpro
