// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kernelpro/profile.h"

/// The profile format: what `kernelpro profile --json` prints and an external tool reads. Fields,
/// units and defaults: docs/profile_format.md.
namespace kernelpro {

/// The version that ProfileJson() writes, under "kernelpro_profile".
inline constexpr int kProfileFormat = 1;

/// One line, without a line end. Lossless, but for what JSON cannot hold: a metric that is not a
/// finite number is left out (and named in the kernel's "missing"), other such numbers are null,
/// and bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string ProfileJson(const Profile& profile);

/// The value of "kernels" alone: an array, one object a launch.
[[nodiscard]] std::string KernelsJson(const Profile& profile);

/// {name: {value, unit, provenance}}
[[nodiscard]] std::string MetricsJson(const std::map<std::string, Metric>& metrics);

/// Reads what ProfileJson() wrote, or somebody else in its place: fields that are absent have their
/// defaults, unknown ones are skipped. Any byte sequence is safe. Errors are kParse with
/// "<label>:<line>: what" for text that is not JSON, else "<label>: <path>: what", where the path
/// is "kernels[3].metrics.sm__cycles_elapsed.max.value".
[[nodiscard]] Result<Profile> ParseProfileJson(std::string_view text, std::string_view label);

/// "kernel", "copy", "set", "launch", "sync", "allocation", "api", "graph", "compile".
[[nodiscard]] std::string_view Name(TimelineEvent::Kind kind);

}  // namespace kernelpro
