// SPDX-License-Identifier: Apache-2.0
#include "llm/endpoint.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

#include "base/text.h"
#include "llm/client.h"

namespace kernelpro::llm {
namespace {

bool HasScheme(std::string_view url, std::string_view scheme) {
  return url.size() >= scheme.size() &&
         std::ranges::equal(url.substr(0, scheme.size()), scheme,
                            [](unsigned char a, char b) { return std::tolower(a) == b; });
}

/// What is between "http(s)://" and the path; empty for other schemes.
std::string_view Authority(std::string_view url) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (HasScheme(url, scheme)) {
      url.remove_prefix(scheme.size());
      return url.substr(0, url.find_first_of("/?#"));
    }
  }
  return {};
}

bool IsHostCharacter(unsigned char c) {
  return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_' || c == ':';
}

bool DropSuffix(std::string& text, std::string_view suffix) {
  const bool there = text.ends_with(suffix);
  text.resize(text.size() - (there ? suffix.size() : 0));
  return there;
}

Error NoSuchForm(std::string_view model) {
  return Fail(
      ErrorCode::kInvalidArgument,
      fmt::format("'{}' names no model: write openai:MODEL (OpenAI and every server with "
                  "its protocol: vLLM, llama.cpp, Ollama, gateways; give their base URL) or "
                  "anthropic:MODEL, for example openai:gpt-5.1 or "
                  "anthropic:claude-sonnet-4-6",
                  Printable(model, 100)));
}

}  // namespace

std::string HostOf(std::string_view url) {
  std::string_view authority = Authority(url);
  std::string_view host = authority;
  std::string_view port;
  if (authority.starts_with('[')) {
    const std::size_t end = authority.find(']');
    if (end == std::string_view::npos) {
      return {};
    }
    host = authority.substr(1, end - 1);
    port = authority.substr(end + 1);
  } else {
    host = authority.substr(0, authority.find(':'));
    port = authority.substr(host.size());
  }
  const bool port_ok =
      port.empty() || (port.front() == ':' && std::ranges::all_of(port.substr(1), [](char c) {
                         return c >= '0' && c <= '9';
                       }));
  if (!port_ok || !std::ranges::all_of(host, IsHostCharacter)) {
    return {};
  }
  std::string lower(host);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

bool IsLoopback(std::string_view url) {
  const std::string host = HostOf(url);
  if (host == "localhost" || host == "localhost.") {
    return true;
  }
  in_addr v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) {
    return (ntohl(v4.s_addr) >> 24U) == 127;
  }
  in6_addr v6{};
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

Status CheckBaseUrl(std::string_view url) {
  const bool printable =
      std::ranges::all_of(url, [](unsigned char c) { return c > ' ' && c < 127 && c != '\\'; });
  if (!printable || HostOf(url).empty() || url.find_first_of("?#@") != std::string_view::npos) {
    // A user name may come with a password: such a URL is not repeated.
    const bool secret = url.find('@') != std::string_view::npos;
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("the base URL{} is not of the form http(s)://HOST[:PORT][/PATH], "
                            "without user name and query",
                            secret ? "" : fmt::format(" '{}'", Printable(url, 200))));
  }
  return Ok();
}

Result<Endpoint> ParseEndpoint(std::string_view model, std::string_view base_url) {
  const std::size_t colon = model.find(':');
  if (colon == std::string_view::npos || colon + 1 == model.size()) {
    return NoSuchForm(model);
  }
  Endpoint endpoint;
  const std::string_view provider = model.substr(0, colon);
  endpoint.model = model.substr(colon + 1);
  if (provider == "openai") {
    endpoint.wire = Wire::kOpenAi;
  } else if (provider == "anthropic") {
    endpoint.wire = Wire::kAnthropic;
  } else {
    return NoSuchForm(model);
  }
  if (!std::ranges::all_of(endpoint.model, [](unsigned char c) { return c > ' ' && c != 127; })) {
    return NoSuchForm(model);
  }
  const bool openai = endpoint.wire == Wire::kOpenAi;
  endpoint.base_url = base_url;
  if (base_url.empty()) {
    endpoint.base_url = openai ? "https://api.openai.com/v1" : "https://api.anthropic.com";
  }
  KP_RETURN_IF_ERROR(CheckBaseUrl(endpoint.base_url));
  // What people copy from other tools' settings.
  while (DropSuffix(endpoint.base_url, "/") ||
         DropSuffix(endpoint.base_url, openai ? "/chat/completions" : "/v1/messages") ||
         (!openai && DropSuffix(endpoint.base_url, "/v1"))) {
  }
  return endpoint;
}

}  // namespace kernelpro::llm
