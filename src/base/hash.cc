// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <fmt/format.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace kernelpro {

std::uint64_t Hash64(std::span<const std::byte> bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

std::uint64_t Hash64(std::string_view bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

std::string ContentHash(std::span<const std::string_view> parts) {
  std::string joined;
  for (const std::string_view part : parts) {
    joined += fmt::format("{}:", part.size());
    joined += part;
  }
  const XXH128_hash_t hash = XXH3_128bits(joined.data(), joined.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace kernelpro
