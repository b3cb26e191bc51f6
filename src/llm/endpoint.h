// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace kernelpro::llm {

/// Host of a URL in lower case, without port and brackets; empty when it has none, or a user name
/// (in which a host could hide), or characters that no host has.
[[nodiscard]] std::string HostOf(std::string_view url);

/// kInvalidArgument unless it is http(s)://HOST[:PORT][/PATH] and nothing else: no user name, no
/// query, no blanks or control characters.
[[nodiscard]] Status CheckBaseUrl(std::string_view url);

}  // namespace kernelpro::llm
