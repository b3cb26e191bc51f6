// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace kernelpro {

/// "(512, 1, 1)" into `dim`; false, and unchanged, when it is anything else.
bool ParseDimension(std::string_view text, std::uint32_t (&dim)[3]);

}  // namespace kernelpro
