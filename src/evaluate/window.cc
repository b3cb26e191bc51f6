// SPDX-License-Identifier: Apache-2.0
#include "evaluate/window.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace kernelpro {
namespace {

bool Usable(const Window& w) {
  return std::isfinite(w.stream_us) && std::isfinite(w.context_us) && w.stream_us > 0 &&
         w.context_us > 0 && w.calls > 0;
}

/// Work that the events on the given stream do not see.
bool Escapes(const Window& w) {
  return w.context_us > w.stream_us * (1 + kClockShare) + kClockSlackUs;
}

bool ClocksDisagree(const Window& w) {
  return std::fabs(w.wall_us - w.stream_us) > kClockShare * w.wall_us + kClockSlackUs;
}

double MedianPerCall(std::span<const Window> windows) {
  std::vector<double> times;
  for (const Window& w : windows) {
    times.push_back(w.context_us / w.calls);
  }
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
  return times[times.size() / 2];
}

double FastestPerCall(std::span<const Window> windows) {
  double fastest = std::numeric_limits<double>::infinity();
  for (const Window& w : windows) {
    fastest = std::min(fastest, w.context_us / w.calls);
  }
  return fastest;
}

}  // namespace

std::optional<std::string> WhyNotCounted(const Window& w) {
  if (!Usable(w)) {
    return "the events around the calls give no time";
  }
  if (Escapes(w)) {
    return fmt::format(
        "work went on after the last event on the candidate's stream: {:.1f} us to the event, "
        "{:.1f} "
        "us until the GPU was idle ({} calls); a side stream must be joined",
        w.stream_us, w.context_us, w.calls);
  }
  if (ClocksDisagree(w)) {
    return fmt::format(
        "event time and the referee's clock disagree: {:.1f} us against {:.1f} us "
        "over {} calls",
        w.stream_us, w.wall_us, w.calls);
  }
  return std::nullopt;
}

std::optional<std::string> WhyPutOff(std::span<const Window> rows,
                                     std::span<const Window> singles) {
  if (rows.empty() || singles.empty()) {
    return std::nullopt;
  }
  const double row = MedianPerCall(rows);
  const double single = FastestPerCall(singles);
  // In a row the host prepares a call while the GPU works on the one before: up to twice as fast.
  if (single <= 2 * row + kClockSlackUs) {
    return std::nullopt;
  }
  return fmt::format(
      "a call that is waited for takes {:.1f} us, one in a row {:.1f} us: work is put "
      "off or shared between calls",
      single, row);
}

}  // namespace kernelpro
