// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "evaluate/compare.h"
#include "evaluate/gpu_trials.h"
#include "evaluate/inputs.h"
#include "evaluate/outcome.h"
#include "task/task.h"

namespace kernelpro {

/// Buffers of one workload in a session, filled and judged by the referee.
class TrialRun {
 public:
  /// `copies`: on a real GPU, where filling and comparing is done on the device; else null.
  [[nodiscard]] static Result<TrialRun> Create(const Task& task, const Workload& workload,
                                               Session& session, GpuTrials* copies = nullptr);

  struct Ruling {
    std::optional<Condemnation> condemned;
    CallOutcome outcome;
    std::vector<OutputError> errors;
    std::uint64_t written_elements = 0;  ///< of all outputs
    std::uint64_t output_elements = 0;
  };

  /// Writes the trial's inputs, poisons the outputs with a pattern of `poison_seed`, calls the
  /// candidate once and judges: how it ended, guard bands, inputs unchanged, outputs written, and
  /// right.
  [[nodiscard]] Result<Ruling> Run(const Trial& trial, std::uint64_t poison_seed, CallMode mode,
                                   std::chrono::milliseconds limit, const std::stop_token& stop);

  /// Returns the buffers to the session.
  [[nodiscard]] Status Release();

 private:
  struct Buffer {
    BufferId id = 0;
    std::uint64_t bytes = 0;
    std::vector<std::byte> poison;  ///< outputs: what was written before the call
    std::uint64_t poison_seed = 0;  ///< of the same, where it was made on the device
  };

  TrialRun(const Task& task, Session& session) : task_(&task), session_(&session) {}

  [[nodiscard]] Status Prepare(const Trial& trial, std::uint64_t poison_seed);
  [[nodiscard]] Result<std::optional<Condemnation>> CheckBuffers(const Trial& trial);
  [[nodiscard]] Status CompareOutputs(const Trial& trial, CallMode mode, Ruling* ruling);

  // The same three on a real GPU.
  [[nodiscard]] Status PrepareOnGpu(const Trial& trial, std::uint64_t poison_seed);
  [[nodiscard]] Result<std::optional<Condemnation>> CheckBuffersOnGpu(const Trial& trial);
  [[nodiscard]] Status CompareOnGpu(const Trial& trial, Ruling* ruling);

  const Task* task_;
  Session* session_;
  GpuTrials* copies_ = nullptr;
  CallRequest call_;
  std::vector<Buffer> buffers_;  ///< in order of task.tensors
};

/// The sentence for outputs that are not right; nothing when all are.
[[nodiscard]] std::optional<Condemnation> JudgeOutputs(const Workload& workload,
                                                       const std::vector<OutputError>& errors);

}  // namespace kernelpro
