// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "propose/llm/agent.h"

namespace kernelpro::agents {

struct WrittenKernel {
  std::string source;
  std::string model;  ///< that wrote it, in the server's words
};

/// Asks for a whole file and takes it out of the answer. An answer that holds none is asked for a
/// second time, with the problem added and nothing else changed; then it is given up.
/// `Attempt::why` also tells of a first answer that was no good: then both value and why are set.
[[nodiscard]] Result<Attempt<WrittenKernel>> WriteKernel(const Setting& setting, const Turn& turn,
                                                         const llm::ChatRequest& request);

}  // namespace kernelpro::agents
