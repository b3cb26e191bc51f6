// SPDX-License-Identifier: Apache-2.0
#include "mcp/calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "mcp/catalog.h"

namespace kernelpro::mcp {
namespace {

class ProgressNotifier : public ProgressSink {
 public:
  ProgressNotifier(const Call& call, LineWriter& writer, std::stop_token stop)
      : call_(call), writer_(writer), stop_(std::move(stop)) {}

  void Report(double done, double total, std::string_view message) override {
    const std::scoped_lock lock(mutex_);
    // Progress must grow, and a cancelled request gets no messages any more.
    if (!call_.progress_token || stop_.stop_requested() || !std::isfinite(done) || done <= last_) {
      return;
    }
    last_ = done;
    Json params{{"progressToken", *call_.progress_token}, {"progress", done}};
    if (std::isfinite(total) && total > 0) {
      params["total"] = total;
    }
    if (!message.empty() && call_.revision >= "2025-03-26") {
      params["message"] = message;
    }
    writer_.Write(Line(Json{
        {"jsonrpc", "2.0"}, {"method", "notifications/progress"}, {"params", std::move(params)}}));
  }

 private:
  const Call& call_;
  LineWriter& writer_;
  std::stop_token stop_;
  std::mutex mutex_;
  double last_ = -std::numeric_limits<double>::infinity();
};

/// A tool that breaks its own promise is our bug, and the client must not be told otherwise.
std::optional<RpcError> BrokenPromise(const CheckedTool& checked, const ToolResult& result) {
  const auto wrong = [&](std::string_view what) {
    return RpcError{RpcCode::kInternal, fmt::format("the tool {} {}", checked.tool->name, what),
                    ""};
  };
  if (result.structured.empty()) {
    return checked.output && !result.failed
               ? std::optional(wrong("gave no structured result, which its output schema promises"))
               : std::nullopt;
  }
  const Json structured = Json::parse(result.structured, nullptr, false);
  if (!structured.is_object()) {
    return wrong("gave a structured result that is no JSON object");
  }
  if (checked.output && !result.failed) {
    if (const auto violation = checked.output->Violation(structured, "result")) {
      return wrong("gave a result that its output schema refuses: " + *violation);
    }
  }
  return std::nullopt;
}

}  // namespace

Call::Call() = default;
Call::Call(Call&& other) noexcept = default;
Call& Call::operator=(Call&& other) noexcept = default;
Call::~Call() = default;

Calls::Calls(const Offer& offer, LineWriter& writer)
    : offer_(offer), writer_(writer), worker_([this] { Work(); }) {}

Calls::~Calls() {
  Stop();
}

void Calls::Add(Call call) {
  {
    const std::scoped_lock lock(mutex_);
    if (waiting_.size() < kMostWaiting && waiting_bytes_ + call.bytes <= kMostWaitingBytes) {
      waiting_bytes_ += call.bytes;
      in_flight_.insert(call.key);
      waiting_.push_back(std::move(call));
      changed_.notify_one();
      return;
    }
  }
  call.replies->Give(
      *call.id,
      RpcError{RpcCode::kInternal, "too many calls wait for the one that runs; try later", ""});
}

bool Calls::InFlight(const std::string& key) const {
  const std::scoped_lock lock(mutex_);
  return in_flight_.contains(key);
}

void Calls::Cancel(const std::string& key) {
  // Both without the lock: a stop request runs the tool's callbacks, and an answer may have to wait
  // for a slow client.
  std::optional<std::stop_source> running;
  std::shared_ptr<Replies> replies;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = std::ranges::find(waiting_, key, &Call::key);
    if (running_ == key) {
      running = running_stop_;
    } else if (found != waiting_.end()) {
      replies = std::move(found->replies);
      waiting_bytes_ -= found->bytes;
      in_flight_.erase(key);
      waiting_.erase(found);
    }
  }
  if (running) {
    running->request_stop();
  }
  if (replies) {
    replies->Skip();
  }
}

void Calls::Stop() {
  std::stop_source running;
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
    waiting_.clear();
    running = running_stop_;
    changed_.notify_all();
  }
  running.request_stop();
  if (worker_.joinable()) {
    worker_.join();
  }
}

void Calls::Work() {
  for (;;) {
    Call call;
    std::stop_token stop;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
      if (stopping_) {
        return;
      }
      call = std::move(waiting_.front());
      waiting_.pop_front();
      waiting_bytes_ -= call.bytes;
      running_ = call.key;
      running_stop_ = std::stop_source();
      stop = running_stop_.get_token();
    }
    Answer answer = Run(call, stop);
    {
      const std::scoped_lock lock(mutex_);
      running_.clear();
      in_flight_.erase(call.key);  // before the answer: with it the client may use the id again
    }
    if (stop.stop_requested()) {
      call.replies->Skip();
    } else {
      call.replies->Give(*call.id, std::move(answer));
    }
  }
}

Answer Calls::Run(const Call& call, const std::stop_token& stop) {
  const Catalog catalog(offer_, call.revision);
  if (const auto violation = call.tool->input.Violation(*call.arguments, "arguments")) {
    // As a result and not as an error of the protocol: only results reach the model.
    return catalog.CallResult(
        Fail(ErrorCode::kInvalidArgument,
             "the arguments do not fit the tool's input schema:\n" + *violation));
  }
  ProgressNotifier progress(call, writer_, stop);
  try {
    const Result<ToolResult> outcome = call.tool->tool->call(*call.arguments, progress, stop);
    if (outcome.ok()) {
      if (std::optional<RpcError> broken = BrokenPromise(*call.tool, *outcome)) {
        return std::move(*broken);
      }
    }
    return catalog.CallResult(outcome);
  } catch (const std::exception& e) {
    return RpcError{RpcCode::kInternal,
                    fmt::format("the tool {} broke off: {}", call.tool->tool->name, e.what()), ""};
  }
}

}  // namespace kernelpro::mcp
