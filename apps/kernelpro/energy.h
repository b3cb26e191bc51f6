// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <stop_token>

#include "base/result.h"
#include "profile/power_window.h"
#include "setup.h"
#include "task/candidate.h"

namespace kernelpro::app {

/// Energy of one call of the candidate on the task's timed workload of most weight, over a window
/// of at least `window`: call after call, on several sets of fresh inputs (power depends on
/// values). kUnavailable without a real GPU or where NVML tells neither energy nor power.
[[nodiscard]] Result<PowerReport> MeasureEnergy(Bench& bench, const Candidate& candidate,
                                                std::chrono::milliseconds window,
                                                const std::stop_token& stop);

}  // namespace kernelpro::app
