// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

/// Sources that a proposer may look things up in.
namespace kernelpro::codesearch {

struct Hit {
  std::string path;  ///< relative to the index's root
  std::uint32_t line = 0;
  std::string text;  ///< the line
};

class CodeIndex {
 public:
  virtual ~CodeIndex() = default;
  /// Lines that hold all words of the query (case ignored), those that hold the query as it stands
  /// first; at most `most`.
  [[nodiscard]] virtual Result<std::vector<Hit>> Search(std::string_view query,
                                                        std::size_t most) const = 0;
  /// Lines first..last of a file (1-based, at most 200 of them). kInvalidArgument for a path that
  /// leads out of the root, kNotFound for a file that is not there.
  [[nodiscard]] virtual Result<std::string> Read(std::string_view path, std::uint32_t first,
                                                 std::uint32_t last) const = 0;
};

/// C++ and CUDA sources and headers under a folder, read when searched. Symbolic links are not
/// followed.
[[nodiscard]] Result<std::unique_ptr<CodeIndex>> OpenFolder(const std::filesystem::path& root);

}  // namespace kernelpro::codesearch
