// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpro {

/// Pieces between separators, empty ones included; views into `text`.
[[nodiscard]] std::vector<std::string_view> Split(std::string_view text, char separator);

/// Lines without their line ends ("\n" or "\r\n"); a final line end makes no extra empty line.
[[nodiscard]] std::vector<std::string_view> Lines(std::string_view text);

[[nodiscard]] std::string_view Trim(std::string_view text);

/// A whole decimal number, nothing else; false on overflow or trailing characters.
[[nodiscard]] bool ParseInteger(std::string_view text, long long* value);
[[nodiscard]] bool ParseDouble(std::string_view text, double* value);

/// Valid UTF-8 with control characters but tab and newline, and bad bytes, shown as '?', cut at
/// `limit` bytes: text that a candidate wrote, made fit for a terminal and for JSON.
[[nodiscard]] std::string Printable(std::string_view text, std::size_t limit);

}  // namespace kernelpro
