// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "llm/client.h"
#include "llm/retry.h"
#include "llm/transport.h"

namespace kernelpro::llm {

/// OpenClient over a transport and a sleeper of the caller's: the seam for tests and benchmarks.
[[nodiscard]] Result<std::unique_ptr<ChatClient>> OpenClientOver(
    ClientOptions options, Budget& budget, const Clock& clock, std::unique_ptr<Transport> transport,
    std::unique_ptr<Sleeper> sleeper);

}  // namespace kernelpro::llm
