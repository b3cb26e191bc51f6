// SPDX-License-Identifier: Apache-2.0
#include "profile/permission.h"

#include <charconv>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace kernelpro {
namespace {

constexpr unsigned kSysAdmin = 21;  ///< CAP_SYS_ADMIN

/// The rest of the line that begins with `key`.
std::optional<std::string_view> ValueOf(std::string_view text, std::string_view key) {
  for (const std::string_view line : Lines(text)) {
    if (line.starts_with(key)) {
      return Trim(line.substr(key.size()));
    }
  }
  return std::nullopt;
}

/// Numbers inside are those outside: "0 0 4294967295".
bool IsWholeMachine(std::string_view uid_map) {
  std::string plain;
  for (const char c : Trim(uid_map)) {
    const bool blank = c == ' ' || c == '\t';
    if (!blank || (!plain.empty() && plain.back() != ' ')) {
      plain += blank ? ' ' : c;
    }
  }
  return plain.empty() || plain == "0 0 4294967295";
}

/// Files of /proc have no size, so they are read to their end.
std::optional<std::string> ReadProc(const char* path) {
  std::ifstream in(path);
  if (!in) {
    return std::nullopt;
  }
  return std::string(std::istreambuf_iterator<char>(in), {});
}

}  // namespace

std::optional<bool> CountersForAdministratorsOnly(std::string_view params) {
  const std::optional<std::string_view> value = ValueOf(params, "RmProfilingAdminOnly:");
  if (value == "0" || value == "1") {
    return value == "1";
  }
  return std::nullopt;
}

std::optional<std::uint64_t> EffectiveCapabilities(std::string_view status) {
  const std::optional<std::string_view> text = ValueOf(status, "CapEff:");
  if (!text || text->empty()) {
    return std::nullopt;
  }
  std::uint64_t mask = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), mask, 16);
  if (error != std::errc() || end != text->data() + text->size()) {
    return std::nullopt;
  }
  return mask;
}

CounterPermission JudgeCounterPermission(std::optional<std::string_view> params,
                                         std::string_view status, std::string_view uid_map) {
  using State = CounterPermission::State;
  if (!params) {
    return {State::kNoDriver,
            "no NVIDIA driver runs here (/proc/driver/nvidia/params is not there)"};
  }
  const std::optional<bool> restricted = CountersForAdministratorsOnly(*params);
  if (restricted == false) {
    return {State::kAllowed, "the driver lets every user read them (RmProfilingAdminOnly: 0)"};
  }
  const std::optional<std::uint64_t> capabilities = EffectiveCapabilities(status);
  if (!capabilities || !restricted) {
    return {State::kUnknown, restricted
                                 ? "/proc/self/status does not name this process's capabilities"
                                 : "the driver does not say who may read them (no "
                                   "RmProfilingAdminOnly in /proc/driver/nvidia/params)"};
  }
  if (((*capabilities >> kSysAdmin) & 1U) == 0) {
    return {State::kRefused,
            "the driver keeps them for administrators (RmProfilingAdminOnly: 1) and this process "
            "has no CAP_SYS_ADMIN"};
  }
  if (!IsWholeMachine(uid_map)) {
    return {State::kUnknown,
            "the driver keeps them for administrators and this process is one only inside its user "
            "name space: a try will tell"};
  }
  return {State::kAllowed, "the driver keeps them for administrators, and this process is one"};
}

CounterPermission ReadCounterPermission() {
  const std::optional<std::string> params = ReadProc("/proc/driver/nvidia/params");
  return JudgeCounterPermission(params ? std::optional<std::string_view>(*params) : std::nullopt,
                                ReadProc("/proc/self/status").value_or(""),
                                ReadProc("/proc/self/uid_map").value_or(""));
}

std::vector<std::string> CounterFixes() {
  return {
      "Run as root, or give the container the capability: docker run --cap-add=SYS_ADMIN (in "
      "Kubernetes securityContext.capabilities.add: [SYS_ADMIN]).",
      "Open the counters to every user: put \"options nvidia "
      "NVreg_RestrictProfilingToAdminUsers=0\" "
      "into /etc/modprobe.d/nvidia.conf and reboot, or unload the module and run modprobe nvidia "
      "NVreg_RestrictProfilingToAdminUsers=0.",
      "In a cloud where neither is yours to do: ask the provider to open them, or take an instance "
      "type that has them (bare metal or a whole GPU rather than a share)."};
}

}  // namespace kernelpro
