// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernelpro/profile.h"
#include "process/process.h"

namespace kernelpro {

/// The injection library: ../lib/kernelpro/libkernelpro-activity.so of the running program's
/// folder, in a build and in a bundle alike. Empty when it is not there: it was built without
/// CUPTI's headers.
[[nodiscard]] std::filesystem::path ActivityLibrary();

struct ActivityRunOptions {
  std::vector<std::string> argv;
  /// The program's whole environment, as NAME=VALUE; unset means a copy of ours. What tracing needs
  /// is added.
  std::optional<std::vector<std::string>> environment;
  std::filesystem::path folder;          ///< working folder; empty means ours
  std::chrono::milliseconds wall{0};     ///< the program is ended after this; 0: never
  std::uint64_t record_limit = 400'000;  ///< what comes after is dropped, and a note says so
  bool whole_graphs = false;             ///< graphs as one event each: cheaper, without kernels
  std::filesystem::path library;         ///< empty: ActivityLibrary()
  std::filesystem::path cupti;           ///< libcupti.so.13; empty: the library finds one
};

struct ActivityRun {
  Profile profile;        ///< see activity_trace.h
  ProcessResult process;  ///< how the program ended, and its output
};

/// Runs a program once under the activity trace, as nobody else's guard: it may do what its owner
/// may. A program that was ended at the wall limit gives what it did until then, with a note.
/// Several processes (the program started others): the one with most kernel time, with a note.
/// Errors: kUnavailable when there is no library, or CUPTI is missing or refuses (with its words);
/// kToolFailed when the program failed (with its exit code or signal and the end of its output);
/// kNotFound when it does not exist, never started CUDA, or ran no kernel; kTimeout when it ran no
/// kernel until the limit; kCancelled; kParse and kIo of its trace.
[[nodiscard]] Result<ActivityRun> RunWithActivity(const ActivityRunOptions& options,
                                                  const std::stop_token& stop = {});

}  // namespace kernelpro
