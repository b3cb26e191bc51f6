// SPDX-License-Identifier: Apache-2.0
#include "profile/dimension.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace kernelpro {

bool ParseDimension(std::string_view text, std::uint32_t (&dim)[3]) {
  text = Trim(text);
  if (!text.starts_with('(') || !text.ends_with(')')) {
    return false;
  }
  const std::vector<std::string_view> parts = Split(text.substr(1, text.size() - 2), ',');
  std::array<long long, 3> values = {1, 1, 1};
  if (parts.size() != 3) {
    return false;
  }
  for (std::size_t i = 0; i < 3; ++i) {
    if (!ParseInteger(Trim(parts[i]), &values[i]) || values[i] < 1 || values[i] > UINT32_MAX) {
      return false;
    }
  }
  std::ranges::transform(values, dim,
                         [](long long value) { return static_cast<std::uint32_t>(value); });
  return true;
}

}  // namespace kernelpro
