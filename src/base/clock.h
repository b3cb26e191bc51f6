// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

namespace kernelpro {

/// Where time comes from. Passed in, so that tests and replays own it.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Monotonic; only differences mean anything.
  [[nodiscard]] virtual std::chrono::nanoseconds Now() const = 0;
  /// Seconds since 1970, for records that people read.
  [[nodiscard]] virtual std::int64_t UnixSeconds() const = 0;
};

class SystemClock final : public Clock {
 public:
  [[nodiscard]] std::chrono::nanoseconds Now() const override {
    return std::chrono::steady_clock::now().time_since_epoch();
  }

  [[nodiscard]] std::int64_t UnixSeconds() const override {
    return std::chrono::duration_cast<std::chrono::seconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
};

/// What parts of a piece of work cost. For reports only: nothing may depend on it.
class Stopwatch {
 public:
  /// Milliseconds since the last lap, or since it was made.
  [[nodiscard]] double Lap() {
    const auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double, std::milli>(now - std::exchange(last_, now)).count();
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace kernelpro
