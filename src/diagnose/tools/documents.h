// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "kernelpro/tool.h"

namespace kernelpro::diagnose {

/// What the built-in tools that are code look for, in words; empty for any other id. The rules say
/// it in their own files.
[[nodiscard]] ToolDocument DocumentOf(std::string_view id);

}  // namespace kernelpro::diagnose
