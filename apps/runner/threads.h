// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace kernelpro::runner {

/// Threads that run and were started by somebody else than the NVIDIA driver and runtime, which
/// keep threads of their own: what the candidate left behind after a call.
[[nodiscard]] std::uint32_t CandidateThreads();

}  // namespace kernelpro::runner
