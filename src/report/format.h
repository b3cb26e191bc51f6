// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace kernelpro::report {

/// Three significant digits and a unit that fits: "4.20 us", "104 us", "1.27 ms".
[[nodiscard]] std::string FormatTime(double microseconds);

}  // namespace kernelpro::report
