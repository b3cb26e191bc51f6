// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

namespace kernelpro::agents {

struct EmbeddedPrompt {
  std::string_view file;  ///< "coder.md"
  std::string_view text;
};

/// The files of prompts/ (but its README) as they were when the program was built.
[[nodiscard]] const std::vector<EmbeddedPrompt>& EmbeddedPrompts();

}  // namespace kernelpro::agents
