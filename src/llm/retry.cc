// SPDX-License-Identifier: Apache-2.0
#include "llm/retry.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/text.h"

namespace kernelpro::llm {
namespace {

using std::chrono::milliseconds;

constexpr double kLongestMs = 365.0 * 24 * 3600 * 1000;

std::optional<milliseconds> Bounded(double ms) {
  if (!std::isfinite(ms) || ms < 0) {
    return std::nullopt;
  }
  return milliseconds(static_cast<std::int64_t>(std::ceil(std::min(ms, kLongestMs))));
}

std::optional<std::int64_t> UnixTime(int year, unsigned month, unsigned day, int hour, int minute,
                                     int second) {
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                         std::chrono::day(day)};
  if (!date.ok() || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 ||
      second > 60) {
    return std::nullopt;
  }
  const auto days = std::chrono::sys_days(date).time_since_epoch().count();
  return std::int64_t{days} * 86'400 + hour * 3600 + minute * 60 + second;
}

/// "2026-11-30T16:34:09Z", fractions and other zones are not sent.
std::optional<std::int64_t> ParseRfc3339(const std::string& text) {
  int year = 0, hour = 0, minute = 0, second = 0;
  unsigned month = 0, day = 0;
  if (std::sscanf(text.c_str(), "%4d-%2u-%2uT%2d:%2d:%2d", &year, &month, &day, &hour, &minute,
                  &second) != 6) {
    return std::nullopt;
  }
  return UnixTime(year, month, day, hour, minute, second);
}

std::optional<milliseconds> Until(std::optional<std::int64_t> when, std::int64_t now) {
  if (!when) {
    return std::nullopt;
  }
  return Bounded(static_cast<double>(std::max<std::int64_t>(0, *when - now)) * 1000);
}

std::optional<milliseconds> RetryAfter(const Headers& headers, std::int64_t now) {
  const auto text = FindHeader(headers, "retry-after");
  if (!text) {
    return std::nullopt;
  }
  double seconds = 0;
  if (ParseDouble(*text, &seconds)) {
    return Bounded(seconds * 1000);
  }
  return Until(ParseHttpDate(*text), now);
}

/// The limit of this name when nothing is left of it.
std::optional<milliseconds> UsedUp(const Headers& headers, std::string_view family,
                                   std::string_view limit, bool dated, std::int64_t now) {
  const std::string left = std::string(family) + (dated ? std::string(limit) + "-remaining"
                                                        : "remaining-" + std::string(limit));
  const std::string reset =
      std::string(family) + (dated ? std::string(limit) + "-reset" : "reset-" + std::string(limit));
  const auto value = FindHeader(headers, reset);
  if (!value || FindHeader(headers, left).value_or("0") != "0") {
    return std::nullopt;
  }
  return dated ? Until(ParseRfc3339(*value), now) : ParseDuration(*value);
}

class RealSleeper : public Sleeper {
 public:
  bool Sleep(milliseconds time, const std::stop_token& stop) override {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any never;
    never.wait_for(lock, stop, time, [] { return false; });
    return !stop.stop_requested();
  }
};

}  // namespace

bool IsPassing(int status) {
  return status == 408 || status == 409 || status == 425 || status == 429 ||
         (status >= 500 && status <= 599);
}

std::optional<milliseconds> ParseDuration(std::string_view text) {
  double number = 0;
  if (ParseDouble(text, &number)) {
    return Bounded(number * 1000);
  }
  double total = 0;
  while (!text.empty()) {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
    if (!ParseDouble(text.substr(0, digits), &number)) {
      return std::nullopt;
    }
    text.remove_prefix(digits);
    const std::size_t letters = std::min(text.find_first_of("0123456789"), text.size());
    const std::string_view unit = text.substr(0, letters);
    text.remove_prefix(letters);
    const double factor = unit == "ms"  ? 1
                          : unit == "s" ? 1000
                          : unit == "m" ? 60'000
                          : unit == "h" ? 3'600'000
                          : unit == "d" ? 86'400'000
                                        : -1;
    if (factor < 0) {
      return std::nullopt;
    }
    total += number * factor;
  }
  return Bounded(total);
}

std::optional<std::int64_t> ParseHttpDate(std::string_view text) {
  constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::string copy(Trim(text));
  char name[4] = "";
  int year = 0, hour = 0, minute = 0, second = 0;
  unsigned day = 0;
  if (std::sscanf(copy.c_str(), "%*3[A-Za-z], %2u %3[A-Za-z] %4d %2d:%2d:%2d GMT", &day, name,
                  &year, &hour, &minute, &second) != 6) {
    return std::nullopt;
  }
  const auto* const month = std::ranges::find(kMonths, std::string_view(name));
  if (month == kMonths.end()) {
    return std::nullopt;
  }
  return UnixTime(year, static_cast<unsigned>(month - kMonths.begin()) + 1, day, hour, minute,
                  second);
}

std::optional<milliseconds> ServerWait(const HttpHead& head, std::int64_t unix_now) {
  std::optional<milliseconds> longest = RetryAfter(head.headers, unix_now);
  const auto take = [&](std::optional<milliseconds> wait) {
    if (wait && (!longest || *wait > *longest)) {
      longest = wait;
    }
  };
  double ms = 0;
  if (const auto text = FindHeader(head.headers, "retry-after-ms");
      text && ParseDouble(*text, &ms)) {
    take(Bounded(ms));
  }
  if (head.status == 429) {
    for (const std::string_view limit : {"requests", "tokens"}) {
      take(UsedUp(head.headers, "x-ratelimit-", limit, false, unix_now));
    }
    for (const std::string_view limit : {"requests", "tokens", "input-tokens", "output-tokens"}) {
      take(UsedUp(head.headers, "anthropic-ratelimit-", limit, true, unix_now));
    }
  }
  return longest;
}

milliseconds JitterWait(std::uint32_t failures, milliseconds base, milliseconds most, Rng& rng) {
  const double limit =
      std::min(static_cast<double>(most.count()),
               std::ldexp(static_cast<double>(base.count()),
                          static_cast<int>(std::min<std::uint32_t>(failures, 40))));
  return milliseconds(static_cast<std::int64_t>(rng.Uniform() * std::max(0.0, limit)));
}

std::unique_ptr<Sleeper> SystemSleeper() {
  return std::make_unique<RealSleeper>();
}

}  // namespace kernelpro::llm
