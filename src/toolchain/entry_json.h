// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "toolchain/toolchain.h"

namespace kernelpro {

/// A file of a cache entry as it was when it was published.
struct EntryFile {
  std::string name;
  std::uint64_t bytes = 0;
  std::uint64_t hash = 0;  ///< Hash64 of the content
};

/// entry.json of a cache entry. The paths of `build` are plain file names here.
struct EntryManifest {
  Build build;
  std::vector<EntryFile> files;
};

[[nodiscard]] std::string ManifestToJson(const EntryManifest& manifest);
/// kParse when it is anything but what ManifestToJson wrote.
[[nodiscard]] Result<EntryManifest> ManifestFromJson(std::string_view text);

}  // namespace kernelpro
