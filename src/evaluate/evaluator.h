// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>

#include "base/result.h"
#include "device/device.h"
#include "evaluate/evaluation.h"
#include "task/task.h"
#include "toolchain/toolchain.h"

namespace kernelpro {

struct EvaluatorOptions {
  std::uint32_t seeds_per_workload = 3;  ///< independent inputs, of several distributions
  /// Inputs come from this and the workload; unset: secret, fresh each time (getrandom). Set it
  /// only where a run must repeat (search --seed on the emulator): the candidate never sees it
  /// either way.
  std::optional<std::uint64_t> seed;
  std::chrono::milliseconds call_limit{20'000};
  /// Real GPU: what candidates are timed against, usually the task's seed.
  std::optional<Build> baseline;
  std::uint32_t timing_pairs = 14;     ///< real GPU: samples of candidate and baseline each
  std::filesystem::path cache_folder;  ///< where the compiled reference is kept
  /// cuobjdump or nvdisasm; empty: what a candidate computes with is read from its PTX alone.
  std::filesystem::path disassembler;
};

/// The referee: owns seeds, inputs, expected outputs, clock and verdict for one task on one device.
/// Expected outputs are computed once per (workload, seed) and kept. Not thread safe.
class Evaluator {
 public:
  /// Compiles the reference and proves that it runs, that it repeats itself, and that the task can
  /// tell right from wrong (sanity_gate.h). kInvalidArgument: the reference does not compile, with
  /// the first diagnostic, or the task is refused. kToolFailed: it crashes or does not end.
  [[nodiscard]] static Result<std::unique_ptr<Evaluator>> Create(const Task& task, Device& device,
                                                                 const EvaluatorOptions& options);
  virtual ~Evaluator() = default;
  /// Never an Error for what the candidate does; that is the verdict.
  [[nodiscard]] virtual Result<Evaluation> Evaluate(const BuildOutcome& build,
                                                    const std::stop_token& stop) = 0;
};

}  // namespace kernelpro
