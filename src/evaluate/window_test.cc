// SPDX-License-Identifier: Apache-2.0
#include "evaluate/window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace kernelpro {
namespace {

using ::testing::HasSubstr;

/// What an H200 gives for an honest kernel: waking up costs some 10 us of the referee's clock.
Window Honest(std::uint32_t calls, double each_us) {
  const double all = calls * each_us;
  return {calls, all, all + 7, all + 12};
}

std::vector<Window> Times(std::size_t count, const Window& window) {
  return std::vector<Window>(count, window);
}

TEST(Window, HonestKernelsOfAllLengthsCount) {
  for (const double us : {3.0, 5.0, 30.0, 500.0, 5000.0, 200000.0}) {
    const auto calls = static_cast<std::uint32_t>(us > 3000 ? 1 : 3000 / us);
    EXPECT_EQ(WhyNotCounted(Honest(calls, us)), std::nullopt) << us;
    EXPECT_EQ(WhyNotCounted(Honest(1, us + 2)), std::nullopt) << us;
    EXPECT_EQ(WhyPutOff(Times(14, Honest(calls, us)), Times(5, Honest(1, us + 2))), std::nullopt);
  }
}

TEST(Window, WorkOnAnUnjoinedStreamDoesNotCount) {
  Window w = Honest(100, 30);
  w.stream_us = 250;  // the launches only
  EXPECT_THAT(WhyNotCounted(w).value_or(""), HasSubstr("side stream"));
}

TEST(Window, ForgedEventsDoNotCount) {
  Window w = Honest(100, 30);
  w.stream_us = w.context_us = 0.9 * w.stream_us;
  EXPECT_THAT(WhyNotCounted(w).value_or(""), HasSubstr("referee's clock disagree"));
  for (const double forged : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    w.stream_us = w.context_us = forged;
    EXPECT_THAT(WhyNotCounted(w).value_or(""), HasSubstr("give no time")) << forged;
  }
}

TEST(Window, AnInterruptDoesNotCount) {
  Window w = Honest(100, 30);
  w.wall_us += 1000;
  EXPECT_THAT(WhyNotCounted(w).value_or(""), HasSubstr("referee's clock disagree"));
}

TEST(Window, WorkPutOffIsFoundAndNoiseIsNot) {
  const auto rows = Times(14, Honest(100, 30));
  EXPECT_THAT(WhyPutOff(rows, Times(5, Honest(1, 200))).value_or(""), HasSubstr("put off"));
  // Half of it host work, which overlaps in a row: seen on an H200 with a kernel that calls malloc.
  EXPECT_EQ(WhyPutOff(Times(14, Honest(77, 38.8)), Times(5, Honest(1, 94.6 - 7))), std::nullopt);
  auto noisy = Times(5, Honest(1, 400));
  noisy[3] = Honest(1, 32);
  EXPECT_EQ(WhyPutOff(rows, noisy), std::nullopt);
  EXPECT_EQ(WhyPutOff({}, noisy), std::nullopt);
  EXPECT_EQ(WhyPutOff(rows, {}), std::nullopt);
}

}  // namespace
}  // namespace kernelpro
