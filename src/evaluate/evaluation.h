// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "kernelpro/profile.h"

namespace kernelpro {

enum class Verdict : std::uint8_t {
  kOk,
  kCompileError,
  kPolicyViolation,
  kLaunchError,
  kRuntimeError,
  kWrongResult,
  kUnwrittenOutput,
  kNondeterministic,
  kOutOfBounds,
  kInputModified,
  kRace,
  kTimeout,
  kOutOfMemory,
  kTimingEscape,
  kImpossibleTime,
  kUnsupported,
  kInfrastructureError,
};

/// "ok", "compile_error", ...: the words of the docs, the JSON and the database.
[[nodiscard]] std::string_view Name(Verdict verdict);
[[nodiscard]] std::optional<Verdict> ParseVerdict(std::string_view name);

/// Error of one output against the double-precision reference.
struct OutputError {
  std::string tensor;
  double max_absolute = 0;
  double max_relative = 0;  ///< over elements with |want| > absolute tolerance
  double worst_ratio = 0;   ///< error / allowed error of the worst element; > 1 fails
  std::uint64_t failed_elements = 0, elements = 0, unwritten_elements = 0;
  std::int64_t first_failed = -1;
};

struct WorkloadCheck {
  std::string workload;
  bool hidden = false;
  std::uint32_t seeds = 0;          ///< independent inputs checked
  std::vector<OutputError> errors;  ///< worst over the seeds
};

struct WorkloadTime {
  std::string workload;
  double weight = 1;
  double time_us = 0;
  double floor_us = 0;                   ///< from the task's bytes and flops
  std::vector<EmulatedLaunch> launches;  ///< emulator: counters of the timed call
};

/// Everything found out about one candidate; never changes once written.
struct Evaluation {
  Verdict verdict = Verdict::kInfrastructureError;
  std::string reason;  ///< one sentence for a person; empty when ok
  std::vector<WorkloadCheck> checks;
  std::vector<WorkloadTime> times;
  double time_us = 0;  ///< weighted sum over the timed workloads; 0 unless ok
  Provenance time_provenance = Provenance::kModelled;
  std::vector<simt::Fault> faults;
  double evaluate_ms = 0;  ///< cost of this evaluation
};

}  // namespace kernelpro
