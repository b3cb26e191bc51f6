// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "kernelpro/profile.h"

/// The stored form of the experts' profiles: kernels of one program have nearly the same metrics,
/// so their names stand once. Six digits of each value; no timeline, samples or compiler's notes.
namespace kernelpro::experts {

[[nodiscard]] std::string ToCompact(const Profile& profile);
[[nodiscard]] Result<Profile> FromCompact(std::string_view text, std::string_view label);

}  // namespace kernelpro::experts
