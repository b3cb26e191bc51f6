// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace kernelpro::gpu {

/// The PTX text of a fat binary as nvcc 13 embeds it. Of several, the newest architecture that is
/// at most `compute_capability` (90 for sm_90). Pure; any bytes are safe to pass. kParse: not a fat
/// binary, or cut short. kUnavailable: no PTX in it that fits, or it is compressed; the message
/// says with which nvcc flags it would be there.
[[nodiscard]] Result<std::string> ExtractPtx(std::span<const std::byte> image,
                                             std::uint32_t compute_capability);

}  // namespace kernelpro::gpu
