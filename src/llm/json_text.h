// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace kernelpro::llm {

/// JSON with the keys in the order of the text. kParse says where the text is wrong ("byte 17: ...,
/// near `...`"); text that nests deeper than 200 is refused, because what reads the tree recurses.
[[nodiscard]] Result<nlohmann::ordered_json> ParseJson(std::string_view text);

/// One line; bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] std::string JsonText(const nlohmann::ordered_json& json);

// Members of an answer by name, where there and of the kind; else nothing, never an exception.
[[nodiscard]] const nlohmann::ordered_json* Member(const nlohmann::ordered_json& json,
                                                   const char* key);
[[nodiscard]] std::string TextOf(const nlohmann::ordered_json& json, const char* key);
/// 0 for what is no count (missing, negative, a fraction); at most 2^53.
[[nodiscard]] std::uint64_t CountOf(const nlohmann::ordered_json& json, const char* key);

}  // namespace kernelpro::llm
