// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>

#include "base/rng.h"
#include "llm/transport.h"

/// When to ask again, and how long to wait before. Pure but for the Sleeper.
namespace kernelpro::llm {

/// Statuses that another attempt may cure: 408, 409, 425, 429, 5xx.
[[nodiscard]] bool IsPassing(int status);

/// How long the server asks to be left alone: Retry-After-Ms, Retry-After (seconds or an HTTP date)
/// and, with a 429, the time until the used-up one of its limits is whole again
/// (x-ratelimit-reset-*: "6m0s"; anthropic-ratelimit-*-reset: RFC 3339). The longest of them;
/// nothing when it says nothing that can be read. `unix_now` in seconds.
[[nodiscard]] std::optional<std::chrono::milliseconds> ServerWait(const HttpHead& head,
                                                                  std::int64_t unix_now);

/// "1.5", "20ms", "1s", "6m0s", "1h2m": at most a year.
[[nodiscard]] std::optional<std::chrono::milliseconds> ParseDuration(std::string_view text);
/// "Sun, 06 Nov 1994 08:49:37 GMT" as seconds since 1970.
[[nodiscard]] std::optional<std::int64_t> ParseHttpDate(std::string_view text);

/// Random in [0, min(most, base * 2^failures)]: full jitter, so that clients which failed together
/// do not come back together (M. Brooker, "Exponential Backoff And Jitter", AWS 2015).
[[nodiscard]] std::chrono::milliseconds JitterWait(std::uint32_t failures,
                                                   std::chrono::milliseconds base,
                                                   std::chrono::milliseconds most, Rng& rng);

/// Waits. Thread safe.
class Sleeper {
 public:
  virtual ~Sleeper() = default;
  /// False when stop was requested, at once.
  virtual bool Sleep(std::chrono::milliseconds time, const std::stop_token& stop) = 0;
};

[[nodiscard]] std::unique_ptr<Sleeper> SystemSleeper();

}  // namespace kernelpro::llm
