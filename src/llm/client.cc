// SPDX-License-Identifier: Apache-2.0
#include "llm/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "base/rng.h"
#include "base/text.h"
#include "llm/attempt.h"
#include "llm/client_parts.h"
#include "llm/endpoint.h"
#include "llm/schema_check.h"
#include "llm/wire.h"

namespace kernelpro::llm {
namespace {

/// No provider hands out a shorter key.
constexpr std::size_t kShortestSecret = 8;

using std::chrono::milliseconds;

double Seconds(milliseconds time) {
  return static_cast<double>(time.count()) / 1000;
}

Usage UpperBound(const ChatRequest& request, const Price& price) {
  Usage usage;
  usage.input = PromptTokensAtMost(request);
  usage.output = request.max_tokens;
  // All of the prompt may be written to the cache, which can cost more than reading it afresh.
  usage.cache_write = price.cache_write > price.input ? usage.input : 0;
  return usage;
}

class HttpChatClient : public ChatClient {
 public:
  HttpChatClient(ClientOptions options, Budget& budget, const Clock& clock,
                 std::unique_ptr<Transport> transport, std::unique_ptr<Sleeper> sleeper)
      : options_(std::move(options)),
        budget_(budget),
        clock_(clock),
        transport_(std::move(transport)),
        sleeper_(std::move(sleeper)),
        name_(options_.key.Redact(
            fmt::format("{}:{}", options_.endpoint.wire == Wire::kOpenAi ? "openai" : "anthropic",
                        Where(options_.endpoint)))) {}

  [[nodiscard]] std::string_view name() const override { return name_; }

  Result<ChatResponse> Ask(const ChatRequest& request, const std::stop_token& stop) override {
    auto response = AskUntilAnswered(request, stop);
    if (response.ok()) {
      Finish(request, *response);
      return response;
    }
    Error error = std::move(response).error();
    error.message = options_.key.Redact(std::move(error.message));
    return error;
  }

 private:
  Result<ChatResponse> AskUntilAnswered(const ChatRequest& request, const std::stop_token& stop) {
    if (request.max_tokens == 0) {
      return Fail(ErrorCode::kInvalidArgument, "max_tokens is 0: there is nothing to ask for");
    }
    KP_ASSIGN_OR_RETURN(HttpRequest http, Prepare(request));
    const auto deadline = clock_.Now() + options_.total_timeout;
    const Usage at_most = UpperBound(request, options_.price);
    Rng rng = Rng(options_.seed).Fork(asked_.fetch_add(1));
    double cost = 0;
    for (std::uint32_t attempt = 1;; ++attempt) {
      if (stop.stop_requested()) {
        return Fail(ErrorCode::kCancelled, Where(options_.endpoint) + ": stopped on request");
      }
      http.total_timeout = TimeLeft(deadline);
      KP_ASSIGN_OR_RETURN(auto reservation, budget_.Reserve(options_.price, at_most));
      Attempt made =
          RunAttempt(*transport_, options_, request, http, at_most, clock_.UnixSeconds(), stop);
      if (made.charge) {
        cost += reservation.Settle(*made.charge);
      } else {
        reservation.Release();
      }
      if (made.answer) {
        made.answer->cost = cost;
        made.answer->attempts = attempt;
        return std::move(*made.answer);
      }
      if (!made.fault.passing || attempt >= std::max(1U, options_.max_attempts)) {
        return WithAttempts(std::move(made.fault.error), attempt);
      }
      KP_RETURN_IF_ERROR(WaitAfter(made, attempt, deadline, rng, stop));
    }
  }

  [[nodiscard]] Result<HttpRequest> Prepare(const ChatRequest& request) const {
    HttpRequest http;
    http.url = RequestUrl(options_.endpoint);
    http.headers = RequestHeaders(options_.endpoint, options_.key, options_.stream);
    KP_ASSIGN_OR_RETURN(http.body, RequestBody(options_.endpoint, request, options_.stream));
    http.connect_timeout = options_.connect_timeout;
    http.idle_timeout = options_.idle_timeout;
    return http;
  }

  [[nodiscard]] milliseconds TimeLeft(std::chrono::nanoseconds deadline) const {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - clock_.Now());
    return std::max(milliseconds(0), std::min(left, budget_.TimeLeft().value_or(left)));
  }

  Status WaitAfter(const Attempt& made, std::uint32_t attempt, std::chrono::nanoseconds deadline,
                   Rng& rng, const std::stop_token& stop) const {
    const milliseconds asked = made.server_wait.value_or(milliseconds(0));
    const milliseconds jitter =
        JitterWait(attempt - 1, options_.backoff_base, options_.backoff_max, rng);
    // A little more than a server asks for: those that were told the same must not come back at
    // the same moment.
    const milliseconds wait =
        std::max(jitter, asked + JitterWait(0, options_.backoff_base, options_.backoff_base, rng));
    const milliseconds left = TimeLeft(deadline);
    if (wait >= left) {
      const std::string why =
          asked >= left
              ? fmt::format(
                    "the server asks to wait {:.1f} s, and {:.1f} s are left of the total "
                    "timeout or the time cap",
                    Seconds(asked), Seconds(left))
              : fmt::format(
                    "{:.1f} s are left of the total timeout or the time cap, too little for "
                    "another attempt",
                    Seconds(left));
      return WithAttempts(Fail(made.fault.error.code, made.fault.error.message + "; " + why),
                          attempt);
    }
    if (!sleeper_->Sleep(wait, stop)) {
      return Fail(ErrorCode::kCancelled,
                  fmt::format("{}: stopped on request, while waiting after: {}",
                              Where(options_.endpoint), made.fault.error.message));
    }
    return Ok();
  }

  static Error WithAttempts(Error error, std::uint32_t attempts) {
    if (attempts > 1) {
      error.message += fmt::format(" [after {} attempts]", attempts);
    }
    return error;
  }

  void Finish(const ChatRequest& request, ChatResponse& response) const {
    if (response.problem == Problem::kNone && !request.schema.empty() && response.calls.empty()) {
      const std::string violation = SchemaViolation(request.schema, response.text);
      if (!violation.empty()) {
        response.problem = Problem::kSchema;
        response.problem_text =
            fmt::format("the answer does not meet the schema {}: {}; ask again and say so",
                        request.schema_name, violation);
      }
    }
    // A server may repeat what it was sent; what is kept of an answer must not hold the key.
    for (std::string* text : {&response.problem_text, &response.model, &response.id}) {
      *text = options_.key.Redact(std::move(*text));
    }
    // Servers of one's own are given "x" or "none": no secret, but part of many a word of code.
    if (options_.key.Reveal().size() < kShortestSecret) {
      return;
    }
    for (std::string* text : {&response.text, &response.reasoning}) {
      *text = options_.key.Redact(std::move(*text));
    }
    for (ToolCall& call : response.calls) {
      for (std::string* text : {&call.id, &call.name, &call.arguments}) {
        *text = options_.key.Redact(std::move(*text));
      }
    }
  }

  const ClientOptions options_;
  Budget& budget_;
  const Clock& clock_;
  const std::unique_ptr<Transport> transport_;
  const std::unique_ptr<Sleeper> sleeper_;
  const std::string name_;
  std::atomic<std::uint64_t> asked_ = 0;
};

}  // namespace

Result<std::unique_ptr<ChatClient>> OpenClientOver(ClientOptions options, Budget& budget,
                                                   const Clock& clock,
                                                   std::unique_ptr<Transport> transport,
                                                   std::unique_ptr<Sleeper> sleeper) {
  KP_RETURN_IF_ERROR(CheckBaseUrl(options.endpoint.base_url));
  if (options.endpoint.model.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "no model is named");
  }
  // The key goes into a header: a line end in it would begin another one.
  const std::string& key = options.key.Reveal();
  if (!std::ranges::all_of(key, [](unsigned char c) { return c > ' ' && c < 127; })) {
    return Fail(ErrorCode::kInvalidArgument,
                "the key holds blanks, control or non-ASCII characters");
  }
  return std::unique_ptr<ChatClient>(std::make_unique<HttpChatClient>(
      std::move(options), budget, clock, std::move(transport), std::move(sleeper)));
}

Result<std::unique_ptr<ChatClient>> OpenClient(ClientOptions options, Budget& budget,
                                               const Clock& clock) {
  return OpenClientOver(std::move(options), budget, clock, OpenHttpTransport(clock),
                        SystemSleeper());
}

}  // namespace kernelpro::llm
