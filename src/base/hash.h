// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kernelpro {

/// XXH3-64 of the bytes: checksums of buffers and guard bands.
[[nodiscard]] std::uint64_t Hash64(std::span<const std::byte> bytes, std::uint64_t seed = 0);
[[nodiscard]] std::uint64_t Hash64(std::string_view bytes, std::uint64_t seed = 0);

/// XXH3-128 over length-prefixed parts, as 32 hex digits: names of cached content. Not a defence
/// against a deliberate collision; nothing secret or hostile is keyed by it.
[[nodiscard]] std::string ContentHash(std::span<const std::string_view> parts);

}  // namespace kernelpro
