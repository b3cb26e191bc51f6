// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "base/result.h"
#include "device/device.h"
#include "emulator/model/model.h"
#include "evaluate/evaluator.h"
#include "search/workbench.h"
#include "task/candidate.h"
#include "task/task.h"
#include "toolchain/toolchain.h"

namespace kernelpro::app {

/// Prints "kernelpro: ..." (or {"error": ...} with --json) and returns the exit code for the error.
[[nodiscard]] int Complain(const Error& error, bool json);

/// Turns the first Ctrl-C or SIGTERM into a stop request and the second into an immediate end. Make
/// it before any other thread is started: it blocks the signals for all of them.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  [[nodiscard]] std::stop_token token() const { return source_.get_token(); }

 private:
  std::stop_source source_;
  std::jthread thread_;
};

/// Everything that judges candidates of one task.
struct Bench {
  Task task;
  std::unique_ptr<Device> device;
  model::GpuSpec spec;
  std::unique_ptr<Toolchain> toolchain;
  std::unique_ptr<Evaluator> evaluator;
  /// The emulator in front of a real GPU; null when the device is the emulator, or it is not
  /// wanted.
  std::unique_ptr<Device> filter_device;
  std::unique_ptr<Evaluator> filter;

  [[nodiscard]] search::Workbench MakeWorkbench();
};

/// The user's build cache: $KERNELPRO_CACHE, $XDG_CACHE_HOME/kernelpro or ~/.cache/kernelpro.
[[nodiscard]] std::filesystem::path CacheFolder();

/// nvcc with that cache.
[[nodiscard]] Result<std::unique_ptr<Toolchain>> FindToolchain();

/// On the heap: the evaluator refers to its neighbours.
[[nodiscard]] Result<std::unique_ptr<Bench>> OpenBench(const std::filesystem::path& task,
                                                       const std::string& device,
                                                       std::optional<std::uint64_t> input_seed,
                                                       bool filter = true);

/// The text of a source file; kInvalidArgument when it is not text.
[[nodiscard]] Result<std::string> ReadSource(const std::filesystem::path& path);

}  // namespace kernelpro::app
