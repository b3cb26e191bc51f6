// SPDX-License-Identifier: Apache-2.0
#include "llm/schema_check.h"

// Without it the library ends the program over a schema that it cannot read.
#define VALIJSON_USE_EXCEPTIONS 1

#include <fmt/format.h>

#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "base/text.h"
#include "llm/json_text.h"

namespace kernelpro::llm {
namespace {

using valijson::adapters::NlohmannJsonAdapter;

std::string Where(const std::vector<std::string>& context) {
  std::string path;
  for (const std::string& part : context) {  // "<root>", "[name]", "[0]"
    if (part != "<root>") {
      path +=
          "/" + (part.size() > 2 && part.front() == '[' ? part.substr(1, part.size() - 2) : part);
    }
  }
  return path.empty() ? "/" : path;
}

std::string Check(const nlohmann::json& schema_json, const nlohmann::json& answer) {
  valijson::Schema schema;
  valijson::SchemaParser().populateSchema(NlohmannJsonAdapter(schema_json), schema);
  valijson::Validator validator;
  valijson::ValidationResults results;
  if (validator.validate(schema, NlohmannJsonAdapter(answer), &results)) {
    return {};
  }
  // The last one is the outermost ("failed to validate against a child schema"): the first is why.
  valijson::ValidationResults::Error error;
  if (!results.popError(error)) {
    return "does not meet the schema";
  }
  return Printable(fmt::format("{}: {}", Where(error.context), error.description), 400);
}

}  // namespace

std::string SchemaViolation(std::string_view schema, std::string_view answer) {
  const auto schema_json = ParseJson(schema);
  if (!schema_json.ok()) {
    return "the schema itself is " + schema_json.error().message;
  }
  const auto json = ParseJson(answer);
  if (!json.ok()) {
    return json.error().message;
  }
  try {
    return Check(nlohmann::json(*schema_json), nlohmann::json(*json));
  } catch (const std::exception& error) {
    return fmt::format("the schema cannot be checked: {}", Printable(error.what(), 200));
  }
}

}  // namespace kernelpro::llm
