// SPDX-License-Identifier: Apache-2.0
#include "profile/power_window.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace kernelpro {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

/// Between looks at the counter near the window's ends: a tenth of its usual step.
constexpr milliseconds kShortBatch{10};
/// Between looks at clocks inside the window: rarely, as each look leaves the GPU idle.
constexpr milliseconds kLongBatch{200};
constexpr milliseconds kSampleBatch{50};
constexpr milliseconds kTemperatureSpan{5000};
constexpr milliseconds kIdlePoll{5};
constexpr milliseconds kLeastSampledWindow{10000};
/// nvmlDeviceGetPowerUsage is an average of the last second.
constexpr milliseconds kPowerAverage{1000};

// nvml.h, nvmlClocksEventReason*.
constexpr std::uint64_t kPowerReasons = 0x04 | 0x80;
constexpr std::uint64_t kThermalReasons = 0x20 | 0x40;

double Seconds(nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

struct Mean {
  double sum = 0;
  double count = 0;

  void Add(double value) {
    if (value >= 0) {
      sum += value;
      count += 1;
    }
  }

  [[nodiscard]] std::optional<double> value() const {
    return count > 0 ? std::optional(sum / count) : std::nullopt;
  }
};

class Window {
 public:
  Window(PowerMeter& meter, PowerLoad& load, const Clock& clock,
         const std::function<void(nanoseconds)>& sleep, const PowerOptions& options,
         const std::stop_token& stop)
      : meter_(meter), load_(load), clock_(clock), sleep_(sleep), options_(options), stop_(stop) {}

  Result<PowerReport> Measure() {
    KP_RETURN_IF_ERROR(WarmUp());
    has_counter_ = meter_.TotalEnergyMj().has_value();
    if (has_counter_) {
      KP_ASSIGN_OR_RETURN(has_counter_, MeasureByCounter());
    }
    if (!has_counter_) {
      KP_RETURN_IF_ERROR(MeasureBySamples());
    }
    KP_RETURN_IF_ERROR(MeasureIdle());
    Describe();
    return std::move(report_);
  }

 private:
  struct Step {
    std::uint64_t millijoules = 0;
    nanoseconds time{0};
  };

  void Put(std::string_view name, double value, const char* unit) {
    report_.metrics["nvml." + std::string(name)] = {value, unit, Provenance::kMeasured};
  }

  /// One batch; its launches count when `counted`.
  Status Batch(nanoseconds about, bool counted) {
    if (stop_.stop_requested()) {
      return Fail(ErrorCode::kCancelled, "the power measurement was interrupted");
    }
    KP_ASSIGN_OR_RETURN(const std::uint64_t launches, load_.Run(about));
    if (launches == 0) {
      return Fail(ErrorCode::kInvalidArgument,
                  "the load to be measured launched nothing; it must run one launch at least");
    }
    report_.launches += counted ? launches : 0;
    return Ok();
  }

  Status WarmUp() {
    const nanoseconds begin = clock_.Now();
    nanoseconds since = begin;
    double then = meter_.Read().temperature_c;
    while (clock_.Now() - begin < options_.warm_up_most) {
      KP_RETURN_IF_ERROR(Batch(kLongBatch, false));
      const nanoseconds now = clock_.Now();
      if (now - since < kTemperatureSpan && then >= 0) {
        continue;
      }
      const double temperature = meter_.Read().temperature_c;
      const bool steady = temperature - then < 1 && then - temperature < 1;
      since = now;
      then = temperature;
      if (steady && now - begin >= options_.warm_up_least) {
        return Ok();
      }
    }
    if (then >= 0) {
      report_.notes.push_back(
          fmt::format("The GPU was still warming up after {:.0f} s of load: the figures belong to "
                      "a cooler card "
                      "than a long run has.",
                      Seconds(options_.warm_up_most)));
    }
    return Ok();
  }

  /// Runs the load in short batches until the counter moves; nothing when it does not.
  Result<std::optional<Step>> NextStep(bool counted) {
    const std::optional<std::uint64_t> before = meter_.TotalEnergyMj();
    const nanoseconds begin = clock_.Now();
    while (before && clock_.Now() - begin < options_.step_patience) {
      KP_RETURN_IF_ERROR(Batch(kShortBatch, counted));
      const std::optional<std::uint64_t> now = meter_.TotalEnergyMj();
      if (!now || *now < *before) {
        break;
      }
      if (*now != *before) {
        return std::optional(Step{*now, clock_.Now()});
      }
    }
    return std::optional<Step>();
  }

  /// False: the counter does not move, or went away.
  Result<bool> MeasureByCounter() {
    KP_ASSIGN_OR_RETURN(const std::optional<Step> first, NextStep(false));
    if (!first) {
      return false;
    }
    while (clock_.Now() - first->time < options_.window) {
      KP_RETURN_IF_ERROR(Batch(kLongBatch, true));
      Look();
    }
    KP_ASSIGN_OR_RETURN(const std::optional<Step> last, NextStep(true));
    if (!last) {
      return false;
    }
    const double seconds = Seconds(last->time - first->time);
    const double joules = static_cast<double>(last->millijoules - first->millijoules) * 1e-3;
    Finish(joules, seconds);
    return true;
  }

  Status MeasureBySamples() {
    report_.launches = 0;
    samples_ = 0;
    changes_ = 0;
    seen_ = 0;
    clock_mhz_ = {};
    Mean power;
    const nanoseconds begin = clock_.Now();
    const nanoseconds length = std::max(options_.window, kLeastSampledWindow);
    while (clock_.Now() - begin < length) {
      KP_RETURN_IF_ERROR(Batch(kSampleBatch, true));
      power.Add(Look());
    }
    const std::optional<double> watts = power.value();
    if (!watts) {
      return Fail(ErrorCode::kUnavailable,
                  "NVML tells neither the energy nor the power of this GPU (a virtual machine or "
                  "its driver may hide them): energy cannot be measured here");
    }
    report_.notes.emplace_back(
        "NVML has no energy counter that moves on this GPU: power samples every 50 ms were "
        "averaged "
        "instead, which may miss short peaks.");
    const double seconds = Seconds(clock_.Now() - begin);
    Finish(*watts * seconds, seconds);
    return Ok();
  }

  void Finish(double joules, double seconds) {
    Put("energy_per_launch", joules * 1e3 / static_cast<double>(report_.launches), "mJ");
    Put("power", joules / seconds, "W");
    Put("window", seconds, "s");
  }

  /// Clock, throttling and power under load; gives the power.
  double Look() {
    const cuda::Reading reading = meter_.Read();
    clock_mhz_.Add(reading.sm_mhz);
    if (reading.throttle_known) {
      const std::uint64_t reasons = reading.throttle & (kPowerReasons | kThermalReasons);
      changes_ += samples_ > 0 && reasons != last_ ? 1 : 0;
      last_ = reasons;
      seen_ |= reading.throttle;
      ++samples_;
    }
    return reading.power_w;
  }

  /// The first reading below the old one, or none within the patience, ends it.
  std::optional<Step> IdleStep() {
    const std::optional<std::uint64_t> before = meter_.TotalEnergyMj();
    const nanoseconds begin = clock_.Now();
    while (before && !stop_.stop_requested() && clock_.Now() - begin < options_.step_patience) {
      sleep_(kIdlePoll);
      const std::optional<std::uint64_t> now = meter_.TotalEnergyMj();
      if (now && *now > *before) {
        return Step{*now, clock_.Now()};
      }
    }
    return std::nullopt;
  }

  /// Right after the load, with clocks still up. The first step ends with the load's energy in it
  /// and is not counted.
  Status MeasureIdle() {
    const nanoseconds begin = clock_.Now();
    const std::optional<Step> first = has_counter_ ? IdleStep() : std::nullopt;
    Mean power;
    while (clock_.Now() - begin < options_.idle) {
      if (stop_.stop_requested()) {
        return Fail(ErrorCode::kCancelled, "the power measurement was interrupted");
      }
      sleep_(kSampleBatch);
      if (!has_counter_ && clock_.Now() - begin > kPowerAverage) {
        power.Add(meter_.Read().power_w);
      }
    }
    const std::optional<Step> last = first ? IdleStep() : std::nullopt;
    if (first && last) {
      Put("idle_hot_power",
          static_cast<double>(last->millijoules - first->millijoules) * 1e-3 /
              Seconds(last->time - first->time),
          "W");
    } else if (const std::optional<double> watts = power.value()) {
      Put("idle_hot_power", *watts, "W");
    }
    return Ok();
  }

  void Describe() {
    if (const std::optional<double> mhz = clock_mhz_.value()) {
      Put("sm_clock", *mhz * 1e6, "hz");
    }
    if (const double most = meter_.MaxSmMhz(); most >= 0) {
      Put("sm_clock_max", most * 1e6, "hz");
    }
    if (samples_ == 0) {
      return;
    }
    Put("power_capped", (seen_ & kPowerReasons) != 0 ? 1 : 0, "");
    Put("thermal", (seen_ & kThermalReasons) != 0 ? 1 : 0, "");
    for (const std::string& reason : cuda::ThrottleReasons(seen_)) {
      report_.notes.push_back(fmt::format("Under load NVML named this limit: {}.", reason));
    }
    if (changes_ > 0) {
      report_.notes.push_back(fmt::format(
          "The limit came and went {} times within the window: compare these figures with no other "
          "run's.",
          changes_));
    }
  }

  PowerMeter& meter_;
  PowerLoad& load_;
  const Clock& clock_;
  const std::function<void(nanoseconds)>& sleep_;
  const PowerOptions& options_;
  const std::stop_token& stop_;
  PowerReport report_;
  bool has_counter_ = false;
  Mean clock_mhz_;
  std::uint64_t seen_ = 0, last_ = 0;
  int samples_ = 0, changes_ = 0;
};

}  // namespace

Result<PowerReport> MeasurePower(PowerMeter& meter, PowerLoad& load, const Clock& clock,
                                 const std::function<void(nanoseconds)>& sleep,
                                 const PowerOptions& options, const std::stop_token& stop) {
  return Window(meter, load, clock, sleep, options, stop).Measure();
}

}  // namespace kernelpro
