// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "base/result.h"
#include "llm/chat.h"

namespace kernelpro::llm {

/// kInvalidArgument names `what` ("the schema of tool read_file").
[[nodiscard]] Result<nlohmann::ordered_json> ParseSchema(std::string_view text,
                                                         std::string_view what);

/// Whether OpenAI's strict mode takes a schema: every object closed (additionalProperties false)
/// with all its properties required, none of the keywords that it refuses.
[[nodiscard]] bool FitsStrictMode(const nlohmann::ordered_json& schema);

/// The schema for Anthropic's JSON output: objects closed, and without the bounds of numbers,
/// texts and lists that it refuses. The answer is checked against the whole schema here anyway.
[[nodiscard]] nlohmann::ordered_json WithoutBounds(nlohmann::ordered_json schema);

/// kInvalidArgument unless it is "", "minimal", "low", "medium" or "high".
[[nodiscard]] Status CheckEffort(std::string_view effort);

}  // namespace kernelpro::llm
