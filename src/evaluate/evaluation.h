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
  std::int64_t worst = -1;  ///< where worst_ratio is; -1 when every element is exact
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

/// Device time of one candidate on a real GPU, over all its samples. Microseconds per call,
/// weighted over the timed workloads.
struct TimeFigures {
  double median_us = 0;
  double low_us = 0, high_us = 0;  ///< 95 % bootstrap interval of the median
  double spread = 0;               ///< interquartile range over median
  double cold_us = 0;              ///< every call on buffers that are not in the L2 cache; = median
  double warm_us = 0;              ///< the same buffers again and again
  double host_us = 0;              ///< the referee's own clock over the same calls
  std::uint32_t samples = 0, calls = 0, discarded = 0;
};

/// Candidate against baseline, measured interleaved (A/B/B/A). > 1: the candidate is faster.
struct SpeedupFigures {
  double ratio = 0;
  double low = 0, high = 0;  ///< 95 % bootstrap interval over pairs
};

/// What the GPU did while it was measured.
struct ClockRecord {
  double sm_mhz_low = 0, sm_mhz_high = 0, memory_mhz = 0;
  double temperature_c = 0, power_w = 0;
  std::vector<std::string> throttle_reasons;   ///< seen in any sample
  std::vector<std::string> foreign_processes;  ///< others that used the GPU: "pid 12: python"
};

/// Arithmetic that an answer was computed with, widest first.
struct PrecisionClass {
  std::string name;      ///< "fp64", "fp32", "tf32", "bf16", "fp16", "fp8"; empty: not looked at
  std::string evidence;  ///< "HMMA.16816.F32.TF32 in matmul_kernel (SASS)"
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
  /// Parts of it: starting the candidate's process, checked calls, timed calls.
  double start_ms = 0, check_ms = 0, time_ms = 0;

  PrecisionClass precision;
  std::uint32_t checked_calls = 0;      ///< calls whose outputs were compared
  std::vector<std::string> notes;       ///< fallbacks and warnings, a sentence each
  std::vector<SandboxMeasure> sandbox;  ///< what kept the candidate in
  // Real GPU only:
  std::optional<TimeFigures> figures, baseline;
  std::optional<SpeedupFigures> speedup;
  std::optional<ClockRecord> clocks;
  std::optional<double> modelled_us;  ///< what the emulator said when it filtered first
};

}  // namespace kernelpro
