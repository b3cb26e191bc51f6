// SPDX-License-Identifier: Apache-2.0
// Any bytes as the log of a compiler, its preprocessed text, or the manifest of a cached build.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "toolchain/diagnostics.h"
#include "toolchain/entry_json.h"
#include "toolchain/includes.h"
#include "toolchain/ptxas_figures.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto& diagnostic : kernelpro::ParseDiagnostics(text)) {
    if (diagnostic.text.size() > 1100 || diagnostic.file.size() > 1100) {
      std::abort();
    }
  }
  static_cast<void>(kernelpro::ParsePtxasFigures(text));
  static_cast<void>(kernelpro::ForeignInclude(text, {"/usr/include"}));
  static_cast<void>(kernelpro::SearchFolders(text));
  static_cast<void>(kernelpro::ManifestFromJson(text));
  return 0;
}
