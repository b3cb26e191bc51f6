// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "process/confine.h"

namespace kernelpro {

/// Limits of one child and all that it starts. 0 means "no limit of this kind".
struct ProcessLimits {
  std::chrono::milliseconds wall{0};      ///< the whole process group is killed after this
  std::uint64_t address_space_bytes = 0;  ///< RLIMIT_AS
  std::uint64_t cpu_seconds = 0;          ///< RLIMIT_CPU, each process: SIGXCPU, later SIGKILL
  std::uint64_t file_bytes = 0;           ///< RLIMIT_FSIZE: the largest file it may write
  std::uint64_t open_files = 0;           ///< RLIMIT_NOFILE
  std::uint64_t output_bytes =
      1U << 20U;  ///< kept of stdout and of stderr each; the rest is read and dropped
};

/// A file descriptor of ours that the child gets as number `child_fd` (>= 3).
struct InheritedFd {
  int ours = -1;
  int child_fd = -1;
};

struct ProcessSpec {
  std::vector<std::string> argv;  ///< argv[0] is a path or is looked up on $PATH
  /// The child's whole environment, as NAME=VALUE; unset means a copy of ours.
  std::optional<std::vector<std::string>> environment;
  std::filesystem::path folder;  ///< working folder; empty means ours
  std::string input;             ///< given on standard input, then end of file
  std::vector<InheritedFd> fds;  ///< every other descriptor above 2 is closed in the child
  ProcessLimits limits;
  std::optional<Confinement> confinement;  ///< unset: the child may do what its owner may
};

struct ProcessResult {
  enum class End : std::uint8_t { kExited, kSignaled, kTimedOut, kCancelled };
  End end = End::kExited;
  int exit_code = 0;  ///< when kExited
  int signal = 0;     ///< when kSignaled
  std::string out;
  std::string err;
  bool output_cut = false;  ///< more than limits.output_bytes was written
  std::chrono::milliseconds elapsed{0};
  std::chrono::milliseconds cpu{0};  ///< of the child and of all that it waited for
  std::uint64_t peak_rss_bytes = 0;
  std::vector<ConfinementReport> confinement;  ///< what was on; empty when none was asked for

  [[nodiscard]] bool Succeeded() const { return end == End::kExited && exit_code == 0; }
};

/// A running child that leads its own process group and dies with its parent. Destroying it kills
/// the group. Not thread safe; one owner. Standard output and error go to pipes that Wait drains.
class Child {
 public:
  /// kNotFound when argv[0] cannot be found or run; kUnavailable when a required confinement is
  /// not to be had.
  [[nodiscard]] static Result<Child> Start(const ProcessSpec& spec);
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  [[nodiscard]] pid_t pid() const;

  /// What was on when its program started; empty when none was asked for.
  [[nodiscard]] const std::vector<ConfinementReport>& confinement() const;

  /// Reads output and waits for the end; at the wall limit or when `stop` is requested the group
  /// is killed. May be called once.
  [[nodiscard]] Result<ProcessResult> Wait(const std::stop_token& stop = {});

  /// Whether it still runs, waiting at most `patience`. Drains output meanwhile.
  [[nodiscard]] bool RunsAfter(std::chrono::milliseconds patience);

  /// SIGKILL to the whole group; harmless when it has ended.
  void Kill();

 private:
  struct State;

  explicit Child(State* state) : state_(state) {}

  State* state_ = nullptr;
};

/// Start and Wait in one.
[[nodiscard]] Result<ProcessResult> RunProcess(const ProcessSpec& spec,
                                               const std::stop_token& stop = {});

/// "exited with 3", "killed by signal 11 (SIGSEGV)", "ran past its limit of 20 s and was killed".
[[nodiscard]] std::string DescribeEnd(const ProcessResult& result, const ProcessLimits& limits);

}  // namespace kernelpro
