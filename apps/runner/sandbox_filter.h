// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "process/seccomp_filter.h"
#include "runner/sandbox.h"

namespace kernelpro::runner {

/// What a filter is built from.
struct FilterRequest {
  SandboxProfile profile = SandboxProfile::kEmulator;
  /// Landlock says what may be written. Without it opening for writing is trapped in the driver
  /// profile too, unless the call carries `cookie` as its fifth argument, as the handler's do.
  bool landlock = false;
  std::uint64_t cookie = 0;
  std::span<const int> extra_allowed;
};

/// The profile's system call filter. What it does not name is SECCOMP_RET_TRAP, also opening files
/// in the emulator profile: sandbox.cc's handler answers.
void BuildFilter(const FilterRequest& request, seccomp::Filter& filter);

}  // namespace kernelpro::runner
