// SPDX-License-Identifier: Apache-2.0
#include "llm/retry.h"

#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <stop_token>
#include <string>
#include <thread>

namespace kernelpro::llm {
namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

// 784111777 is 1994-11-06 08:49:37 UTC (the example of RFC 9110).
constexpr std::int64_t kNow = 784'111'777;

std::optional<milliseconds> Wait(int status, Headers headers) {
  return ServerWait({status, std::move(headers)}, kNow);
}

TEST(ServerWaits, RetryAfterInItsForms) {
  EXPECT_EQ(Wait(429, {{"Retry-After", "7"}}), 7s);
  EXPECT_EQ(Wait(503, {{"retry-after", "0"}}), 0s);
  EXPECT_EQ(Wait(503, {{"RETRY-AFTER", "1.5"}}), 1500ms);
  EXPECT_EQ(Wait(503, {{"Retry-After", "Sun, 06 Nov 1994 08:50:37 GMT"}}), 60s);
  EXPECT_EQ(Wait(503, {{"Retry-After", "Sun, 06 Nov 1994 08:40:37 GMT"}}), 0s);  // has passed
  EXPECT_EQ(Wait(503, {{"retry-after-ms", "250"}}), 250ms);
  EXPECT_EQ(Wait(503, {}), std::nullopt);
}

TEST(ServerWaits, NonsenseIsNoWait) {
  for (const char* text : {"", "soon", "-5", "nan", "inf", "Sun, 41 Nov 1994 08:49:37 GMT",
                           "Sun, 06 Foo 1994 08:49:37 GMT"}) {
    EXPECT_EQ(Wait(503, {{"Retry-After", text}}), std::nullopt) << text;
  }
  EXPECT_LE(*Wait(503, {{"Retry-After", "1e300"}}), 366 * 24h);
}

TEST(ServerWaits, ResetOfTheLimitThatIsUsedUp) {
  const Headers headers = {{"x-ratelimit-remaining-requests", "0"},
                           {"x-ratelimit-reset-requests", "2s"},
                           {"x-ratelimit-remaining-tokens", "149984"},
                           {"x-ratelimit-reset-tokens", "6m0s"}};
  EXPECT_EQ(Wait(429, headers), 2s);
  EXPECT_EQ(Wait(500, headers), std::nullopt);  // limits are why only with a 429
  EXPECT_EQ(Wait(429, {{"anthropic-ratelimit-tokens-remaining", "0"},
                       {"anthropic-ratelimit-tokens-reset", "1994-11-06T08:50:07Z"}}),
            30s);
  EXPECT_EQ(Wait(429, {{"x-ratelimit-reset-requests", "2s"}, {"Retry-After", "9"}}), 9s);
}

TEST(Durations, AsServersWriteThem) {
  EXPECT_EQ(ParseDuration("20ms"), 20ms);
  EXPECT_EQ(ParseDuration("1s"), 1s);
  EXPECT_EQ(ParseDuration("6m0s"), 6min);
  EXPECT_EQ(ParseDuration("1h2m3.5s"), 1h + 2min + 3500ms);
  EXPECT_EQ(ParseDuration("1.5"), 1500ms);
  for (const char* text : {"1x", "s", "1s2", "-1s", "1.2.3s"}) {
    EXPECT_EQ(ParseDuration(text), std::nullopt) << text;
  }
}

TEST(Jitter, FullRangeUnderADoublingLimit) {
  Rng rng(7);
  for (std::uint32_t failures = 0; failures < 64; ++failures) {
    const double limit = failures > 6 ? 60'000 : 1000.0 * (1U << failures);
    milliseconds least = 1h;
    milliseconds most{0};
    for (int i = 0; i < 400; ++i) {
      const milliseconds wait = JitterWait(failures, 1s, 60s, rng);
      least = std::min(least, wait);
      most = std::max(most, wait);
    }
    EXPECT_LE(static_cast<double>(most.count()), limit);
    EXPECT_GT(static_cast<double>(most.count()), 0.9 * std::min(limit, 60'000.0));
    EXPECT_LT(static_cast<double>(least.count()), 0.1 * limit);
  }
}

TEST(Statuses, PassingOnes) {
  for (const int status : {408, 409, 425, 429, 500, 502, 503, 504, 524, 529}) {
    EXPECT_TRUE(IsPassing(status)) << status;
  }
  for (const int status : {200, 301, 400, 401, 402, 403, 404, 413, 422}) {
    EXPECT_FALSE(IsPassing(status)) << status;
  }
}

TEST(Sleepers, StopEndsAWait) {
  const auto sleeper = SystemSleeper();
  std::stop_source stop;
  EXPECT_TRUE(sleeper->Sleep(1ms, stop.get_token()));
  std::jthread stopper([&] { stop.request_stop(); });
  EXPECT_FALSE(sleeper->Sleep(1h, stop.get_token()));  // hangs when it is not cancelled
}

}  // namespace
}  // namespace kernelpro::llm
