// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "process/seccomp_filter.h"

namespace kernelpro {

/// The system calls that no confined child makes: those that reach into other processes, change
/// what the kernel shows, or leave the process group that its owner kills. They fail with EPERM.
/// Without `network` no sockets can be made but connected pairs.
void BuildConfinementFilter(bool network, seccomp::Filter& filter);

}  // namespace kernelpro
