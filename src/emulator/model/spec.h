// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/result.h"
#include "emulator/model/model.h"

namespace kernelpro::model {

/// Reads one spec file. kParse when it is not TOML, or when a key is missing, unknown, without a
/// source or out of range; the message names the key. Safe for any bytes.
[[nodiscard]] Result<GpuSpec> ParseSpec(std::string_view text, std::string_view label);

}  // namespace kernelpro::model
