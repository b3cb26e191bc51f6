// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Linux's Landlock by its raw system calls, so that neither its library nor new kernel headers are
/// needed. Standard library only; the runner, which links nothing of ours, uses it too. Nothing
/// here allocates memory: all of it may run between fork and exec.
namespace kernelpro::landlock {

/// ABI version of the running kernel; 0 when it has no Landlock or it is switched off at boot.
/// 1: files. 2: rename between folders. 3: truncate. 4: TCP. 5: ioctl of devices. 6: signals and
/// abstract sockets to the outside.
[[nodiscard]] int Version();

/// What may be done beneath a path.
enum class Access : std::uint8_t {
  kRead,       ///< files and folders are read
  kRun,        ///< also programs started
  kReadWrite,  ///< everything but running programs and making device files
  kDevice,     ///< a device file is read, written and given ioctls
};

/// A set of rules that is being made, then forced on the calling thread and what it starts from
/// then on (other threads that run already keep their freedom). What no rule allows is refused
/// with EACCES; descriptors that are open already keep working. Holds one descriptor.
class Ruleset {
 public:
  Ruleset() = default;
  ~Ruleset();
  Ruleset(const Ruleset&) = delete;
  Ruleset& operator=(const Ruleset&) = delete;

  /// With `network` false, TCP connect and bind are refused where `version` has it (4). False with
  /// errno when the kernel refuses.
  [[nodiscard]] bool Open(int version, bool network);
  /// A path that does not exist is no error: there is nothing to allow. False with errno otherwise.
  [[nodiscard]] bool Allow(const char* path, Access access);
  /// The same for the file or folder behind an open descriptor.
  [[nodiscard]] bool AllowDescriptor(int fd, Access access);
  /// Needs PR_SET_NO_NEW_PRIVS before. False with errno.
  [[nodiscard]] bool Enforce() const;

  /// Gives its descriptor a number of at least `least`. The old one is left to exec.
  void MoveAbove(int least);

 private:
  int fd_ = -1;
  std::uint64_t handled_ = 0;
};

}  // namespace kernelpro::landlock
