// SPDX-License-Identifier: Apache-2.0
#include "evaluate/window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kernelpro {
namespace {

using ::testing::HasSubstr;

/// What an H200 gives for an honest kernel: waking up costs some 10 us of the referee's clock.
std::vector<Window> Honest(std::uint32_t calls, double each_us, std::size_t count) {
  const double all = calls * each_us;
  return std::vector<Window>(count, Window{calls, all, all + 7, all + 12});
}

std::string Why(const std::vector<Window>& rows, const std::vector<Window>& singles) {
  return WhyNotBelieved(rows, singles).value_or("");
}

TEST(Window, HonestKernelsOfAllLengthsAreBelieved) {
  for (const double us : {3.0, 5.0, 30.0, 500.0, 5000.0, 200000.0}) {
    const auto calls = static_cast<std::uint32_t>(us > 3000 ? 1 : 3000 / us);
    EXPECT_EQ(Why(Honest(calls, us, 14), Honest(1, us + 2, 5)), "") << us;
  }
  EXPECT_EQ(Why({}, {}), "");
}

TEST(Window, AFewBadWindowsAreNoise) {
  auto rows = Honest(100, 30, 14);
  for (std::size_t i = 0; i < 7; ++i) {
    rows[i].wall_us *= 3;
  }
  EXPECT_EQ(Why(rows, Honest(1, 30, 5)), "");
  rows[7].wall_us *= 3;
  EXPECT_THAT(Why(rows, Honest(1, 30, 5)), HasSubstr("referee's clock disagree"));
}

TEST(Window, WorkOnAnUnjoinedStreamIsFound) {
  auto rows = Honest(100, 30, 14);
  for (Window& w : rows) {
    w.stream_us = 250;  // the launches only
  }
  EXPECT_THAT(Why(rows, Honest(1, 30, 5)), HasSubstr("side stream"));
}

TEST(Window, ForgedEventsAreFound) {
  auto rows = Honest(100, 30, 14);
  for (Window& w : rows) {
    w.stream_us = w.context_us = 0.9 * w.stream_us;
  }
  EXPECT_THAT(Why(rows, Honest(1, 30, 5)), HasSubstr("referee's clock disagree"));
  for (Window& w : rows) {
    w.stream_us = w.context_us = 0;
  }
  EXPECT_THAT(Why(rows, {}), HasSubstr("give no time"));
}

TEST(Window, WorkPutOffIsFound) {
  EXPECT_THAT(Why(Honest(100, 30, 14), Honest(1, 200, 5)), HasSubstr("put off"));
  EXPECT_EQ(Why(Honest(100, 30, 14), Honest(1, 45, 5)), "");
}

}  // namespace
}  // namespace kernelpro
