// SPDX-License-Identifier: Apache-2.0
#include "llm/wire.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"
#include "llm/json_text.h"

namespace kernelpro::llm {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLongestQuote = 400;

ServerError FromObject(const Json& error) {
  ServerError found{TextOf(error, "type"), TextOf(error, "code"), TextOf(error, "message")};
  if (found.message.empty()) {
    found.message = JsonText(error);
  }
  return found;
}

}  // namespace

std::optional<ServerError> FindServerError(std::string_view text) {
  const auto json = ParseJson(text);
  if (!json.ok() || !json->is_object()) {
    return std::nullopt;
  }
  if (const Json* error = Member(*json, "error"); error != nullptr) {
    if (error->is_object()) {
      return FromObject(*error);
    }
    if (error->is_string()) {  // Ollama
      return ServerError{{}, {}, error->get<std::string>()};
    }
  }
  if (TextOf(*json, "object") == "error") {  // vLLM
    return FromObject(*json);
  }
  if (const Json* detail = Member(*json, "detail"); detail != nullptr) {  // FastAPI
    return ServerError{
        {}, {}, detail->is_string() ? detail->get<std::string>() : JsonText(*detail)};
  }
  return std::nullopt;
}

void JudgeEnd(ChatResponse& response, bool truncated, bool refused, std::string_view why) {
  const auto set = [&](Problem problem, std::string text) {
    response.problem = problem;
    response.problem_text = std::move(text);
  };
  if (refused) {
    set(Problem::kRefused, fmt::format("the model or a filter declined to answer ({}): ask for "
                                       "something else or in other words",
                                       Printable(why, kLongestQuote)));
  } else if (truncated) {
    set(Problem::kTruncated, fmt::format("the answer was cut off ({}): raise max_tokens, lower the "
                                         "effort or shorten the prompt",
                                         Printable(why, kLongestQuote)));
  } else if (response.calls.empty() && Trim(response.text).empty()) {
    set(Problem::kEmpty,
        fmt::format("the answer holds neither text nor a tool call (ended with "
                    "\"{}\"): ask again, with more max_tokens if the model reasons",
                    Printable(why, kLongestQuote)));
  }
}

std::string RequestUrl(const Endpoint& endpoint) {
  return endpoint.base_url +
         (endpoint.wire == Wire::kOpenAi ? "/chat/completions" : "/v1/messages");
}

Headers RequestHeaders(const Endpoint& endpoint, const Key& key, bool stream) {
  Headers headers = {
      {"Content-Type", "application/json"},
      {"Accept", stream ? "text/event-stream, application/json" : "application/json"},
      {"User-Agent", "kernelpro"}};
  if (endpoint.wire == Wire::kAnthropic) {
    headers.emplace_back("anthropic-version", "2023-06-01");
  }
  if (!key.empty()) {
    if (endpoint.wire == Wire::kOpenAi) {
      headers.emplace_back("Authorization", "Bearer " + key.Reveal());
    } else {
      headers.emplace_back("x-api-key", key.Reveal());
    }
  }
  return headers;
}

Result<std::string> RequestBody(const Endpoint& endpoint, const ChatRequest& request, bool stream) {
  return endpoint.wire == Wire::kOpenAi ? OpenAiBody(endpoint, request, stream)
                                        : AnthropicBody(endpoint, request, stream);
}

std::unique_ptr<AnswerReader> MakeReader(const Endpoint& endpoint, const ChatRequest& request) {
  return endpoint.wire == Wire::kOpenAi ? OpenAiReader()
                                        : AnthropicReader(AnswerTool(endpoint, request));
}

}  // namespace kernelpro::llm
