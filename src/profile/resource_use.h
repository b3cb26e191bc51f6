// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpro {

/// What one function of a compiled file takes.
struct ResourceUse {
  std::string function;      ///< mangled
  std::string architecture;  ///< "sm_70"; empty: not told
  std::optional<std::uint64_t> registers, stack_bytes, shared_bytes, local_bytes;
};

/// The functions in what `cuobjdump -res-usage` prints; other lines are skipped:
///   arch = sm_70
///   Resource usage:
///    Function _Z1kPf:
///     REG:26 STACK:0 SHARED:0 LOCAL:0 CONSTANT[0]:376 TEXTURE:0 SURFACE:0 SAMPLER:0
[[nodiscard]] std::vector<ResourceUse> ParseResourceUse(std::string_view text);

}  // namespace kernelpro
