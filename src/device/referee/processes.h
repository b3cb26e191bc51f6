// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"
#include "device/device.h"
#include "device/referee/frame_socket.h"
#include "process/process.h"

namespace kernelpro::referee {

/// The files that a session starts.
struct Programs {
  std::filesystem::path runner;
  std::filesystem::path emulated_gpu;
  std::filesystem::path runtime;  ///< our libcudart.so.13

  /// Beside the running executable (build tree and installed tree alike). kUnavailable names the
  /// file that is missing.
  [[nodiscard]] static Result<Programs> Find();
};

/// The two children of one session with the referee's ends of their descriptors.
struct Processes {
  std::optional<Child> gpu;
  std::optional<Child> runner;
  FrameSocket gpu_socket;
  FrameSocket runner_socket;
  int output = -1;  ///< read end of the candidate's stdout and stderr, non-blocking; owner: session

  [[nodiscard]] static Result<Processes> Start(const Programs& programs, const std::string& gpu,
                                               const SessionRequest& request);
};

}  // namespace kernelpro::referee
