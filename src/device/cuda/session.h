// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/cuda/arena.h"
#include "device/cuda/gpu.h"
#include "device/cuda/runner_process.h"
#include "device/device.h"
#include "device/protocol/cuda_runner.h"
#include "device/referee/outcome.h"

namespace kernelpro::cuda {

/// Many calls in a row under the clock. Each has its own buffers.
struct BatchRequest {
  std::vector<std::byte> arguments;               ///< TaskArgs image
  std::vector<std::vector<PointerSlot>> warm_up;  ///< calls in front of the window
  std::vector<std::vector<PointerSlot>> timed;
  /// Called when the warm-up is over and the candidate waits: what the timed calls work on comes to
  /// be only now.
  std::function<Status()> fill;
  std::chrono::milliseconds wall_limit{20'000};
};

/// One call whose stream is held by a gate.
struct GatedRequest {
  std::vector<std::byte> arguments;
  std::vector<PointerSlot> pointers;
  /// Called while the gate is shut and the candidate has returned, or waits for its own work.
  std::function<Status()> look;
  std::chrono::milliseconds wall_limit{20'000};
};

struct BatchOutcome {
  CallOutcome call;
  double stream_us = 0;   ///< events around the calls on their stream, in the runner
  double context_us = 0;  ///< the same to an event after the whole context was idle
  double wall_us = 0;     ///< the referee's own clock from "go" to "done"
  std::uint64_t persisting_l2_bytes = 0;  ///< set aside by the candidate
  std::uint32_t stray_threads = 0;
};

/// A session on a real GPU.
class CudaSession final : public Session {
 public:
  /// Loads the candidate in a runner that was started before. What goes wrong in the candidate is
  /// the outcome of the first Call.
  [[nodiscard]] static Result<std::unique_ptr<CudaSession>> Open(
      Gpu& gpu, std::unique_ptr<RunnerProcess> runner, std::unique_ptr<Arena> arena,
      const SessionRequest& request);
  ~CudaSession() override;

  [[nodiscard]] Result<BufferId> Allocate(const BufferRequest& request) override;
  [[nodiscard]] Status Free(BufferId id) override;
  [[nodiscard]] Status Write(BufferId id, std::uint64_t offset,
                             std::span<const std::byte> bytes) override;
  [[nodiscard]] Status Read(BufferId id, std::uint64_t offset, std::span<std::byte> bytes) override;
  [[nodiscard]] Result<bool> GuardsIntact(BufferId id) override;
  [[nodiscard]] Result<CallOutcome> Call(const CallRequest& request,
                                         const std::stop_token& stop) override;

  [[nodiscard]] std::vector<SandboxMeasure> sandbox() const override { return sandbox_; }

  [[nodiscard]] CudaSession* cuda() override { return this; }

  [[nodiscard]] Result<BatchOutcome> TimeBatch(const BatchRequest& request,
                                               const std::stop_token& stop);

  [[nodiscard]] Result<CallOutcome> CallGated(const GatedRequest& request,
                                              const std::stop_token& stop);

  [[nodiscard]] Gpu& gpu() { return gpu_; }

  /// Where the referee sees a buffer.
  [[nodiscard]] Result<DevicePointer> Address(BufferId id) const;
  /// Name of the first of these buffers whose guard bands were changed; empty when none.
  [[nodiscard]] Result<std::string> BrokenGuard(std::span<const BufferId> ids);

  [[nodiscard]] std::uint64_t arena_bytes() const { return arena_->memory().bytes(); }

  /// Device memory that the candidate's process holds beyond the arena, bytes (0 when not known).
  [[nodiscard]] std::uint64_t ForeignBytes() const;

  /// For the next candidate. The session is over: its process is gone.
  [[nodiscard]] std::unique_ptr<Arena> TakeArena();

  [[nodiscard]] pid_t pid() const { return runner_ ? runner_->pid() : 0; }

 private:
  CudaSession(Gpu& gpu, std::unique_ptr<RunnerProcess> runner, std::unique_ptr<Arena> arena,
              const SessionRequest& request);

  [[nodiscard]] Status OpenArena(referee::Deadline deadline);
  [[nodiscard]] Status Load(const SessionRequest& request);
  [[nodiscard]] Result<std::vector<std::byte>> Image(std::span<const std::byte> arguments,
                                                     std::span<const PointerSlot> pointers) const;
  [[nodiscard]] Result<std::vector<std::byte>> PackBatch(const BatchRequest& request) const;
  /// Waits for the runner's answer to `sequence`; returns early, without one, when `bell` holds the
  /// sequence.
  [[nodiscard]] referee::RunnerEnd Await(std::uint64_t sequence, referee::Deadline deadline,
                                         const std::stop_token& stop,
                                         const std::atomic<std::uint32_t>* bell = nullptr);
  /// The end of a call for its caller; kCancelled is an Error.
  [[nodiscard]] Result<CallOutcome> Finish(referee::RunnerEnd end, protocol::CudaFigures* figures,
                                           std::chrono::milliseconds wall_limit);
  [[nodiscard]] std::optional<referee::RunnerEnd> Look(std::uint64_t sequence);
  [[nodiscard]] bool Take(const protocol::Frame& frame, std::uint64_t sequence,
                          referee::RunnerEnd* end);
  [[nodiscard]] CallOutcome Conclude(referee::RunnerEnd end, protocol::CudaFigures* figures,
                                     std::chrono::milliseconds wall_limit);
  void End(std::string why);

  Gpu& gpu_;
  std::unique_ptr<RunnerProcess> runner_;
  std::unique_ptr<Arena> arena_;
  std::uint64_t host_memory_bytes_;
  std::uint64_t arena_in_runner_ = 0;
  std::uint64_t free_at_start_ = 0;
  std::uint64_t sequence_ = 0;
  std::string output_;
  std::vector<SandboxMeasure> sandbox_;
  std::optional<CallOutcome> load_failure_;
  std::string ended_;
};

/// The report that a real GPU allows: what the runner found after a call. Pure; a forged one can
/// only condemn.
[[nodiscard]] protocol::CallReport ReportOf(const protocol::CudaFigures& figures);

}  // namespace kernelpro::cuda
