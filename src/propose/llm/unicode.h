// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace kernelpro::agents {

/// Valid UTF-8 with "\n" as the only line end and no characters that are not seen: controls but tab
/// and newline, terminal escape sequences, bidirectional marks, zero-width and filler characters,
/// variation selectors, tags. Bytes that are no UTF-8 become '?'.
[[nodiscard]] std::string Visible(std::string_view text);

}  // namespace kernelpro::agents
