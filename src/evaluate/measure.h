// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/rng.h"
#include "device/cuda/gpu.h"
#include "device/cuda/session.h"
#include "evaluate/contestant.h"
#include "evaluate/evaluation.h"
#include "evaluate/outcome.h"
#include "evaluate/window.h"
#include "task/task.h"

namespace kernelpro {

/// How a timed workload is measured on a real GPU. The defaults cost about half a second.
struct MeasurePlan {
  std::uint32_t pairs = 14;        ///< samples of each side
  double window_us = 3000;         ///< aim for one sample: the clock's own error is about 10 us
  std::uint32_t most_calls = 512;  ///< in one sample
  std::uint32_t singles = 5;       ///< calls that are waited for one by one
  std::uint32_t warm_samples = 3;
};

/// What was measured on one workload.
struct Measurement {
  std::vector<double> candidate_us, baseline_us;  ///< per call, cold; same index, same moment
  std::vector<double> host_us;                    ///< candidate, per call, by the referee's clock
  std::vector<double> warm_us;                    ///< candidate
  std::uint32_t calls = 0;                        ///< timed calls of the candidate
  std::uint32_t verified_calls = 0;               ///< of these: outputs compared
  std::uint32_t discarded = 0;                    ///< samples thrown away
  ClockRecord clocks;
  std::optional<Condemnation> condemned;
};

/// Times `candidate` against `baseline` (A/B/B/A) on one workload. Every call works on buffers of
/// its own that come to be while the candidate waits: mixes of `masters` that no call has seen
/// before. All outputs must have been written, all inputs and guard bands be as they were, and the
/// outputs of calls chosen after the fact must agree with the baseline's for the same inputs.
/// Without a baseline (null) the candidate runs alone and only "written" is asked of its outputs.
[[nodiscard]] Result<Measurement> Measure(cuda::Gpu& gpu, Contestant& candidate,
                                          Contestant* baseline, const Masters& masters,
                                          const MeasurePlan& plan, Rng secrets,
                                          const std::stop_token& stop);

}  // namespace kernelpro
