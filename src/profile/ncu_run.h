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

namespace kernelpro {

/// One run of a program under Nsight Compute.
struct NcuRequest {
  std::filesystem::path ncu;
  std::vector<std::string> argv;                        ///< the program and its arguments
  std::filesystem::path folder;                         ///< its working folder; empty: ours
  std::optional<std::vector<std::string>> environment;  ///< NAME=VALUE; unset: a copy of ours

  /// Which kernels: a name as a person writes it ("scale", "ns::scale<4>", "_Z5scalePf"), meant as
  /// it stands, or "regex:" and an expression for the function's name. Empty: every kernel.
  std::string kernel;
  std::uint32_t launch_skip = 0;   ///< launches of these kernels to let pass first
  std::uint32_t launch_count = 1;  ///< 0: all
  std::vector<std::string> metrics;
  /// Warps' program counters are sampled and the source page is read (metrics must ask for it).
  bool source_page = false;

  enum class Replay : std::uint8_t {
    kKernel,       ///< every pass restores memory and launches again
    kApplication,  ///< every pass runs the program again: for kernels whose blocks wait for others
  };
  Replay replay = Replay::kKernel;
  /// Empty the caches before every pass; false: leave them as the program does, as its timing did.
  bool flush_caches = false;
  /// False: only between cudaProfilerStart and cudaProfilerStop.
  bool profile_from_start = true;
  /// Log2 of cycles between samples, minus 5 (0..31); unset: ncu decides.
  std::optional<std::uint32_t> sampling_interval;
  std::chrono::milliseconds limit{600'000};
};

/// What came of it.
struct NcuRun {
  Profile profile;         ///< one KernelProfile a launch; hot spots when the source page was read
  std::string raw_csv;     ///< `--page raw --csv` under LC_ALL=C, base units
  std::string source_csv;  ///< `--page source --csv`; empty when not asked for
  std::vector<std::string> command;
  std::chrono::milliseconds wall{0};
};

/// The command line, with ncu's own messages and table going to `log` and, for the source page, the
/// report to `report`. Clocks are left alone.
[[nodiscard]] std::vector<std::string> NcuCommand(const NcuRequest& request,
                                                  const std::filesystem::path& log,
                                                  const std::filesystem::path& report);

/// Runs it and reads what it made. The program's own output is dropped, and cannot pass for ncu's:
/// that is read from a file of its own. Nothing that was started is left when it returns, the limit
/// has passed or `stop` was requested. Errors: kInvalidArgument for an empty request; kNotFound
/// when ncu cannot be run; those of ExplainNcuFailure.
[[nodiscard]] Result<NcuRun> RunNcu(const NcuRequest& request, const std::stop_token& stop);

}  // namespace kernelpro
