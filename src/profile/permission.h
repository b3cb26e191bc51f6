// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpro {

/// Whether the GPU's performance counters may be read here.
struct CounterPermission {
  enum class State : std::uint8_t { kAllowed, kRefused, kUnknown, kNoDriver };
  State state = State::kUnknown;
  std::string why;  ///< one sentence
};

/// Of /proc/driver/nvidia/params: whether the driver keeps the counters for administrators
/// ("RmProfilingAdminOnly: 1"). Nothing when the text does not say.
[[nodiscard]] std::optional<bool> CountersForAdministratorsOnly(std::string_view params);

/// Of /proc/self/status: the mask of effective capabilities ("CapEff:\t000001ffffffffff").
[[nodiscard]] std::optional<std::uint64_t> EffectiveCapabilities(std::string_view status);

/// `uid_map` is the text of /proc/self/uid_map: inside a user name space a capability is not the
/// machine's, and the driver refuses it.
[[nodiscard]] CounterPermission JudgeCounterPermission(std::optional<std::string_view> params,
                                                       std::string_view status,
                                                       std::string_view uid_map);

/// The same, of this process on this machine.
[[nodiscard]] CounterPermission ReadCounterPermission();

/// The three ways to get at the counters, one sentence each.
[[nodiscard]] std::vector<std::string> CounterFixes();

}  // namespace kernelpro
