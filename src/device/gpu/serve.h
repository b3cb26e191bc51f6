// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "device/gpu/emulated_gpu.h"

namespace kernelpro::gpu {

/// Serves one referee (trusted) and one runner (not) over their sockets until the referee is gone.
/// The runner is listened to only while a call is open. Neither side can block the other: input and
/// output are buffered, and a runner that does not read its answers is not read from. Takes the
/// descriptors over.
[[nodiscard]] Status Serve(EmulatedGpu& gpu, int referee_fd, int runner_fd);

}  // namespace kernelpro::gpu
