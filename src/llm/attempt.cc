// SPDX-License-Identifier: Apache-2.0
#include "llm/attempt.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "llm/retry.h"
#include "llm/sse.h"
#include "llm/wire.h"

namespace kernelpro::llm {
namespace {

// Enough of a page or an error to say what it is.
constexpr std::size_t kQuoteLimit = 1U << 20U;

bool IsGood(int status) {
  return status >= 200 && status < 300;
}

/// Takes the pieces of a body as they come and gives them to whoever can read them.
class Body {
 public:
  explicit Body(std::unique_ptr<AnswerReader> reader) : reader_(std::move(reader)) {}

  enum class Kind { kNone, kEvents, kJson, kOther };

  bool Take(const HttpHead& head, std::string_view piece) {
    if (kind_ == Kind::kNone && !piece.empty()) {
      kind_ = KindOf(head, piece);
    }
    if (kind_ == Kind::kEvents) {
      broken_ = sse_.Feed(piece, [this](const SseEvent& event) { return reader_->Event(event); });
      return broken_.ok();
    }
    if (kind_ == Kind::kJson || text_.size() < kQuoteLimit) {
      text_ += piece;
    }
    return true;
  }

  /// After the last piece: parses what was not streamed.
  Status Read() {
    if (kind_ == Kind::kJson && broken_.ok()) {
      broken_ = reader_->Whole(text_);
    }
    return broken_;
  }

  [[nodiscard]] Kind kind() const { return kind_; }

  [[nodiscard]] const std::string& text() const { return text_; }

  [[nodiscard]] bool Ended() const { return reader_->Ended(); }

  [[nodiscard]] Reading Finish() { return reader_->Finish(); }

 private:
  static Kind KindOf(const HttpHead& head, std::string_view piece) {
    if (!IsGood(head.status)) {
      return Kind::kOther;
    }
    const std::string_view start = Trim(piece);
    if (start.starts_with('<')) {  // a page, whatever it is called
      return Kind::kOther;
    }
    std::string type = FindHeader(head.headers, "content-type").value_or("");
    type.resize(std::min(type.find(';'), type.size()));
    type = Trim(type);
    std::ranges::transform(type, type.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (type == "text/event-stream") {
      return Kind::kEvents;
    }
    if (type == "application/json" || type.ends_with("+json")) {
      return Kind::kJson;
    }
    if (!type.empty()) {
      return Kind::kOther;
    }
    return start.starts_with('{') ? Kind::kJson : Kind::kEvents;
  }

  std::unique_ptr<AnswerReader> reader_;
  SseParser sse_;
  Kind kind_ = Kind::kNone;
  std::string text_;
  Status broken_ = Ok();
};

Usage AtMost(Usage at_most, const Usage& seen) {
  Usage usage = at_most;
  if (seen.input > 0) {  // the server told this part before the answer broke off
    usage.input = seen.input;
    usage.cache_read = seen.cache_read;
    usage.cache_write = seen.cache_write;
  }
  usage.output = std::max(at_most.output, seen.output);
  usage.reasoning = 0;
  usage.estimated = true;
  return usage;
}

/// Gateways give up on servers that go on working, and charging.
bool MayStillWork(int status) {
  return status == 504 || status == 524;
}

Attempt OfStatus(const ClientOptions& options, const HttpOutcome& outcome, const Body& body,
                 const Usage& at_most, std::int64_t unix_now) {
  Attempt attempt;
  attempt.fault = StatusFault(options.endpoint, !options.key.empty(), outcome.head, body.text());
  if (MayStillWork(outcome.head.status)) {
    attempt.charge = AtMost(at_most, {});
  }
  if (attempt.fault.passing) {
    attempt.server_wait = ServerWait(outcome.head, unix_now);
  }
  return attempt;
}

Attempt OfAnswer(const ClientOptions& options, const HttpRequest& http, const HttpOutcome& outcome,
                 Body& body, const Usage& at_most) {
  Attempt attempt;
  const Status read =
      outcome.end == HttpEnd::kWhole || outcome.end == HttpEnd::kSinkRefused ? body.Read() : Ok();
  const bool whole = outcome.end == HttpEnd::kWhole && body.kind() == Body::Kind::kJson;
  Reading reading = body.Finish();
  ChatResponse& response = reading.response;
  attempt.charge = AtMost(at_most, response.usage);
  if (!read.ok()) {
    attempt.fault = {
        Fail(ErrorCode::kParse,
             fmt::format("{}: what came back cannot be read: {}; is this server of the "
                         "protocol that the model's name says?",
                         Where(options.endpoint), read.error().message))};
  } else if (reading.error) {
    attempt.fault = AnswerFault(options.endpoint, !options.key.empty(), *reading.error);
  } else if (reading.complete || whole) {
    if (reading.usage_complete) {
      attempt.charge = response.usage;
    }
    response.usage = *attempt.charge;
    attempt.answer = std::move(response);
  } else {
    attempt.fault = TransportFault(options.endpoint, http, outcome);
  }
  return attempt;
}

}  // namespace

Attempt RunAttempt(Transport& transport, const ClientOptions& options, const ChatRequest& request,
                   const HttpRequest& http, const Usage& at_most, std::int64_t unix_now,
                   const std::stop_token& stop) {
  Body body(MakeReader(options.endpoint, request));
  HttpRequest asked = http;
  asked.answered = [&body] { return body.Ended(); };
  const HttpOutcome outcome = transport.Post(
      asked,
      [&body](const HttpHead& head, std::string_view piece) { return body.Take(head, piece); },
      stop);
  const int status = outcome.head.status;
  if (outcome.end == HttpEnd::kStopped || status == 0) {
    Attempt attempt;
    attempt.fault = TransportFault(options.endpoint, http, outcome);
    if (outcome.sent) {
      attempt.charge = AtMost(at_most, body.Finish().response.usage);
    }
    return attempt;
  }
  if (!IsGood(status)) {
    return OfStatus(options, outcome, body, at_most, unix_now);
  }
  if (body.kind() == Body::Kind::kOther) {
    Attempt attempt;
    attempt.fault =
        ContentFault(options.endpoint,
                     FindHeader(outcome.head.headers, "content-type").value_or(""), body.text());
    if (!Trim(body.text()).starts_with('<')) {  // a page costs nothing; this may be an answer
      attempt.charge = AtMost(at_most, {});
    }
    return attempt;
  }
  return OfAnswer(options, http, outcome, body, at_most);
}

}  // namespace kernelpro::llm
