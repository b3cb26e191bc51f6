// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace kernelpro {

/// What a child and all that it starts may touch. Each measure is tried; one that the machine
/// refuses is reported and the child runs without it, unless `required`. System calls that reach
/// into other processes or the kernel (ptrace, mount, bpf, keyctl, setsid ...) are refused always.
struct Confinement {
  /// Files, or folders with all that lies beneath: may be read, and programs there run. A path that
  /// does not exist is left out. The child's own /proc/self is always in; to name it here would be
  /// the parent's.
  std::vector<std::filesystem::path> read_only;
  std::vector<std::filesystem::path> read_write;  ///< private folders; nothing there is run
  std::vector<std::filesystem::path> devices;     ///< device files that are read, written, driven
  bool files = true;                              ///< confine to these paths (Landlock)
  bool network = false;                           ///< leave the network reachable
  /// Own network and System V name spaces: as root directly, else inside a new user name space in
  /// which the user's and group's numbers stay what they are.
  bool new_user_namespace = true;
  /// RLIMIT_NPROC, threads included. Counts per user, so it is set only inside a new user name
  /// space, and root is exempt from it. 0: no limit.
  std::uint64_t processes = 0;
  /// Files and network must be confined as asked, else the child is not started.
  bool required = false;
};

/// What every program needs: the system's programs and libraries (also those of $LD_LIBRARY_PATH),
/// facts about the processor, /dev/null. No home folder, no /tmp, no settings in /etc.
[[nodiscard]] Confinement SystemConfinement();

/// One measure and whether it was on when the child's program started.
struct ConfinementReport {
  std::string name;  ///< "landlock", "seccomp", "user namespace", "no network", "process limit"
  bool on = false;
  std::string detail;  ///< what it does; when off, why
};

/// "landlock on, seccomp on, user namespace off (Operation not permitted)".
[[nodiscard]] std::string Describe(const std::vector<ConfinementReport>& measures);

/// A confinement made ready before fork, so that the child only makes system calls. For Spawn.
class PreparedConfinement {
 public:
  /// errno of each step in the child; 0: done, kSkipped: not asked for or not possible here.
  enum Step : std::uint8_t {
    kPrivileges,
    kNamespaces,
    kIdMaps,
    kProcesses,
    kNoNewPrivileges,
    kLandlock,
    kSeccomp,
    kSteps
  };

  static constexpr std::int32_t kSkipped = -1;
  using Outcome = std::array<std::int32_t, kSteps>;

  explicit PreparedConfinement(const Confinement& wanted);
  ~PreparedConfinement();
  PreparedConfinement(const PreparedConfinement&) = delete;
  PreparedConfinement& operator=(const PreparedConfinement&) = delete;

  /// Moves the descriptor that it holds out of the way of numbers below `above`. In the child.
  void MoveDescriptor(int above);
  /// In the child, after everything that needs more than it allows. Async-signal-safe.
  [[nodiscard]] Outcome Apply();
  /// Whether the program may start: false when something required is missing. Async-signal-safe.
  [[nodiscard]] bool Suffices(const Outcome& outcome) const;
  /// In the parent.
  [[nodiscard]] std::vector<ConfinementReport> Report(const Outcome& outcome) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kernelpro
