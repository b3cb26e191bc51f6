// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpro {

/// A metric name as it stands in a file.
struct Named {
  std::string name;
  std::string where;  ///< "rules/mem.coalesce.toml:12"
};

/// The quoted strings of C++ or TOML text that are metric names and nothing else
/// ("unit__what_how" with sub-metrics after dots), not prose that mentions one.
[[nodiscard]] std::vector<Named> NamesIn(std::string_view text, std::string_view label);

/// Of all files with this extension beneath a folder, tests and test data left out.
[[nodiscard]] std::vector<Named> NamesBeneath(const std::filesystem::path& folder,
                                              std::string_view extension);

}  // namespace kernelpro
