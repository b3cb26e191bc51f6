// SPDX-License-Identifier: Apache-2.0
#include "mcp/catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/text.h"

namespace kernelpro::mcp {
namespace {

constexpr std::array<std::string_view, 4> kHandshakes{"2024-11-05", "2025-03-26", "2025-06-18",
                                                      kNewestHandshake};
// What the revisions brought.
constexpr std::string_view kAnnotations = "2025-03-26";
constexpr std::string_view kTitles = "2025-06-18";
constexpr std::string_view kStructured = "2025-06-18";

constexpr std::size_t kLongestUri = 200;

void AddText(Json& json, const char* key, const std::string& text) {
  if (!text.empty()) {
    json[key] = text;
  }
}

/// One page of `all` under `key`. A cursor is the place of the page's first entry.
template <class T, class ToJson>
Answer Page(const Json& params, const char* key, const std::vector<T>& all, ToJson to_json) {
  std::size_t first = 0;
  if (const auto cursor = params.find("cursor"); cursor != params.end() && !cursor->is_null()) {
    long long place = -1;
    if (!cursor->is_string() || !ParseInteger(cursor->get_ref<const std::string&>(), &place) ||
        place <= 0 || place % static_cast<long long>(Catalog::kPageLength) != 0) {
      return RpcError{RpcCode::kInvalidParams, "\"cursor\" is none that this server gave", ""};
    }
    first = static_cast<std::size_t>(place);
  }
  Json entries = Json::array();
  const std::size_t end = std::min(all.size(), first + Catalog::kPageLength);
  for (std::size_t i = first; i < end; ++i) {
    entries.push_back(to_json(all[i]));
  }
  Json result{{key, std::move(entries)}};
  if (end < all.size() && end > first) {
    result["nextCursor"] = std::to_string(end);
  }
  return result;
}

/// Whether a URI is an instance of a template whose expressions are all {name}: each stands for a
/// text that is not empty.
bool Matches(std::string_view uri_template, std::string_view uri) {
  const std::size_t open = uri_template.find('{');
  const std::size_t close = uri_template.find('}', open == std::string_view::npos ? 0 : open);
  if (open == std::string_view::npos || close == std::string_view::npos) {
    return uri == uri_template;
  }
  if (!uri.starts_with(uri_template.substr(0, open))) {
    return false;
  }
  uri.remove_prefix(open);
  const std::string_view rest = uri_template.substr(close + 1);
  const std::string_view literal = rest.substr(0, rest.find('{'));
  if (literal.size() == rest.size()) {
    return uri.size() > literal.size() && uri.ends_with(literal);
  }
  const std::size_t next = uri.find(literal, 1);
  return next != std::string_view::npos && Matches(rest, uri.substr(next));
}

}  // namespace

bool IsHandshakeRevision(std::string_view revision) {
  return std::ranges::find(kHandshakes, revision) != kHandshakes.end();
}

bool Catalog::HasResources() const {
  return static_cast<bool>(offer_.read);
}

Json Catalog::ServerInfo() const {
  Json info{{"name", offer_.info.name}, {"version", offer_.info.version}};
  if (revision_ >= kTitles) {
    AddText(info, "title", offer_.info.title);
  }
  return info;
}

Json Catalog::Capabilities() const {
  Json capabilities = Json::object();
  if (!offer_.tools.empty()) {
    capabilities["tools"] = Json::object();
  }
  if (HasResources()) {
    capabilities["resources"] = Json::object();
  }
  return capabilities;
}

Json Catalog::Complete(Json result, bool cacheable) const {
  if (stateless()) {
    result["resultType"] = "complete";
    result["_meta"]["io.modelcontextprotocol/serverInfo"] = ServerInfo();
    if (cacheable) {  // a run may write a new resource at any time
      result["ttlMs"] = 0;
      result["cacheScope"] = "private";
    }
  }
  return result;
}

Json Catalog::Initialize() const {
  Json result{{"protocolVersion", revision_},
              {"capabilities", Capabilities()},
              {"serverInfo", ServerInfo()}};
  AddText(result, "instructions", offer_.info.instructions);
  return result;
}

Json Catalog::Discover() const {
  // Also the older ones: a client that knows no stateless revision learns that `initialize` works.
  Json versions = Json::array({kStateless});
  std::for_each(kHandshakes.rbegin(), kHandshakes.rend(),
                [&](std::string_view revision) { versions.push_back(revision); });
  Json result{{"supportedVersions", std::move(versions)}, {"capabilities", Capabilities()}};
  AddText(result, "instructions", offer_.info.instructions);
  return Complete(std::move(result), true);
}

Json Catalog::ToolJson(const Tool& tool) const {
  Json json{{"name", tool.name}};
  if (revision_ >= kTitles) {
    AddText(json, "title", tool.title);
  }
  AddText(json, "description", tool.description);
  json["inputSchema"] = Json::parse(tool.input_schema);
  if (!tool.output_schema.empty() && revision_ >= kStructured) {
    json["outputSchema"] = Json::parse(tool.output_schema);
  }
  if (revision_ >= kAnnotations) {
    json["annotations"] = {{"readOnlyHint", tool.read_only}};
  }
  return json;
}

Answer Catalog::Tools(const Json& params) const {
  Answer page = Page(params, "tools", offer_.tools, [&](const Tool& t) { return ToolJson(t); });
  if (Json* result = std::get_if<Json>(&page)) {
    return Complete(std::move(*result), true);
  }
  return page;
}

Answer Catalog::Resources(const Json& params) const {
  std::vector<Resource> resources;
  if (offer_.list) {
    Result<std::vector<Resource>> listed = offer_.list();
    if (!listed) {
      return RpcError{RpcCode::kInternal, "list the resources: " + listed.error().message, ""};
    }
    resources = std::move(*listed);
  }
  Answer page = Page(params, "resources", resources, [&](const Resource& resource) {
    Json json{{"uri", resource.uri}, {"name", resource.name}};
    if (revision_ >= kTitles) {
      AddText(json, "title", resource.title);
    }
    AddText(json, "description", resource.description);
    AddText(json, "mimeType", resource.mime_type);
    return json;
  });
  if (Json* result = std::get_if<Json>(&page)) {
    return Complete(std::move(*result), true);
  }
  return page;
}

Answer Catalog::Templates(const Json& params) const {
  Answer page = Page(params, "resourceTemplates", offer_.templates, [&](const ResourceTemplate& t) {
    Json json{{"uriTemplate", t.uri_template}, {"name", t.name}};
    if (revision_ >= kTitles) {
      AddText(json, "title", t.title);
    }
    AddText(json, "description", t.description);
    AddText(json, "mimeType", t.mime_type);
    return json;
  });
  if (Json* result = std::get_if<Json>(&page)) {
    return Complete(std::move(*result), true);
  }
  return page;
}

std::string Catalog::MimeType(const std::string& uri) const {
  if (offer_.list) {
    if (const auto resources = offer_.list(); resources.ok()) {
      const auto found = std::ranges::find(*resources, uri, &Resource::uri);
      if (found != resources->end()) {
        return found->mime_type;
      }
    }
  }
  const auto found = std::ranges::find_if(
      offer_.templates, [&](const ResourceTemplate& t) { return Matches(t.uri_template, uri); });
  return found != offer_.templates.end() ? found->mime_type : "";
}

Answer Catalog::Read(const Json& params) const {
  const auto uri = params.find("uri");
  if (uri == params.end() || !uri->is_string()) {
    return RpcError{RpcCode::kInvalidParams, "\"uri\" must be a string", ""};
  }
  const auto& text = uri->get_ref<const std::string&>();
  Result<std::string> read = offer_.read(text);
  if (!read) {
    const std::string data = Line(Json{{"uri", text}});
    if (read.error().code == ErrorCode::kNotFound) {
      return RpcError{stateless() ? RpcCode::kInvalidParams : RpcCode::kResourceNotFound,
                      "there is no resource " + Printable(text, kLongestUri), data};
    }
    return RpcError{RpcCode::kInternal, "read the resource: " + read.error().message, data};
  }
  Json content{{"uri", text}};
  AddText(content, "mimeType", MimeType(text));
  content["text"] = std::move(*read);
  return Complete(Json{{"contents", Json::array({std::move(content)})}}, true);
}

Answer Catalog::CallResult(const Result<ToolResult>& outcome) const {
  const auto block = [](const std::string& text) { return Json{{"type", "text"}, {"text", text}}; };
  if (!outcome) {
    return Complete(
        Json{{"content", Json::array({block(outcome.error().message)})}, {"isError", true}}, false);
  }
  Json content = Json::array();
  // A client that cannot take structured content gets it as a text.
  const bool as_text =
      !outcome->structured.empty() && (outcome->text.empty() || revision_ < kStructured);
  if (!outcome->text.empty() || !as_text) {
    content.push_back(block(outcome->text));
  }
  if (as_text) {
    content.push_back(block(outcome->structured));
  }
  Json result{{"content", std::move(content)}};
  if (!outcome->structured.empty() && revision_ >= kStructured) {
    result["structuredContent"] = Json::parse(outcome->structured);
  }
  result["isError"] = outcome->failed;
  return Complete(std::move(result), false);
}

}  // namespace kernelpro::mcp
