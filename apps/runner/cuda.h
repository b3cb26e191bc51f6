// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kernelpro::runner {

/// The runner of a real GPU: starts the driver, says so, and serves the referee. `runtime` is the
/// path of NVIDIA's libcudart, which the candidate's library asks for. Returns the exit status.
[[nodiscard]] int ServeCuda(const char* runtime);

}  // namespace kernelpro::runner
