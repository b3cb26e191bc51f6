// SPDX-License-Identifier: Apache-2.0
#include "llm/fault.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"
#include "llm/endpoint.h"
#include "llm/retry.h"

namespace kernelpro::llm {
namespace {

constexpr std::size_t kLongestQuote = 500;

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

bool Holds(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string OneLine(std::string_view text) {
  std::string line = Printable(Trim(text), kLongestQuote);
  std::ranges::replace(line, '\n', ' ');
  return line;
}

std::string KeyVariable(const Endpoint& endpoint) {
  return endpoint.wire == Wire::kOpenAi ? "OPENAI_API_KEY" : "ANTHROPIC_API_KEY";
}

std::optional<std::string> HtmlTitle(std::string_view body) {
  const std::string lower = Lower(body.substr(0, 64U << 10U));
  const std::string_view start = Trim(lower);
  if (!start.starts_with('<')) {
    return std::nullopt;
  }
  const std::size_t tag = lower.find("<title");
  const std::size_t from = tag == std::string::npos ? tag : lower.find('>', tag);
  if (from == std::string::npos) {
    return "";
  }
  const std::size_t to = std::min(lower.find("</title", from), lower.size());
  return OneLine(body.substr(from + 1, to - from - 1));
}

std::string HtmlPage(std::string_view title) {
  return title.empty() ? "an HTML page came back"
                       : fmt::format("an HTML page came back (\"{}\")", title);
}

/// What an error of a server means, from its status (0 inside an answer) and its words.
enum class Meaning { kQuota, kKey, kModel, kPassing, kRequest };

Meaning MeaningOf(int status, const ServerError& error) {
  const std::string kind = Lower(error.type + " " + error.code);
  const std::string message = Lower(error.message);
  if (status == 402 || Holds(kind, "insufficient_quota") || Holds(kind, "billing") ||
      Holds(message, "exceeded your current quota") || Holds(message, "credit balance")) {
    return Meaning::kQuota;
  }
  if (status == 401 || status == 403 || Holds(kind, "authentication_error") ||
      Holds(kind, "permission_error") || Holds(kind, "invalid_api_key")) {
    return Meaning::kKey;
  }
  if (Holds(kind, "model_not_found") ||
      ((status == 404 || Holds(kind, "not_found")) && Holds(message, "model"))) {
    return Meaning::kModel;
  }
  if (status != 0) {
    return IsPassing(status) ? Meaning::kPassing : Meaning::kRequest;
  }
  // Inside an answer there is no status: what does not blame the request is the server's trouble.
  const bool blames = Holds(kind, "invalid") || Holds(kind, "badrequest") ||
                      Holds(kind, "bad_request") || Holds(kind, "notfound") ||
                      Holds(kind, "too_large") || Holds(kind, "context_length");
  return blames ? Meaning::kRequest : Meaning::kPassing;
}

Fault Told(const Endpoint& endpoint, bool with_key, int status, const ServerError& error) {
  const std::string status_text = status == 0 ? "in its answer" : fmt::format("status {}", status);
  const std::string words = error.message.empty() ? "no reason given" : OneLine(error.message);
  const std::string where = Where(endpoint);
  switch (MeaningOf(status, error)) {
    case Meaning::kQuota:
      return {
          Fail(ErrorCode::kUnavailable,
               fmt::format("{}: the account has no quota or credit left ({}: {}); add credit or "
                           "use another key, trying again does not help",
                           where, status_text, words))};
    case Meaning::kKey:
      return {Fail(
          ErrorCode::kInvalidArgument,
          with_key ? fmt::format("{}: the key was not accepted ({}: {}); check {} or the key file, "
                                 "and that this key may use this model",
                                 where, status_text, words, KeyVariable(endpoint))
                   : fmt::format("{}: the server wants a key and none was given ({}: {}); set {} "
                                 "or give a key file",
                                 where, status_text, words, KeyVariable(endpoint)))};
    case Meaning::kModel:
      return {
          Fail(ErrorCode::kInvalidArgument,
               fmt::format("{}: the server does not know the model '{}' ({}: {}); check its name, "
                           "no other model is tried",
                           where, endpoint.model, status_text, words))};
    case Meaning::kPassing:
      return {
          Fail(ErrorCode::kUnavailable,
               status == 429
                   ? fmt::format("{}: the rate limit is reached ({}: {}); ask with fewer requests "
                                 "at once or later",
                                 where, status_text, words)
                   : fmt::format("{}: the server is in trouble ({}: {}); try again later", where,
                                 status_text, words)),
          true};
    case Meaning::kRequest:
      break;
  }
  return {Fail(ErrorCode::kInvalidArgument,
               fmt::format("{}: the server calls the request wrong ({}: {}); change the request or "
                           "the settings, trying again does not help",
                           where, status_text, words))};
}

Fault Redirected(const Endpoint& endpoint, const HttpHead& head) {
  const std::string host = HostOf(FindHeader(head.headers, "location").value_or(""));
  return {Fail(ErrorCode::kInvalidArgument,
               fmt::format("{}: the server redirects (status {}{}); no redirect is followed, since "
                           "it would carry the key elsewhere: give the final base URL",
                           Where(endpoint), head.status,
                           host.empty() ? "" : fmt::format(" to {}", OneLine(host))))};
}

}  // namespace

std::string Where(const Endpoint& endpoint) {
  return fmt::format("{} at {}", Printable(endpoint.model, 200), endpoint.base_url);
}

Fault TransportFault(const Endpoint& endpoint, const HttpRequest& request,
                     const HttpOutcome& outcome) {
  const std::string where = Where(endpoint);
  const std::string detail = OneLine(outcome.detail);
  switch (outcome.end) {
    case HttpEnd::kStopped:
      return {Fail(ErrorCode::kCancelled, where + ": stopped on request")};
    case HttpEnd::kTotalTimeout:
      return {Fail(ErrorCode::kTimeout,
                   fmt::format("{}: no whole answer within the {:.1f} s that were left; raise the "
                               "total timeout or the time cap, or lower max_tokens or the effort",
                               where, static_cast<double>(request.total_timeout.count()) / 1000))};
    case HttpEnd::kIdle:
      return {Fail(ErrorCode::kTimeout,
                   fmt::format("{}: nothing was received for {:.1f} s; raise the idle timeout if "
                               "the model reasons that long, or check the server",
                               where, static_cast<double>(request.idle_timeout.count()) / 1000)),
              true};
    case HttpEnd::kNoConnection:
      return {
          Fail(ErrorCode::kUnavailable,
               fmt::format("{}: no connection ({}); check the base URL, the network and that the "
                           "server runs",
                           where, detail)),
          true};
    case HttpEnd::kNoTrust:
      return {Fail(ErrorCode::kUnavailable,
                   fmt::format("{}: the server's certificate was not accepted ({}); check the base "
                               "URL and the system's certificates",
                               where, detail))};
    case HttpEnd::kTooLarge:
      return {Fail(ErrorCode::kParse, fmt::format("{}: an answer of more than {} MiB; is this a "
                                                  "language model's server?",
                                                  where, kBodyLimit >> 20U))};
    case HttpEnd::kBadRequest:
      return {Fail(ErrorCode::kInvalidArgument,
                   fmt::format("{}: cannot be asked ({}); check the base URL", where, detail))};
    case HttpEnd::kWhole:
    case HttpEnd::kSinkRefused:
    case HttpEnd::kCut:
      break;
  }
  return {Fail(ErrorCode::kUnavailable,
               fmt::format("{}: the connection ended before the answer did ({}); try again", where,
                           detail.empty() ? "no reason for its end came" : detail)),
          true};
}

Fault StatusFault(const Endpoint& endpoint, bool with_key, const HttpHead& head,
                  std::string_view body) {
  if (head.status >= 300 && head.status < 400) {
    return Redirected(endpoint, head);
  }
  ServerError error = FindServerError(body).value_or(ServerError{});
  if (error.message.empty()) {
    const auto title = HtmlTitle(body);
    error.message = title ? HtmlPage(*title) : OneLine(body);
  }
  if (head.status == 404 && MeaningOf(404, error) == Meaning::kRequest) {
    return {
        Fail(ErrorCode::kInvalidArgument,
             fmt::format("{}: there is nothing at {} (status 404: {}); is the base URL right? It "
                         "{}",
                         Where(endpoint), RequestUrl(endpoint), OneLine(error.message),
                         endpoint.wire == Wire::kOpenAi ? "usually ends in /v1"
                                                        : "ends before /v1/messages"))};
  }
  return Told(endpoint, with_key, head.status, error);
}

Fault AnswerFault(const Endpoint& endpoint, bool with_key, const ServerError& error) {
  return Told(endpoint, with_key, 0, error);
}

Fault ContentFault(const Endpoint& endpoint, std::string_view content_type, std::string_view body) {
  if (const auto title = HtmlTitle(body)) {
    return {Fail(ErrorCode::kParse,
                 fmt::format("{}: {}: is the base URL right?", Where(endpoint), HtmlPage(*title)))};
  }
  return {Fail(ErrorCode::kParse,
               fmt::format("{}: an answer of the wrong content type \"{}\" came back, neither JSON "
                           "nor an event stream: `{}`; is the base URL right?",
                           Where(endpoint), OneLine(content_type), OneLine(body.substr(0, 80))))};
}

}  // namespace kernelpro::llm
