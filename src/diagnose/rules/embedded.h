// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

namespace kernelpro::diagnose {

struct EmbeddedRule {
  std::string_view path;  ///< "rules/lat.throttle.toml"
  std::string_view toml;
};

/// The files of rules/ as they were when the program was built.
[[nodiscard]] const std::vector<EmbeddedRule>& EmbeddedRules();

}  // namespace kernelpro::diagnose
