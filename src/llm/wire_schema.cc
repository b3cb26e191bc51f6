// SPDX-License-Identifier: Apache-2.0
#include "llm/wire_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "llm/json_text.h"

namespace kernelpro::llm {
namespace {

using Json = nlohmann::ordered_json;

// Keywords whose value is a table from names to schemas: a name there is no keyword.
constexpr std::array kTables = {"properties", "$defs", "definitions", "patternProperties"};

constexpr std::array kNotStrict = {
    "allOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "patternProperties",
    "propertyNames",
    "unevaluatedProperties",
    "prefixItems",
    "contains",
};

constexpr std::array kBounds = {
    "minimum",       "maximum",       "exclusiveMinimum", "exclusiveMaximum",
    "multipleOf",    "minLength",     "maxLength",        "pattern",
    "minItems",      "maxItems",      "uniqueItems",      "contains",
    "minProperties", "maxProperties", "minContains",      "maxContains",
};

bool IsTable(std::string_view key) {
  return std::ranges::find(kTables, key) != kTables.end();
}

bool IsObject(const Json& schema) {
  return schema.contains("properties") || TextOf(schema, "type") == "object";
}

bool ClosedAndRequired(const Json& schema) {
  const auto extra = schema.find("additionalProperties");
  if (extra == schema.end() || *extra != false) {
    return false;
  }
  const Json* properties = Member(schema, "properties");
  const Json* required = Member(schema, "required");
  if (properties == nullptr || !properties->is_object()) {
    return true;
  }
  return std::ranges::all_of(properties->items(), [&](const auto& property) {
    return required != nullptr && required->is_array() &&
           std::ranges::find(*required, Json(property.key())) != required->end();
  });
}

}  // namespace

Result<Json> ParseSchema(std::string_view text, std::string_view what) {
  auto schema = ParseJson(text);
  if (!schema.ok()) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("{} is {}", what, schema.error().message));
  }
  if (!schema->is_object()) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("{} is no JSON object", what));
  }
  return schema;
}

bool FitsStrictMode(const Json& schema) {
  if (schema.is_array()) {
    return std::ranges::all_of(schema, FitsStrictMode);
  }
  if (!schema.is_object()) {
    return true;
  }
  if (std::ranges::any_of(kNotStrict, [&](const char* key) { return schema.contains(key); }) ||
      (IsObject(schema) && !ClosedAndRequired(schema))) {
    return false;
  }
  for (const auto& [key, value] : schema.items()) {
    if (IsTable(key)) {
      if (!std::ranges::all_of(value, FitsStrictMode)) {
        return false;
      }
    } else if (key != "enum" && key != "const" && key != "default" && key != "examples" &&
               !FitsStrictMode(value)) {
      return false;
    }
  }
  return true;
}

Json WithoutBounds(Json schema) {
  if (schema.is_array()) {
    for (Json& item : schema) {
      item = WithoutBounds(std::move(item));
    }
    return schema;
  }
  if (!schema.is_object()) {
    return schema;
  }
  for (const char* key : kBounds) {
    schema.erase(key);
  }
  for (auto& [key, value] : schema.items()) {
    if (IsTable(key) && value.is_object()) {
      for (auto& [name, part] : value.items()) {
        part = WithoutBounds(std::move(part));
      }
    } else if (key != "enum" && key != "const" && key != "default" && key != "examples" &&
               key != "required") {
      value = WithoutBounds(std::move(value));
    }
  }
  if (IsObject(schema)) {
    schema["additionalProperties"] = false;
  }
  return schema;
}

Status CheckEffort(std::string_view effort) {
  for (const std::string_view known : {"", "minimal", "low", "medium", "high"}) {
    if (effort == known) {
      return Ok();
    }
  }
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("no effort '{}'; there are: minimal, low, medium, high", effort));
}

}  // namespace kernelpro::llm
