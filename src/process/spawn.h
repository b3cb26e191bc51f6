// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <vector>

#include "base/result.h"
#include "process/process.h"

namespace kernelpro {

/// The parent's ends of a freshly started child; -1 where there is none. Owned by the caller.
struct SpawnedChild {
  pid_t pid = -1;
  int pidfd = -1;
  int input = -1;  ///< non-blocking; -1 when spec.input is empty (the child reads /dev/null)
  int out = -1;    ///< non-blocking
  int err = -1;    ///< non-blocking
  std::vector<ConfinementReport> confinement;
};

/// fork and exec with the spec's limits, descriptors, environment and folder.
[[nodiscard]] Result<SpawnedChild> Spawn(const ProcessSpec& spec);

}  // namespace kernelpro
