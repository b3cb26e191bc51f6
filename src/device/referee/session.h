// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/rng.h"
#include "device/device.h"
#include "device/protocol/control.h"
#include "device/protocol/runner_message.h"
#include "device/referee/guarded_buffer.h"
#include "device/referee/outcome.h"
#include "device/referee/processes.h"

namespace kernelpro::referee {

/// A session on the emulator: one runner and one emulated GPU, both its children.
class EmulatedSession final : public Session {
 public:
  /// Starts both processes and loads the candidate. What goes wrong in the candidate while loading
  /// is the outcome of the first Call. kNotFound: no such library.
  [[nodiscard]] static Result<std::unique_ptr<Session>> Open(const Programs& programs,
                                                             const std::string& gpu,
                                                             const SessionRequest& request);
  ~EmulatedSession() override;
  EmulatedSession(const EmulatedSession&) = delete;
  EmulatedSession& operator=(const EmulatedSession&) = delete;

  [[nodiscard]] Result<BufferId> Allocate(const BufferRequest& request) override;
  [[nodiscard]] Status Free(BufferId id) override;
  [[nodiscard]] Status Write(BufferId id, std::uint64_t offset,
                             std::span<const std::byte> bytes) override;
  [[nodiscard]] Status Read(BufferId id, std::uint64_t offset, std::span<std::byte> bytes) override;
  [[nodiscard]] Result<bool> GuardsIntact(BufferId id) override;
  [[nodiscard]] Result<CallOutcome> Call(const CallRequest& request,
                                         const std::stop_token& stop) override;

  [[nodiscard]] std::vector<SandboxMeasure> sandbox() const override { return sandbox_; }

 private:
  struct Buffer {
    GuardedBuffer memory;
    std::uint64_t address = 0;
  };

  EmulatedSession(Processes processes, const SessionRequest& request, Rng guard_patterns);

  [[nodiscard]] Status Load(const SessionRequest& request);
  /// Why the runner never came to load the candidate; Ok when it did.
  [[nodiscard]] Status CheckRunnerStarted();
  [[nodiscard]] Result<Buffer*> Find(BufferId id);
  [[nodiscard]] Result<std::vector<std::byte>> ArgumentImage(const CallRequest& request);

  /// Sends to the GPU and waits for its answer; nothing when it is lost or late.
  template <class Answer, class Message>
  [[nodiscard]] std::optional<Answer> AskGpu(protocol::ControlKind kind, const Message& message,
                                             Deadline deadline, int descriptor = -1);
  /// Waits for the answer `sequence` of the runner.
  [[nodiscard]] RunnerEnd WaitForRunner(std::uint64_t sequence, Deadline deadline,
                                        const std::stop_token& stop);
  /// One frame of the runner; false: keep waiting.
  [[nodiscard]] bool TakeRunnerFrame(const protocol::Frame& frame, std::uint64_t sequence,
                                     RunnerEnd* end);
  /// Closes the call on the GPU, finds out how a dead runner died, and judges.
  [[nodiscard]] CallOutcome Conclude(RunnerEnd end, bool prepare);
  void ReadOutput();
  void End(std::string why);

  Processes processes_;
  std::uint64_t host_memory_bytes_;
  Rng guard_patterns_;
  std::map<BufferId, Buffer> buffers_;
  BufferId next_buffer_ = 1;
  std::uint64_t sequence_ = 0;
  std::string output_;                        ///< of the call in progress, cut at kPrintedLimit
  std::optional<ProcessResult> dead_runner_;  ///< when it was found dead while loading
  std::optional<CallOutcome> load_failure_;
  bool confined_ = false;  ///< the runner has said what confines it
  std::vector<SandboxMeasure> sandbox_;
  std::string ended_;  ///< why every later call fails; empty while alive
};

}  // namespace kernelpro::referee
