// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>

#include "llm/chat.h"
#include "llm/client.h"
#include "llm/fault.h"
#include "llm/transport.h"

namespace kernelpro::llm {

/// What one exchange with a server came to.
struct Attempt {
  std::optional<ChatResponse> answer;  ///< `problem` is set but for the schema
  Fault fault;                         ///< without an answer: why
  /// What it costs: the server's figures, or at most what it can have charged; nothing when the
  /// server did no work.
  std::optional<Usage> charge;
  std::optional<std::chrono::milliseconds> server_wait;  ///< the server asks to wait this long
};

/// Sends `http` and reads the answer to `request`. `at_most` bounds the charge.
[[nodiscard]] Attempt RunAttempt(Transport& transport, const ClientOptions& options,
                                 const ChatRequest& request, const HttpRequest& http,
                                 const Usage& at_most, std::int64_t unix_now,
                                 const std::stop_token& stop);

}  // namespace kernelpro::llm
