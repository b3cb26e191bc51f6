// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "profile/profile_json.h"

/// Whatever is read is written so that it reads back to the same text.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto profile = kernelpro::ParseProfileJson(text, "fuzz");
  if (profile.ok()) {
    const std::string written = kernelpro::ProfileJson(*profile);
    const auto again = kernelpro::ParseProfileJson(written, "again");
    if (!again.ok() || kernelpro::ProfileJson(*again) != written) {
      std::abort();
    }
  }
  return 0;
}
