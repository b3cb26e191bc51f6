// SPDX-License-Identifier: Apache-2.0
#include "profile/power_window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelpro {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

class FakeClock final : public Clock {
 public:
  [[nodiscard]] nanoseconds Now() const override { return now; }

  [[nodiscard]] std::int64_t UnixSeconds() const override { return 0; }

  nanoseconds now{0};
};

/// A card of 500 W under load and 120 W without, whose counter moves every 100 ms. Asking costs 2
/// ms.
class FakeCard final : public PowerMeter, public PowerLoad {
 public:
  explicit FakeCard(FakeClock& clock) : clock_(clock) {}

  void Pass(nanoseconds time, double watts) {
    millijoules_ += watts * std::chrono::duration<double, std::milli>(time).count();
    last_watts_ = watts;
    clock_.now += time;
    while (clock_.now - told_at_ >= step) {
      told_at_ += step;
      told_ = static_cast<std::uint64_t>(millijoules_);
    }
  }

  Result<std::uint64_t> Run(nanoseconds about) override {
    if (fails_after != 0 && ++runs_ >= fails_after) {
      return Fail(ErrorCode::kToolFailed, "the kernel crashed");
    }
    const auto launches =
        static_cast<std::uint64_t>(std::max<std::int64_t>(1, about / launch_time));
    Pass(launch_time * launches, watts_under_load);
    temperature += clock_.now < warm_at ? 0.3 : 0;
    return launch_nothing ? 0 : launches;
  }

  cuda::Reading Read() override {
    Pass(milliseconds(2), 120);
    cuda::Reading reading;
    if (nothing_told) {
      return reading;
    }
    reading.sm_mhz = 1755;
    reading.temperature_c = temperature;
    reading.power_w = last_watts_ == 120 && idle_reading ? 120 : watts_under_load;
    reading.throttle = flickers && ++reads_ % 2 == 0 ? 0 : throttle;
    reading.throttle_known = true;
    return reading;
  }

  std::optional<std::uint64_t> TotalEnergyMj() override {
    Pass(milliseconds(2), 120);
    if (no_counter) {
      return std::nullopt;
    }
    return frozen_counter ? 5 : 1'000'000'000'000ULL + told_;
  }

  double MaxSmMhz() override { return nothing_told ? -1 : 1980; }

  nanoseconds step = milliseconds(100), launch_time = std::chrono::microseconds(500);
  nanoseconds warm_at{0};
  double watts_under_load = 500, temperature = 40;
  std::uint64_t throttle = 0;
  int fails_after = 0;
  bool no_counter = false, frozen_counter = false, nothing_told = false, launch_nothing = false,
       flickers = false, idle_reading = false;

 private:
  FakeClock& clock_;
  double millijoules_ = 0, last_watts_ = 0;
  std::uint64_t told_ = 0;
  nanoseconds told_at_{0};
  int runs_ = 0, reads_ = 0;
};

class PowerWindow : public testing::Test {
 protected:
  Result<PowerReport> Measure(const std::stop_token& stop = {}) {
    const auto sleep = [&](nanoseconds time) { card.Pass(time, 120); };
    return MeasurePower(card, card, clock, sleep, options, stop);
  }

  static double At(const PowerReport& report, const std::string& name) {
    const auto found = report.metrics.find("nvml." + name);
    if (found == report.metrics.end()) {
      ADD_FAILURE() << name << " is absent";
      return -1;
    }
    EXPECT_EQ(found->second.provenance, Provenance::kMeasured);
    return found->second.value;
  }

  FakeClock clock;
  FakeCard card{clock};
  PowerOptions options;
};

TEST_F(PowerWindow, EnergyOfOneLaunch) {
  const auto report = Measure();
  ASSERT_TRUE(report.ok()) << report.error().message;
  // 0.5 ms at 500 W; looking at NVML lets the card rest for about 1 % of the time.
  EXPECT_NEAR(At(*report, "energy_per_launch"), 250, 4);
  EXPECT_NEAR(At(*report, "power"), 500, 10);
  EXPECT_NEAR(At(*report, "idle_hot_power"), 120, 2);
  EXPECT_GE(At(*report, "window"), 5);
  EXPECT_LT(At(*report, "window"), 5.5);
  EXPECT_EQ(At(*report, "sm_clock"), 1755e6);
  EXPECT_EQ(At(*report, "sm_clock_max"), 1980e6);
  EXPECT_EQ(At(*report, "power_capped"), 0);
  EXPECT_EQ(At(*report, "thermal"), 0);
  EXPECT_THAT(report->notes, IsEmpty());
  EXPECT_GT(report->launches, 9000U);
}

TEST_F(PowerWindow, SeesADifferenceOfFourPercent) {
  const auto base = Measure();
  card.watts_under_load = 480;
  const auto better = Measure();
  ASSERT_TRUE(base.ok() && better.ok());
  EXPECT_NEAR(At(*better, "energy_per_launch") / At(*base, "energy_per_launch"), 0.96, 0.01);
}

TEST_F(PowerWindow, NoCounterMeansSamplesAndANote) {
  card.no_counter = true;
  card.idle_reading = true;
  const auto report = Measure();
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_GE(At(*report, "window"), 10);
  EXPECT_NEAR(At(*report, "idle_hot_power"), 120, 1e-9);
  EXPECT_THAT(report->notes, Contains(HasSubstr("no energy counter")));
}

TEST_F(PowerWindow, ACounterThatNeverMovesIsNone) {
  card.frozen_counter = true;
  const auto report = Measure();
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_NEAR(At(*report, "power"), 500, 1e-9);
  EXPECT_THAT(report->notes, Contains(HasSubstr("no energy counter")));
}

TEST_F(PowerWindow, NothingIsInvented) {
  card.no_counter = true;
  card.nothing_told = true;
  const auto none = Measure();
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::kUnavailable);
  card.no_counter = false;  // energy alone
  const auto some = Measure();
  ASSERT_TRUE(some.ok());
  EXPECT_FALSE(some->metrics.contains("nvml.sm_clock"));
  EXPECT_FALSE(some->metrics.contains("nvml.sm_clock_max"));
  EXPECT_FALSE(some->metrics.contains("nvml.power_capped"));
  EXPECT_TRUE(some->metrics.contains("nvml.energy_per_launch"));
}

TEST_F(PowerWindow, ThrottlingIsTold) {
  card.throttle = 0x04;
  const auto capped = Measure();
  ASSERT_TRUE(capped.ok());
  EXPECT_EQ(At(*capped, "power_capped"), 1);
  EXPECT_EQ(At(*capped, "thermal"), 0);
  EXPECT_THAT(capped->notes, Contains(HasSubstr("software power cap")));
  card.throttle = 0x40;
  card.flickers = true;
  const auto hot = Measure();
  ASSERT_TRUE(hot.ok());
  EXPECT_EQ(At(*hot, "thermal"), 1);
  EXPECT_EQ(At(*hot, "power_capped"), 0);
  EXPECT_THAT(hot->notes, Contains(HasSubstr("came and went")));
  card.throttle = 0x01;  // "idle" is no limit
  EXPECT_THAT(Measure()->notes, IsEmpty());
}

TEST_F(PowerWindow, WarmsUpUntilTheTemperatureStands) {
  card.warm_at = std::chrono::seconds(12);
  const auto warm = Measure();
  ASSERT_TRUE(warm.ok());
  EXPECT_THAT(warm->notes, IsEmpty());
  EXPECT_GT(clock.now, std::chrono::seconds(12 + 5));
  card.warm_at = std::chrono::hours(1);
  EXPECT_THAT(Measure()->notes, Contains(HasSubstr("still warming up")));
}

TEST_F(PowerWindow, FailuresOfTheLoad) {
  card.fails_after = 30;
  const auto crashed = Measure();
  ASSERT_FALSE(crashed.ok());
  EXPECT_EQ(crashed.error().message, "the kernel crashed");
  card.fails_after = 0;
  card.launch_nothing = true;
  EXPECT_EQ(Measure().error().code, ErrorCode::kInvalidArgument);
  card.launch_nothing = false;
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(Measure(stop.get_token()).error().code, ErrorCode::kCancelled);
}

}  // namespace
}  // namespace kernelpro
