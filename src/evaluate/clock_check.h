// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "toolchain/toolchain.h"

namespace kernelpro {

/// What the clock says about kernels whose ratio is known. Ratios are baseline over candidate.
struct ClockCheck {
  double same = 0;         ///< a kernel against itself in another process: 1
  double half = 0;         ///< one launch against two of the same: 2
  double clock_share = 0;  ///< |event time - referee's clock| / clock of the two kernels, the worse
  bool trusted = false;    ///< all three within the limits below
  std::string text;        ///< a sentence with the figures
};

/// Limits of a trusted clock.
inline constexpr double kSameLimit = 0.01, kHalfLimit = 0.04, kClockLimit = 0.02;

/// Takes about a second on a real GPU. kInvalidArgument on the emulator, whose time is modelled.
[[nodiscard]] Result<ClockCheck> CheckClock(Device& device, Toolchain& toolchain,
                                            const std::stop_token& stop);

/// The same in depth, for `kernelpro clock`.
struct ClockStudy {
  std::vector<double> same, half;  ///< one ratio a repeat
  std::uint32_t called_right = 0;  ///< of `repeats`: a 3 % faster kernel was called faster
  std::uint32_t false_alarms = 0;  ///< of `repeats`: a kernel was called different from itself

  struct Agreement {
    double event_us = 0, clock_us = 0;  ///< per call
  };

  std::vector<Agreement> agreement;  ///< kernels of 5 us to 5 ms
};

[[nodiscard]] Result<ClockStudy> StudyClock(Device& device, Toolchain& toolchain,
                                            std::uint32_t repeats, const std::stop_token& stop);

}  // namespace kernelpro
