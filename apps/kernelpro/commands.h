// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

/// The subcommands: options as parsed, and what each returns to the shell: 0 done, 1 the job failed
/// honestly, 2 bad usage or input, 3 the machine lacks something.
namespace kernelpro::app {

struct OptimizeOptions {
  std::filesystem::path task;
  std::string device = "auto";
  std::string proposer = "playbook";
  std::string search = "mcts";
  std::uint32_t evaluations = 40;
  double minutes = 5;
  std::optional<std::uint64_t> seed;
  std::filesystem::path run;
  std::filesystem::path resume;
  bool json = false;
};

struct CandidateOptions {  ///< evaluate, profile, diagnose
  std::filesystem::path task;
  std::filesystem::path source;
  std::vector<std::string> flags;
  std::filesystem::path ncu_csv;  ///< instead of task and source (profile, diagnose)
  std::string device = "auto";
  std::string gpu = "h200";  ///< hardware of an ncu file
  bool no_filter = false;    ///< real GPU: do not ask the emulator first
  bool sanitize = false;     ///< evaluate: compute-sanitizer too
  bool json = false;
};

struct EmulateOptions {
  std::filesystem::path source;  ///< .cu or .ptx
  std::string kernel;
  std::string grid = "1";
  std::string block = "1";
  std::vector<std::string> arguments;
  std::uint64_t shared = 0;
  std::string gpu = "h200";
  bool sample = false;
  bool full = false;
  bool json = false;
};

struct ClockOptions {
  std::string device = "auto";
  std::uint32_t repeats = 5;
  bool json = false;
};

struct PlainOptions {  ///< tools, doctor
  bool json = false;
};

struct SelftestOptions {
  std::string device = "auto";
  std::string only;  ///< shell pattern of fixture names; empty: all
  bool quick = false;
  std::filesystem::path fixtures;  ///< folder of the suite; empty: the one that came with us
  unsigned jobs = 0;               ///< compilations at once; 0: one per processor
  bool json = false;
};

[[nodiscard]] int Optimize(const OptimizeOptions& options);
[[nodiscard]] int Evaluate(const CandidateOptions& options);
[[nodiscard]] int ShowProfile(const CandidateOptions& options);
[[nodiscard]] int ShowDiagnosis(const CandidateOptions& options);
[[nodiscard]] int Emulate(const EmulateOptions& options);
[[nodiscard]] int Selftest(const SelftestOptions& options);
[[nodiscard]] int StudyTheClock(const ClockOptions& options);
[[nodiscard]] int ListTools(const PlainOptions& options);
[[nodiscard]] int Doctor(const PlainOptions& options);

}  // namespace kernelpro::app
