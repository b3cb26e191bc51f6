// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "profile/evidence.h"
#include "profile/ncu_failure.h"
#include "profile/ncu_source.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto launches = kernelpro::ParseNcuSource(text, "fuzz");
  (void)kernelpro::KernelsSeen(text);
  if (launches.ok()) {
    // Its names, hostile too, as kernels of two sources.
    kernelpro::Profile profile;
    for (const auto& launch : *launches) {
      kernelpro::KernelProfile kernel;
      kernel.name = kernel.mangled = launch.name;
      profile.kernels.push_back(kernel);
    }
    kernelpro::Profile other = profile;
    kernelpro::AddHotSpots(*launches, profile);
    (void)kernelpro::MergeEvidence({profile, other});
  }
  return 0;
}
