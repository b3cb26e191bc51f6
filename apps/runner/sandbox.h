// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "device/protocol/bytes.h"

namespace kernelpro::runner {

/// The name under which the dynamic linker finds the candidate's library in the emulator profile:
/// the file itself is the descriptor that the referee opened.
inline constexpr const char* kCandidatePath = "/kernelpro/candidate.so";
/// The same in the driver profile, where opening goes through the kernel.
inline constexpr const char* kCandidateDescriptorPath = "/proc/self/fd/5";

enum class SandboxProfile : std::uint8_t {
  /// The CUDA runtime is our stand-in: compute, allocate, use open descriptors; nothing else.
  kEmulator,
  /// The NVIDIA driver is in this process, initialised before: it must be able to load modules,
  /// launch, allocate, and run its threads. It opens files, so Landlock says which.
  kDriver,
};

/// What keeps the candidate in. Fixed size, no allocation.
struct SandboxReport {
  struct Measure {
    const char* name = "";  ///< "landlock", "seccomp", "rlimits"
    bool on = false;
    std::array<char, 160> detail{};  ///< a sentence, zero terminated
  };

  std::array<Measure, 6> measures{};
  std::size_t count = 0;

  void Add(const char* name, bool on, const char* text);
  /// As protocol/sandbox_report.h reads it.
  void WriteTo(protocol::ByteWriter& out) const;
};

/// Landlock for this thread and all that it starts: nothing of the machine can be written, and only
/// what the profile needs can be read. For kDriver call it first in main, before the driver is
/// initialised, because threads that run already stay free. EnterSandbox does it otherwise, and
/// says so. Not fatal when the kernel has no Landlock: reported.
void RestrictFiles(SandboxProfile profile, SandboxReport& report);

/// From here on this process and its threads are confined to what the profile allows. A denied
/// system call that no library makes by itself is told to the referee (kForbidden on kRefereeFd)
/// and ends the process with kForbiddenExit; a thread that blocks SIGSYS dies of it. False with
/// errno when the kernel refuses the filter or the limits. `extra_allowed` are system calls that
/// are let through on top, for finding out what a new driver needs.
[[nodiscard]] bool EnterSandbox(SandboxProfile profile, SandboxReport& report,
                                std::span<const int> extra_allowed = {});

}  // namespace kernelpro::runner
