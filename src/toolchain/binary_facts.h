// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace kernelpro {

/// What the loader will do with a shared library, and what it offers: read from the program headers
/// and the dynamic section, as the loader itself does (section headers may be gone or lie).
/// Each list is sorted and without duplicates.
struct BinaryFacts {
  std::vector<std::string> needed;   ///< libraries it asks for (DT_NEEDED, filters, auxiliaries)
  std::vector<std::string> imports;  ///< symbols it does not define, without their versions
  std::vector<std::string> exports;  ///< symbols that others can bind to
  /// Words in its data that could be functions of the CUDA driver: "cuModuleLoadData".
  std::vector<std::string> driver_words;
};

/// `file` is foreign: any bytes are fine. kParse when it is not a 64-bit little-endian ELF shared
/// library with a sound dynamic section; the message says what is odd.
[[nodiscard]] Result<BinaryFacts> ParseBinaryFacts(std::span<const std::byte> file);

/// The same from disk; kIo or kNotFound when it cannot be read.
[[nodiscard]] Result<BinaryFacts> ReadBinaryFacts(const std::filesystem::path& library);

}  // namespace kernelpro
