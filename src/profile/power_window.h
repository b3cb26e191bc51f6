// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "device/cuda/nvml.h"
#include "kernelpro/profile.h"

namespace kernelpro {

/// What is asked of NVML; a fake stands in for it in tests.
class PowerMeter {
 public:
  virtual ~PowerMeter() = default;
  [[nodiscard]] virtual cuda::Reading Read() = 0;
  /// mJ since the driver was loaded; nothing: not supported.
  [[nodiscard]] virtual std::optional<std::uint64_t> TotalEnergyMj() = 0;
  /// Negative: not told.
  [[nodiscard]] virtual double MaxSmMhz() = 0;
};

/// The real one. Refers to `nvml`, which must outlive it.
class NvmlMeter final : public PowerMeter {
 public:
  explicit NvmlMeter(const cuda::Nvml& nvml) : nvml_(nvml) {}

  [[nodiscard]] cuda::Reading Read() override { return nvml_.Read(); }

  [[nodiscard]] std::optional<std::uint64_t> TotalEnergyMj() override {
    return nvml_.TotalEnergyMj();
  }

  [[nodiscard]] double MaxSmMhz() override { return nvml_.MaxSmMhz(); }

 private:
  const cuda::Nvml& nvml_;
};

/// What is to be measured: one kernel or call, without a profiler attached, on inputs like the
/// task's (constant inputs use far less power).
class PowerLoad {
 public:
  virtual ~PowerLoad() = default;
  /// Launches back to back for about so long, waits for the end, and says how many launches
  /// completed (at least one).
  [[nodiscard]] virtual Result<std::uint64_t> Run(std::chrono::nanoseconds about) = 0;
};

struct PowerOptions {
  std::chrono::milliseconds window{5000};  ///< at least; 10 s for differences below 3 %
  /// Warm-up ends when the temperature moved less than 1 C in 5 s, between these bounds.
  std::chrono::milliseconds warm_up_least{5000}, warm_up_most{30000};
  std::chrono::milliseconds idle{2000};  ///< for the idle-hot power, right after the load
  /// A counter that has not moved for so long under load is taken as not supported.
  std::chrono::milliseconds step_patience{2000};
};

struct PowerReport {
  /// nvml.energy_per_launch(mJ), nvml.power(W), nvml.idle_hot_power(W), nvml.sm_clock(hz: mean
  /// under load), nvml.sm_clock_max(hz), nvml.power_capped(0/1: software power cap or hardware
  /// power brake seen under load), nvml.thermal(0/1), nvml.window(s). What NVML does not tell is
  /// absent. All measured; board power, with memory and voltage regulators.
  std::map<std::string, Metric> metrics;
  std::uint64_t launches = 0;
  /// What makes the figures weaker: no counter, throttling, a clock that moved. Sentences.
  std::vector<std::string> notes;
};

/// Energy of one launch, from one step of NVML's counter to a later one while the load runs without
/// a pause between: up to two steps of error are avoided that way. Where there is no counter, power
/// samples every 50 ms over at least 10 s are averaged, and a note says so. Never touches clocks or
/// power limits. `sleep` lets time pass on `clock`. Errors: the load's; kUnavailable when NVML
/// tells neither energy nor power; kCancelled.
[[nodiscard]] Result<PowerReport> MeasurePower(
    PowerMeter& meter, PowerLoad& load, const Clock& clock,
    const std::function<void(std::chrono::nanoseconds)>& sleep, const PowerOptions& options,
    const std::stop_token& stop = {});

}  // namespace kernelpro
