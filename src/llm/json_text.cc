// SPDX-License-Identifier: Apache-2.0
#include "llm/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/text.h"

namespace kernelpro::llm {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kDeepest = 200;

bool TooDeep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      i += c == '\\' ? 1 : 0;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepest) {
        return true;
      }
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

std::string Near(std::string_view text, std::size_t byte) {
  const std::size_t from = byte > 20 ? std::min(byte, text.size()) - 20 : 0;
  return Printable(text.substr(std::min(from, text.size()), 40), 120);
}

}  // namespace

Result<Json> ParseJson(std::string_view text) {
  if (TooDeep(text)) {
    return Fail(ErrorCode::kParse, fmt::format("JSON that nests deeper than {}", kDeepest));
  }
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    return Fail(ErrorCode::kParse, fmt::format("no JSON from byte {} of {} on, near `{}`",
                                               error.byte, text.size(), Near(text, error.byte)));
  } catch (const Json::exception& error) {  // a number out of range
    return Fail(ErrorCode::kParse, fmt::format("no JSON: {}", Printable(error.what(), 200)));
  }
}

std::string JsonText(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

const Json* Member(const Json& json, const char* key) {
  if (!json.is_object()) {
    return nullptr;
  }
  const auto found = json.find(key);
  return found == json.end() || found->is_null() ? nullptr : &*found;
}

std::string TextOf(const Json& json, const char* key) {
  const Json* member = Member(json, key);
  return member != nullptr && member->is_string() ? member->get<std::string>() : std::string();
}

std::uint64_t CountOf(const Json& json, const char* key) {
  const Json* member = Member(json, key);
  if (member == nullptr || !member->is_number_unsigned()) {
    return 0;
  }
  return std::min(member->get<std::uint64_t>(), std::uint64_t{1} << 53U);
}

}  // namespace kernelpro::llm
