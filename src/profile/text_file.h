// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace kernelpro {

/// A file of at most 1 GiB that a tool printed. UTF-16 with a byte-order mark, which PowerShell's
/// ">" writes, comes as UTF-8; other bytes as they are. Errors as of ReadFile.
[[nodiscard]] Result<std::string> ReadTextFile(const std::filesystem::path& path);

/// UTF-8 of UTF-16 with a byte-order mark; a lone surrogate becomes '?'. Other text is unchanged.
[[nodiscard]] std::string FromWideText(std::string bytes);

}  // namespace kernelpro
