// SPDX-License-Identifier: Apache-2.0
#include "wire.h"

#include <nlohmann/json.hpp>

namespace kernelpro::fake {

using Json = nlohmann::ordered_json;

std::string HttpRequest::Header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string() : found->second;
}

std::vector<std::string> Tokenize(std::string_view text) {
  std::vector<std::string> tokens;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = std::min(at + 4, text.size());
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) {
      ++end;
    }
    tokens.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return tokens;
}

std::string ContentText(const Json& content) {
  if (content.is_string()) {
    return content.get<std::string>();
  }
  std::string text;
  if (!content.is_array()) {
    return text;
  }
  for (const Json& part : content) {
    if (!part.is_object()) {
      continue;
    }
    if (part.contains("text") && part["text"].is_string()) {
      text += part["text"].get<std::string>();
    } else if (part.value("type", "") == "tool_result" && part.contains("content")) {
      text += ContentText(part["content"]);
    }
  }
  return text;
}

Json ErrorObject(Wire wire, const Refusal& refusal, const std::string& request_id) {
  if (wire == Wire::kAnthropic) {
    return {{"type", "error"},
            {"error", {{"type", refusal.type}, {"message", refusal.message}}},
            {"request_id", request_id}};
  }
  const Json error = {{"message", refusal.message},
                      {"type", refusal.type},
                      {"param", nullptr},
                      {"code", refusal.code.empty() ? Json(nullptr) : Json(refusal.code)}};
  return Json::object({{"error", error}});
}

Reply ErrorReply(Wire wire, const Refusal& refusal, const std::string& request_id) {
  Reply reply;
  reply.status = refusal.status;
  reply.headers = {(wire == Wire::kAnthropic ? "request-id: " : "x-request-id: ") + request_id};
  // What a client repeats of a request may be no UTF-8.
  reply.pieces = {
      ErrorObject(wire, refusal, request_id).dump(2, ' ', false, Json::error_handler_t::replace)};
  return reply;
}

Reply ModelsReply(Wire wire, const std::vector<std::string>& models) {
  Json list = Json::array();
  for (const std::string& model : models) {
    if (wire == Wire::kAnthropic) {
      list.push_back({{"type", "model"},
                      {"id", model},
                      {"display_name", model},
                      {"created_at", "2026-01-01T00:00:00Z"}});
    } else {
      list.push_back(
          {{"id", model}, {"object", "model"}, {"created", 1767225600}, {"owned_by", "test"}});
    }
  }
  Json all;
  if (wire == Wire::kAnthropic) {
    all = {{"data", list}, {"has_more", false}};
    all["first_id"] = models.empty() ? Json(nullptr) : Json(models.front());
    all["last_id"] = models.empty() ? Json(nullptr) : Json(models.back());
  } else {
    all = {{"object", "list"}, {"data", list}};
  }
  Reply reply;
  reply.pieces = {all.dump()};
  return reply;
}

}  // namespace kernelpro::fake
