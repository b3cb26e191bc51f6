// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

/// What the clocks around a row of calls say about the candidate. Pure.
namespace kernelpro {

/// One row of calls under three clocks, microseconds in all. The first two are read in the
/// untrusted process, the third is the referee's own.
struct Window {
  std::uint32_t calls = 0;
  double stream_us = 0;   ///< events around the calls, on the stream that they were given
  double context_us = 0;  ///< the same, to the moment when the whole context was idle
  double wall_us = 0;
};

/// Clocks of an honest row differ by what waking up costs: about 10 us on an H200
/// (docs/measurements).
inline constexpr double kClockSlackUs = 30;
/// Share of the window by which event time and the referee's clock may differ.
inline constexpr double kClockShare = 0.02;

/// Why a sample is not counted; nothing when its clocks fit together. A busy machine disturbs some
/// samples (an interrupt between two clocks), a forger all that matter: he gains nothing, because
/// only samples that fit are counted.
[[nodiscard]] std::optional<std::string> WhyNotCounted(const Window& window);

/// Why a row of calls is not believed beside calls that were waited for one by one (of which the
/// fastest counts); nothing when it is.
[[nodiscard]] std::optional<std::string> WhyPutOff(std::span<const Window> rows,
                                                   std::span<const Window> singles);

}  // namespace kernelpro
