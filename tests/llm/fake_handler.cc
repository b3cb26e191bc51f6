// SPDX-License-Identifier: Apache-2.0
#include "fake_handler.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/hash.h"

namespace kernelpro::fake {
namespace {

using Json = nlohmann::ordered_json;

/// Anthropic takes both headers: clients up to 0.x send x-api-key, those from 1.0 a bearer.
std::string SentKey(Wire wire, const HttpRequest& http) {
  if (wire == Wire::kAnthropic && !http.Header("x-api-key").empty()) {
    return http.Header("x-api-key");
  }
  const std::string value = http.Header("authorization");
  return value.starts_with("Bearer ") ? value.substr(7) : std::string();
}

/// Errors that a fault asks for, in the provider's own words.
std::optional<Refusal> FaultRefusal(Wire wire, FaultKind kind) {
  const bool anthropic = wire == Wire::kAnthropic;
  switch (kind) {
    case FaultKind::kRateLimitedSeconds:
    case FaultKind::kRateLimitedDate:
    case FaultKind::kRateLimitedMs:
      return anthropic ? Refusal{429, "rate_limit_error", "",
                                 "This request would exceed your organization's rate limit."}
                       : Refusal{429, "tokens", "rate_limit_exceeded",
                                 "Rate limit reached for test-model on tokens per min (TPM)."};
    case FaultKind::kQuota:
      return anthropic
                 ? Refusal{400, "invalid_request_error", "",
                           "Your credit balance is too low to access the Anthropic API. Please go "
                           "to Plans & Billing to upgrade or purchase credits."}
                 : Refusal{429, "insufficient_quota", "insufficient_quota",
                           "You exceeded your current quota, please check your plan and billing "
                           "details."};
    case FaultKind::kServerError:
      return anthropic ? Refusal{500, "api_error", "", "Internal server error"}
                       : Refusal{500, "server_error", "",
                                 "The server had an error while processing your request. Sorry "
                                 "about that!"};
    case FaultKind::kUnavailable:
      return anthropic ? Refusal{503, "api_error", "", "Service unavailable"}
                       : Refusal{503, "service_unavailable", "",
                                 "The engine is currently overloaded, please try again later."};
    case FaultKind::kOverloaded:
      return Refusal{529, "overloaded_error", "", "Overloaded"};
    default:
      return std::nullopt;
  }
}

/// Whole tokens only: half of a character is no text.
std::string FirstHalf(const std::string& text) {
  const std::vector<std::string> tokens = Tokenize(text);
  std::string half;
  for (std::size_t i = 0; i < tokens.size() / 2; ++i) {
    half += tokens[i];
  }
  return half;
}

void ChangeAnswer(FaultKind kind, Answer& answer) {
  switch (kind) {
    case FaultKind::kEmptyAnswer:
      answer = Answer{.reasoning = answer.reasoning};
      break;
    case FaultKind::kTruncated:
      answer.text = FirstHalf(answer.text);
      answer.calls.clear();
      answer.truncated = true;
      break;
    case FaultKind::kRefused:
      answer = Answer{.text = "I'm sorry, I can't help with that.", .refused = true};
      break;
    case FaultKind::kNoUsage:
      answer.no_usage = true;
      break;
    default:
      break;
  }
}

std::uint64_t CompletionTokens(const Answer& answer) {
  std::uint64_t tokens = answer.reasoning + Tokenize(answer.text).size();
  for (const AnswerCall& call : answer.calls) {
    tokens += 1 + Tokenize(call.arguments).size();
  }
  return tokens;
}

/// A model stops where it is told to.
void Limit(std::uint64_t max_tokens, Answer& answer) {
  if (CompletionTokens(answer) <= max_tokens) {
    return;
  }
  answer.calls.clear();
  answer.reasoning = std::min(answer.reasoning, max_tokens);
  const std::vector<std::string> tokens = Tokenize(answer.text);
  answer.text.clear();
  for (std::size_t i = 0; i < std::min(tokens.size(), max_tokens - answer.reasoning); ++i) {
    answer.text += tokens[i];
  }
  answer.truncated = true;
}

/// Half of the stream, then an error in it; without a stream, an error with status 200.
void BreakWithError(Wire wire, const std::string& id, Reply& reply) {
  const Refusal refusal = wire == Wire::kAnthropic
                              ? Refusal{529, "overloaded_error", "", "Overloaded"}
                              : Refusal{500, "server_error", "", "The server had an error."};
  const std::string error = ErrorObject(wire, refusal, id).dump();
  if (!reply.chunked) {
    reply.pieces = {error};
    reply.tokens = {0};
    return;
  }
  reply.pieces.resize(reply.head_pieces + (reply.pieces.size() - reply.head_pieces) / 2);
  reply.tokens.resize(reply.pieces.size());
  reply.pieces.push_back((wire == Wire::kAnthropic ? "event: error\n" : "") +
                         fmt::format("data: {}\n\n", error));
  reply.tokens.push_back(0);
  reply.tail_pieces = 1;
}

void AddRetryHeaders(const Fault& fault, Reply& reply) {
  if (fault.kind == FaultKind::kRateLimitedSeconds) {
    reply.headers.push_back(fmt::format("Retry-After: {}", fault.retry_after_s));
  } else if (fault.kind == FaultKind::kRateLimitedDate) {
    reply.headers.push_back("Retry-After: " + HttpDate(std::time(nullptr) + fault.retry_after_s));
  } else if (fault.kind == FaultKind::kRateLimitedMs) {
    reply.headers.push_back(fmt::format("retry-after-ms: {}", fault.wait.count()));
  }
}

}  // namespace

Answer Echo(const Asked& asked) {
  return {.text = asked.last};
}

std::string LedgerLine(const LedgerEntry& entry) {
  const Json line = {{"index", entry.index},
                     {"id", entry.id},
                     {"wire", entry.wire == Wire::kOpenAi ? "openai" : "anthropic"},
                     {"model", entry.model},
                     {"body_hash", entry.body_hash},
                     {"prompt_tokens", entry.tokens.prompt},
                     {"cached_tokens", entry.tokens.cached},
                     {"cache_write_tokens", entry.tokens.cache_written},
                     {"completion_tokens", entry.tokens.completion},
                     {"fault", Facts(entry.fault).name},
                     {"delivered", entry.delivered}};
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Handler::Handler(HandlerOptions options) : options_(std::move(options)) {}

std::uint64_t Handler::redirected() const {
  const std::scoped_lock lock(mutex_);
  return redirected_;
}

bool Handler::Authorized(Wire wire, const HttpRequest& http, Refusal& refusal) const {
  const std::string sent = SentKey(wire, http);
  if (!sent.empty() && (options_.key.empty() || sent == options_.key)) {
    return true;
  }
  if (wire == Wire::kAnthropic) {
    refusal = {401, "authentication_error", "",
               sent.empty() ? "x-api-key header is required" : "invalid x-api-key"};
  } else if (sent.empty()) {
    refusal = {401, "invalid_request_error", "",
               "You didn't provide an API key. You need to provide your API key in an "
               "Authorization header using Bearer auth."};
  } else {
    refusal = {401, "invalid_request_error", "invalid_api_key",
               fmt::format("Incorrect API key provided: {}****. You can find your API key at "
                           "https://platform.openai.com/account/api-keys.",
                           sent.substr(0, 3))};
  }
  return false;
}

bool Handler::KnownModel(Wire wire, const std::string& model, Refusal& refusal) const {
  if (std::ranges::find(options_.models, model) != options_.models.end()) {
    return true;
  }
  refusal = wire == Wire::kAnthropic
                ? Refusal{404, "not_found_error", "", "model: " + model}
                : Refusal{404, "invalid_request_error", "model_not_found",
                          fmt::format("The model `{}` does not exist or you do not have access "
                                      "to it.",
                                      model)};
  return false;
}

Fault Handler::Plan(const Asked& asked) {
  const std::string header = asked.http.Header("x-fake-fault");
  if (header.empty()) {
    return options_.plan ? options_.plan(asked) : Fault{};
  }
  const std::size_t semicolon = header.find(';');
  Fault fault;
  fault.kind = FindFault(header.substr(0, semicolon)).value_or(FaultKind::kNone);
  if (semicolon != std::string::npos) {
    int times = 0;
    std::from_chars(header.data() + semicolon + 1, header.data() + header.size(), times);
    const std::scoped_lock lock(mutex_);
    if (header_faults_[header]++ >= times) {
      return Fault{};
    }
  }
  return fault;
}

Tokens Handler::CountPrompt(const Asked& asked) {
  Tokens tokens;
  std::string prefix = asked.model;
  const std::scoped_lock lock(mutex_);
  std::uint64_t marked = 0;
  for (const PromptPart& part : asked.prompt) {
    tokens.prompt += Tokenize(part.text).size();
    const std::string_view parts[] = {prefix, part.text};
    prefix = ContentHash(parts);
    if (tokens.prompt < options_.cache_minimum) {
      continue;
    }
    if (prefixes_.contains(prefix)) {
      tokens.cached = tokens.prompt;
    }
    if (part.marked) {
      prefixes_.insert(prefix);
      marked = tokens.prompt;
    }
  }
  if (asked.wire == Wire::kAnthropic) {
    tokens.cache_written = marked - std::min(marked, tokens.cached);
  }
  tokens.prompt += Tokenize(asked.schema).size();
  return tokens;
}

void Handler::Refuse(Handled& handled, Wire wire, Refusal refusal) const {
  if (options_.repeats_key) {
    refusal.message += " Your request was sent with the key " + SentKey(wire, handled.asked.http);
  }
  handled.reply = ErrorReply(wire, refusal, handled.id);
  AddRetryHeaders(handled.fault, handled.reply);
}

void Handler::Complete(Handled& handled) {
  const Asked& asked = handled.asked;
  if (handled.fault.kind == FaultKind::kRedirect) {
    handled.reply.status = 307;
    handled.reply.headers = {fmt::format("Location: http://{}/elsewhere{}",
                                         asked.http.Header("host"), asked.http.target)};
    handled.reply.pieces = {""};
    return;
  }
  if (auto refusal = FaultRefusal(asked.wire, handled.fault.kind)) {
    Refuse(handled, asked.wire, *std::move(refusal));
    return;
  }
  Answer answer = options_.responder(asked);
  if (!asked.forced_tool.empty() && answer.calls.empty()) {
    answer.calls.push_back({asked.forced_tool, std::exchange(answer.text, {})});
  }
  ChangeAnswer(handled.fault.kind, answer);
  Limit(asked.max_tokens, answer);
  handled.generated = true;
  handled.tokens = CountPrompt(asked);
  handled.tokens.completion = CompletionTokens(answer);
  handled.tokens.reasoning = answer.reasoning;
  handled.reply = asked.wire == Wire::kAnthropic
                      ? WriteAnthropic(asked, answer, handled.tokens, handled.id)
                      : WriteOpenAi(asked, answer, handled.tokens, handled.id);
  handled.reply.headers.push_back(
      (asked.wire == Wire::kAnthropic ? "request-id: req_" : "x-request-id: req_") + handled.id);
  if (handled.fault.kind == FaultKind::kErrorEvent) {
    BreakWithError(asked.wire, "req_" + handled.id, handled.reply);
  }
}

Handled Handler::Handle(HttpRequest http) {
  Handled handled;
  handled.asked.http = std::move(http);
  Asked& asked = handled.asked;
  const HttpRequest& request = asked.http;
  {
    const std::scoped_lock lock(mutex_);
    asked.index = requests_++;
    redirected_ += request.target.starts_with("/elsewhere") ? 1 : 0;
  }
  handled.id = fmt::format("{:06}", asked.index);
  const std::string path = request.target.substr(0, request.target.find('?'));
  const Wire wire = path == "/v1/messages" || !request.Header("anthropic-version").empty()
                        ? Wire::kAnthropic
                        : Wire::kOpenAi;
  asked.wire = wire;
  Refusal refusal;
  if (!Authorized(wire, request, refusal)) {
    Refuse(handled, wire, refusal);
  } else if (path == "/v1/models" && request.method == "GET") {
    handled.reply = ModelsReply(wire, options_.models);
  } else if (request.method != "POST" ||
             (path != "/v1/messages" && path != "/v1/chat/completions")) {
    Refuse(handled, wire,
           {404, wire == Wire::kAnthropic ? "not_found_error" : "invalid_request_error", "",
            fmt::format("Invalid URL ({} {})", request.method, path)});
  } else if (!(wire == Wire::kAnthropic ? ReadAnthropic(request, asked, refusal)
                                        : ReadOpenAi(request, asked, refusal)) ||
             !KnownModel(wire, asked.model, refusal)) {
    Refuse(handled, wire, refusal);
  } else {
    handled.fault = Plan(asked);
    Complete(handled);
  }
  return handled;
}

}  // namespace kernelpro::fake
