// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "process/seccomp_filter.h"
#include "runner/sandbox.h"

namespace kernelpro::runner {

/// The profile's system call filter. What it does not name is SECCOMP_RET_TRAP, also opening files
/// in the emulator profile: sandbox.cc's handler answers.
void BuildFilter(SandboxProfile profile, std::span<const int> extra_allowed,
                 seccomp::Filter& filter);

}  // namespace kernelpro::runner
