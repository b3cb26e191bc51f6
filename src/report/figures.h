// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "kernelpro/profile.h"

namespace kernelpro::report {

/// What an expert looks at first in the kernel that takes most of the time: registers, residency,
/// instructions by kind, how busy each part was. With `before` each figure shows what it was there.
/// Figures that were not collected are left out; empty without kernels.
[[nodiscard]] std::string FiguresText(const Profile& profile, const Profile* before);

}  // namespace kernelpro::report
