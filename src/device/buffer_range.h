// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>

#include "base/result.h"

namespace kernelpro {

/// kInvalidArgument unless bytes [offset, offset + bytes) lie in a buffer of `size`.
[[nodiscard]] inline Status CheckRange(std::uint64_t offset, std::uint64_t bytes,
                                       std::uint64_t size) {
  if (offset > size || bytes > size - offset) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("bytes {} to {} of a buffer of {}", offset, offset + bytes, size));
  }
  return Ok();
}

}  // namespace kernelpro
