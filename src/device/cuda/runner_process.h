// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "device/protocol/cuda_runner.h"
#include "device/referee/frame_socket.h"
#include "process/process.h"

namespace kernelpro::cuda {

/// How runners for one GPU are started.
struct RunnerRecipe {
  std::filesystem::path runner;   ///< kernelpro-runner
  std::filesystem::path runtime;  ///< NVIDIA's libcudart.so
  std::string gpu_uuid;           ///< the only GPU that the candidate sees

  /// kUnavailable names what is missing.
  [[nodiscard]] static Result<RunnerRecipe> Find(std::string gpu_uuid);
};

/// One runner process with the referee's ends of everything that leads to it. It may be started
/// before there is a candidate: making a context takes the driver a few hundred milliseconds.
class RunnerProcess {
 public:
  [[nodiscard]] static Result<std::unique_ptr<RunnerProcess>> Start(const RunnerRecipe& recipe);
  ~RunnerProcess();
  RunnerProcess(const RunnerProcess&) = delete;
  RunnerProcess& operator=(const RunnerProcess&) = delete;

  [[nodiscard]] referee::FrameSocket& socket() { return socket_; }

  [[nodiscard]] protocol::Doorbell& doorbell() { return *doorbell_; }

  [[nodiscard]] pid_t pid() const { return child_->pid(); }

  /// Takes in what the candidate printed; appends to *text up to `limit` bytes and drops the rest.
  void ReadOutput(std::string* text, std::size_t limit);

  [[nodiscard]] int output() const { return output_; }

  [[nodiscard]] bool RunsAfter(std::chrono::milliseconds patience) {
    return child_ && child_->RunsAfter(patience);
  }

  /// Kills it and waits until it is gone, and with it its context on the GPU. How it had ended by
  /// itself, when it had.
  std::optional<ProcessResult> Finish();

  /// Bytes of host memory that it has in use; 0 when it is gone.
  [[nodiscard]] std::uint64_t ResidentBytes() const;

 private:
  RunnerProcess() = default;

  std::optional<Child> child_;
  referee::FrameSocket socket_;
  protocol::Doorbell* doorbell_ = nullptr;
  int output_ = -1;
};

}  // namespace kernelpro::cuda
