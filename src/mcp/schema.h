// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "mcp/server.h"

namespace kernelpro::mcp {

/// A JSON Schema that values are held against. Keywords: type, properties, required,
/// additionalProperties, items, enum, const, minimum, maximum, exclusiveMinimum, exclusiveMaximum,
/// multipleOf, minLength, maxLength, minItems, maxItems, uniqueItems, anyOf, oneOf, allOf, not, and
/// those that only describe. They mean the same in drafts 7 and 2020-12. Any other is refused
/// rather than passed over ("pattern" too: libstdc++'s regular expressions overflow the stack on
/// long texts). An "integer" is written without fraction and exponent. Immutable, thread safe.
class Schema {
 public:
  /// `text` must describe an object. kInvalidArgument when it is no such schema.
  [[nodiscard]] static Result<Schema> Parse(std::string_view text);
  Schema(Schema&& other) noexcept;
  Schema& operator=(Schema&& other) noexcept;
  ~Schema();

  /// What is wrong with `value`, which the message calls `name`; nothing when it fits.
  [[nodiscard]] std::optional<std::string> Violation(const Json& value,
                                                     std::string_view name) const;

 private:
  struct Compiled;
  explicit Schema(std::unique_ptr<Compiled> compiled);

  std::unique_ptr<Compiled> compiled_;
};

}  // namespace kernelpro::mcp
