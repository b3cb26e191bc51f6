// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace kernelpro::llm {

/// prices.toml as it stands in this folder.
[[nodiscard]] std::string_view EmbeddedPrices();

}  // namespace kernelpro::llm
