// SPDX-License-Identifier: Apache-2.0
#include "base/rng.h"

#include <sys/random.h>

namespace kernelpro {

Result<std::uint64_t> SecretSeed() {
  std::uint64_t seed = 0;
  if (::getrandom(&seed, sizeof seed, 0) != static_cast<ssize_t>(sizeof seed)) {
    return Fail(ErrorCode::kIo, "the system gave no random bytes (getrandom)");
  }
  return seed;
}

}  // namespace kernelpro
