// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kernelpro::agents {

/// A fenced block of Markdown.
struct FencedBlock {
  std::string language;  ///< what stands behind the fence, lower case, first word
  std::string text;      ///< lines with their ends; the fence's own indent removed
  bool closed = false;   ///< whole: it has an end, and no other block inside
};

struct FencedText {
  std::vector<FencedBlock> blocks;  ///< by their ends
  std::string outside;              ///< everything that is in none of them
};

/// `text` has "\n" line ends. A fence with a language inside a block opens a block in it.
[[nodiscard]] FencedText ReadFences(std::string_view text);

}  // namespace kernelpro::agents
