// SPDX-License-Identifier: Apache-2.0
#include "llm/transport.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <string_view>

namespace kernelpro::llm {

std::optional<std::string> FindHeader(const Headers& headers, std::string_view name) {
  for (auto it = headers.rbegin(); it != headers.rend(); ++it) {
    if (std::ranges::equal(it->first, name, [](unsigned char a, unsigned char b) {
          return std::tolower(a) == std::tolower(b);
        })) {
      return it->second;
    }
  }
  return std::nullopt;
}

}  // namespace kernelpro::llm
