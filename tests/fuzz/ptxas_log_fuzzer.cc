// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "profile/ptxas_log.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static_cast<void>(kernelpro::ParsePtxasLog({reinterpret_cast<const char*>(data), size}, "fuzz"));
  return 0;
}
