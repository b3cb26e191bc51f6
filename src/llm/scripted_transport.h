// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "llm/client_parts.h"

/// For tests: a server that says what it was told to, a clock and a sleeper that do not wait.
namespace kernelpro::llm {

struct Reply {
  int status = 200;
  std::string body;
  Headers headers = {{"Content-Type", "application/json"}};
  HttpEnd end = HttpEnd::kWhole;
  bool sent = true;
  std::string detail;
};

inline Reply Events(std::string body, HttpEnd end = HttpEnd::kWhole) {
  return {200, std::move(body), {{"content-type", "text/event-stream; charset=utf-8"}}, end};
}

class FakeClock : public Clock {
 public:
  [[nodiscard]] std::chrono::nanoseconds Now() const override {
    const std::scoped_lock lock(mutex_);
    return now_;
  }

  [[nodiscard]] std::int64_t UnixSeconds() const override {
    return 1'000'000'000 + std::chrono::duration_cast<std::chrono::seconds>(Now()).count();
  }

  void Advance(std::chrono::nanoseconds time) {
    const std::scoped_lock lock(mutex_);
    now_ += time;
  }

 private:
  mutable std::mutex mutex_;
  std::chrono::nanoseconds now_{0};
};

/// What happened, kept outside the client that owns the transport.
struct Log {
  std::mutex mutex;
  std::vector<HttpRequest> requests;
  std::vector<std::chrono::milliseconds> waits;
};

class ScriptedTransport : public Transport {
 public:
  ScriptedTransport(std::vector<Reply> replies, Log& log)
      : replies_(std::move(replies)), log_(log) {}

  HttpOutcome Post(const HttpRequest& request, const OnBody& on_body,
                   const std::stop_token&) override {
    Reply reply;
    {
      const std::scoped_lock lock(log_.mutex);
      log_.requests.push_back(request);
      if (next_ >= replies_.size()) {
        ADD_FAILURE() << "request " << next_ + 1 << " of " << replies_.size();
        return {HttpEnd::kBadRequest, {}, false, "not scripted"};
      }
      reply = replies_[next_++];
    }
    HttpOutcome outcome{reply.end, {reply.status, reply.headers}, reply.sent, reply.detail};
    // Small odd pieces, so that no reader can rely on how a body arrives.
    for (std::size_t at = 0; at < reply.body.size(); at += 7) {
      if (!on_body(outcome.head, std::string_view(reply.body).substr(at, 7))) {
        outcome.end = HttpEnd::kSinkRefused;
        break;
      }
    }
    return outcome;
  }

 private:
  std::vector<Reply> replies_;
  Log& log_;
  std::size_t next_ = 0;
};

/// Moves the clock instead of waiting; may ask to stop while it "waits".
class FakeSleeper : public Sleeper {
 public:
  FakeSleeper(FakeClock& clock, Log& log, std::stop_source* stop_at_wait)
      : clock_(clock), log_(log), stop_at_wait_(stop_at_wait) {}

  bool Sleep(std::chrono::milliseconds time, const std::stop_token& stop) override {
    {
      const std::scoped_lock lock(log_.mutex);
      log_.waits.push_back(time);
    }
    if (stop_at_wait_ != nullptr) {
      stop_at_wait_->request_stop();
    }
    clock_.Advance(time);
    return !stop.stop_requested();
  }

 private:
  FakeClock& clock_;
  Log& log_;
  std::stop_source* stop_at_wait_;
};

inline constexpr char kCanary[] = "sk-CANARY-0a1b/2c3d+4e5f_6789\"xyz";

/// A client over a scripted server.
struct Bench {
  explicit Bench(std::vector<Reply> replies, Wire wire = Wire::kOpenAi, Caps caps = {})
      : budget(caps, clock) {
    options.endpoint = wire == Wire::kOpenAi
                           ? Endpoint{wire, "https://api.example.com/v1", "some-model"}
                           : Endpoint{wire, "https://api.example.com", "claude-sonnet-4-6"};
    options.key = Key(kCanary);
    options.price = {1, 0.1, 1, 10};  // dollars per million tokens
    script = std::move(replies);
  }

  Result<ChatResponse> Ask(const ChatRequest& request) {
    if (client == nullptr) {
      auto opened =
          OpenClientOver(options, budget, clock, std::make_unique<ScriptedTransport>(script, log),
                         std::make_unique<FakeSleeper>(clock, log, stop_at_wait));
      if (!opened.ok()) {
        return std::move(opened).error();
      }
      client = std::move(*opened);
    }
    return client->Ask(request, stop.get_token());
  }

  FakeClock clock;
  Budget budget;
  ClientOptions options;
  std::vector<Reply> script;
  Log log;
  std::stop_source stop;
  std::stop_source* stop_at_wait = nullptr;
  std::unique_ptr<ChatClient> client;
};

inline ChatRequest Question(std::string text = "hello") {
  ChatRequest request;
  Message message;
  message.text = std::move(text);
  request.messages.push_back(std::move(message));
  request.max_tokens = 1000;
  return request;
}

}  // namespace kernelpro::llm
