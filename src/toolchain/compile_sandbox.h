// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include "process/confine.h"

namespace kernelpro {

/// What a compiler may touch: the system's programs and headers, `tools` (its own folders and
/// files), and `work`, where it writes. Nothing else is readable, so that a source can neither
/// include nor .incbin what belongs to the user.
[[nodiscard]] Confinement CompilerConfinement(const std::filesystem::path& work,
                                              const std::vector<std::filesystem::path>& tools);

/// The files and folders that a compiler at `program` needs to run: itself (also where a link
/// leads), and the tree it is installed in when that is clearly a compiler's.
[[nodiscard]] std::vector<std::filesystem::path> CompilerFiles(
    const std::filesystem::path& program);

}  // namespace kernelpro
