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
#include "device/cuda/runner_process.h"
#include "evaluate/outcome.h"
#include "evaluate/sanitizer_log.h"
#include "process/confine.h"
#include "task/task.h"
#include "toolchain/toolchain.h"

/// NVIDIA's compute-sanitizer over a finalist on a real GPU: out of bounds by one inside the
/// driver's rounding, races in shared memory, reads of memory that nobody wrote, and barriers that
/// not all reach, none of which a checked call must show.
///
/// What it cannot show: the log is made by a tool in whose process tree the candidate runs, so a
/// candidate that knows the tool may misbehave only without it, or forge the log. It comes on top
/// of the referee's own checks and never replaces one.
namespace kernelpro {

/// One tool's run.
struct SanitizerRun {
  std::string tool;          ///< "memcheck", "racecheck", "initcheck", "synccheck"
  bool ran = false;          ///< to its end, or until it found something
  std::uint64_t errors = 0;  ///< warnings are not counted
  /// The first finding with kernel and source line, or why it did not run.
  std::string first_message;
  bool misaligned = false;  ///< the first finding is about alignment
  std::chrono::milliseconds elapsed{0};
};

struct SanitizerReport {
  std::vector<SanitizerRun> runs;  ///< four, in the order above; empty: no workload is small enough
  std::uint32_t workloads = 0;     ///< called under each tool
  std::uint32_t left_out = 0;      ///< workloads that are too large for it
  std::vector<ConfinementReport> confinement;  ///< what the tools and the candidate ran in

  [[nodiscard]] bool Clean() const;  ///< all four ran and found nothing
};

struct SanitizerRequest {
  std::filesystem::path tool;       ///< compute-sanitizer
  std::filesystem::path toolkit;    ///< the CUDA toolkit, read by it; may be empty
  cuda::RunnerRecipe recipe;        ///< how candidates are run on this GPU
  std::filesystem::path library;    ///< the candidate's
  std::chrono::seconds limit{120};  ///< of each tool
  /// Off only to find out whether the confinement is what keeps the tool from working.
  bool confine = true;
};

/// bin/compute-sanitizer or compute-sanitizer/compute-sanitizer under the toolkit, or the one on
/// $PATH; empty when there is none.
[[nodiscard]] std::filesystem::path FindComputeSanitizer(const std::filesystem::path& toolkit);

/// Calls the candidate under each of the four tools, once on every checked and hidden workload
/// whose tensors have at most 64 MiB in all, with fresh secret inputs. Errors are our own; a tool
/// that does not work here is a run that did not run.
[[nodiscard]] Result<SanitizerReport> RunSanitizers(const Task& task,
                                                    const SanitizerRequest& request,
                                                    const std::stop_token& stop);

/// What the findings make of a candidate: memcheck out_of_bounds (runtime_error for alignment),
/// racecheck race, initcheck nondeterministic, synccheck runtime_error. Nothing when there are
/// none.
[[nodiscard]] std::optional<Condemnation> JudgeSanitizers(const SanitizerReport& report);

/// One line: "memcheck, racecheck, initcheck, synccheck clean (3 workloads)", what was found, and
/// what did not run.
[[nodiscard]] std::string Describe(const SanitizerReport& report);

/// What the way a tool ended and its log say together; pure, for RunSanitizers.
[[nodiscard]] SanitizerRun JudgeSanitizerRun(std::string tool, const SanitizerLog& log,
                                             const ProcessResult& ended,
                                             const ProcessLimits& limits);

}  // namespace kernelpro
