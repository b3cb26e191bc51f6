// SPDX-License-Identifier: Apache-2.0
// Without it valijson aborts the process on a schema that it does not like.
#define VALIJSON_USE_EXCEPTIONS 1

#include "mcp/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <nlohmann/json.hpp>
#include <utility>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "base/text.h"

namespace kernelpro::mcp {
namespace {

constexpr std::size_t kMostViolations = 5;
constexpr std::size_t kLongestName = 200;

Error Refused(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

/// Every keyword that stands anywhere in `schema` is one that Violation obeys.
// NOLINTNEXTLINE(misc-no-recursion): schemas are ours
Status CheckKeywords(const nlohmann::json& schema) {
  constexpr std::array<std::string_view, 26> kPlain{
      "type",          "required",         "enum",
      "const",         "minimum",          "maximum",
      "multipleOf",    "minLength",        "maxLength",
      "minItems",      "maxItems",         "uniqueItems",
      "title",         "description",      "default",
      "examples",      "exclusiveMinimum", "exclusiveMaximum",
      "$schema",       "$comment",         "readOnly",
      "writeOnly",     "deprecated",       "$id",
      "minProperties", "maxProperties"};
  if (schema.is_boolean()) {
    return Ok();
  }
  if (!schema.is_object()) {
    return Refused("a schema is an object or a boolean");
  }
  for (const auto& [keyword, value] : schema.items()) {
    if (keyword == "properties" && value.is_object()) {
      for (const auto& [name, property] : value.items()) {
        KP_RETURN_IF_ERROR(CheckKeywords(property));
      }
    } else if ((keyword == "anyOf" || keyword == "oneOf" || keyword == "allOf") &&
               value.is_array()) {
      for (const nlohmann::json& one : value) {
        KP_RETURN_IF_ERROR(CheckKeywords(one));
      }
    } else if (keyword == "items" || keyword == "additionalProperties" || keyword == "not") {
      KP_RETURN_IF_ERROR(CheckKeywords(value));
    } else if (std::ranges::find(kPlain, keyword) == kPlain.end()) {
      return Refused(fmt::format("the schema's keyword \"{}\" is not obeyed here", keyword));
    }
  }
  return Ok();
}

/// valijson's path, e.g. <root> [tiles] [0], as tiles[0].
std::string PathText(const std::vector<std::string>& context, std::string_view name) {
  std::string path(name);
  for (std::size_t i = 1; i < context.size(); ++i) {
    std::string_view step = context[i];
    if (step.size() >= 2 && step.front() == '[' && step.back() == ']') {
      step = step.substr(1, step.size() - 2);
    }
    const bool index =
        !step.empty() && step.find_first_not_of("0123456789") == std::string_view::npos;
    path += index ? fmt::format("[{}]", step) : fmt::format(".{}", step);
  }
  return Printable(path, kLongestName);
}

}  // namespace

struct Schema::Compiled {
  nlohmann::json json;  // outlives `schema`, which may refer to it
  valijson::Schema schema;
};

Schema::Schema(std::unique_ptr<Compiled> compiled) : compiled_(std::move(compiled)) {}

Schema::Schema(Schema&& other) noexcept = default;
Schema& Schema::operator=(Schema&& other) noexcept = default;
Schema::~Schema() = default;

Result<Schema> Schema::Parse(std::string_view text) {
  auto compiled = std::make_unique<Compiled>();
  compiled->json = nlohmann::json::parse(text, nullptr, false);
  if (!compiled->json.is_object() || compiled->json.value("type", nlohmann::json()) != "object") {
    return Refused("a tool's schema is a JSON object with \"type\": \"object\"");
  }
  KP_RETURN_IF_ERROR(CheckKeywords(compiled->json));
  try {
    valijson::SchemaParser(valijson::SchemaParser::kDraft7)
        .populateSchema(valijson::adapters::NlohmannJsonAdapter(compiled->json), compiled->schema);
  } catch (const std::exception& e) {
    return Refused(fmt::format("no JSON Schema: {}", e.what()));
  }
  return Schema(std::move(compiled));
}

std::optional<std::string> Schema::Violation(const Json& value, std::string_view name) const {
  try {
    const nlohmann::json plain = value;
    valijson::ValidationResults results;
    valijson::Validator validator(valijson::Validator::kStrongTypes);
    if (validator.validate(compiled_->schema, valijson::adapters::NlohmannJsonAdapter(plain),
                           &results)) {
      return std::nullopt;
    }
    // The innermost violation comes first and says most; those around it repeat it.
    std::string text;
    valijson::ValidationResults::Error error;
    for (std::size_t i = 0; i < kMostViolations && results.popError(error); ++i) {
      text += fmt::format("{}{}: {}", text.empty() ? "" : "\n", PathText(error.context, name),
                          Printable(error.description, kLongestName));
    }
    return text.empty() ? std::string(name) + " does not fit the schema" : text;
  } catch (const std::exception& e) {
    return fmt::format("{} cannot be checked: {}", name, e.what());
  }
}

}  // namespace kernelpro::mcp
