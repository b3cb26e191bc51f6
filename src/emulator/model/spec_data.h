// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

namespace kernelpro::model {

/// One file of specs/, embedded when the program was built.
struct SpecText {
  std::string_view name;  ///< file name without ".toml"
  std::string_view text;
};

[[nodiscard]] std::vector<SpecText> EmbeddedSpecs();

}  // namespace kernelpro::model
