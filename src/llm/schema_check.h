// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace kernelpro::llm {

/// What is wrong with `answer` by `schema` (JSON Schema, draft 7), the first violation in words
/// ("/steps/0: missing required property 'why'"); empty when nothing is. An answer that is no JSON
/// is wrong, with the place; so is a schema that cannot be read.
[[nodiscard]] std::string SchemaViolation(std::string_view schema, std::string_view answer);

}  // namespace kernelpro::llm
