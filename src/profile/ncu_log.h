// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace kernelpro {

/// Why a log of Nsight Compute holds no profile, and what to do: kUnavailable when the user may not
/// read the counters, kToolFailed when the application failed, else kNotFound: the profile went
/// into a report file that the log names, or `otherwise`.
[[nodiscard]] Error WhyNoProfile(std::string_view text, std::string_view label,
                                 std::string_view otherwise);

}  // namespace kernelpro
