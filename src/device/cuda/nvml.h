// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kernelpro::cuda {

/// What the management library says of the GPU at one moment. A negative figure: not told.
struct Reading {
  double sm_mhz = -1, memory_mhz = -1, temperature_c = -1, power_w = -1;
  std::uint64_t throttle = 0;   ///< bits of nvmlClocksEventReason*
  bool throttle_known = false;  ///< false: zero above means nothing
};

/// Reasons that slow a kernel down by surprise; "idle", application and display clocks are not.
[[nodiscard]] std::vector<std::string> ThrottleReasons(std::uint64_t bits);
/// Reasons after which a sample is thrown away: the hardware's own brakes. A power cap in software
/// is the normal state of a busy GPU: told, not discarded.
[[nodiscard]] bool SpoilsSample(std::uint64_t bits);

/// NVML, opened at run time (libnvidia-ml.so.1). Every function answers "not told" where the
/// library is missing or refuses: measuring goes on, and the record says what is not known.
class Nvml {
 public:
  /// `bus_id` as the driver writes it: "0000:65:00.0".
  [[nodiscard]] static std::unique_ptr<Nvml> Open(const std::string& bus_id);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// Empty when it works, else why not.
  [[nodiscard]] const std::string& missing() const { return missing_; }

  [[nodiscard]] const std::string& driver_version() const { return driver_version_; }

  [[nodiscard]] Reading Read() const;
  /// What the whole board used since the driver was loaded, in mJ. Moves in steps (about 100 ms on
  /// data-centre cards), and asking takes up to some ms. Nothing: not supported here.
  [[nodiscard]] std::optional<std::uint64_t> TotalEnergyMj() const;
  /// The highest SM clock that the GPU can have; negative: not told.
  [[nodiscard]] double MaxSmMhz() const;
  /// Processes with a compute context on the GPU, as the library numbers them.
  [[nodiscard]] std::vector<pid_t> ComputeProcesses() const;

 private:
  struct Functions;

  Nvml();

  std::unique_ptr<Functions> functions_;
  void* device_ = nullptr;
  std::string missing_;
  std::string driver_version_;
};

}  // namespace kernelpro::cuda
