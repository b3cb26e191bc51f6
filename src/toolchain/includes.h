// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpro {

/// The first file that preprocessed text was put together from and that lies in none of `roots`;
/// empty when there is none. Reads the line markers of GNU cpp (`# 1 "/etc/passwd" 1`), which every
/// way to include a file leaves behind. Relative names without ".." lie in the build folder.
[[nodiscard]] std::string ForeignInclude(std::string_view preprocessed,
                                         const std::vector<std::filesystem::path>& roots);

/// The file that the host compiler was not let read ("x.cu:1:10: fatal error: /etc/passwd:
/// Permission denied"); empty when there was none.
[[nodiscard]] std::string UnreadableInclude(std::string_view log);

/// Folders between "search starts here" and "End of search list" of `g++ -E -v`.
[[nodiscard]] std::vector<std::filesystem::path> SearchFolders(std::string_view verbose);

/// The toolkit's folder from what `nvcc --dryrun` prints ("#$ TOP=/usr/local/cuda/bin/..");
/// empty when it says none.
[[nodiscard]] std::filesystem::path ToolkitFolder(std::string_view dry_run);

}  // namespace kernelpro
