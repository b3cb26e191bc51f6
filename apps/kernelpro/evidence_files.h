// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernelpro/profile.h"
#include "kernelpro/tool.h"

namespace kernelpro::app {

/// Files that other people's tools made; each option may be repeated.
struct EvidenceFiles {
  std::vector<std::filesystem::path> ncu, sass, ptxas, nsys, activity, profile, sanitizer;

  [[nodiscard]] std::size_t size() const {
    return ncu.size() + sass.size() + ptxas.size() + nsys.size() + activity.size() +
           profile.size() + sanitizer.size();
  }

  [[nodiscard]] bool empty() const { return size() == 0; }
};

/// Every file read, as it is, one Profile each.
[[nodiscard]] Result<std::vector<Profile>> ReadEvidence(const EvidenceFiles& files,
                                                        const std::stop_token& stop);

/// Any file of the kinds above, told apart by its content.
[[nodiscard]] Result<Profile> ReadAnyProfile(const std::filesystem::path& file,
                                             const std::stop_token& stop);

/// What the files say together: launches of one kernel as one, sources joined (MergeEvidence).
[[nodiscard]] Result<Profile> JoinEvidence(const EvidenceFiles& files, const std::stop_token& stop);

/// Figures of the GPU that a profile is of. `choice` is a spec's name, or "auto": by the profile's
/// device, which is noted in the profile when it is only a guess.
[[nodiscard]] Result<Hardware> HardwareFor(const std::string& choice, Profile& profile);

}  // namespace kernelpro::app
