// SPDX-License-Identifier: Apache-2.0
// Any bytes as a shared library. Beyond not crashing: names are words without NUL, lists sorted.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "toolchain/binary_facts.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto facts = kernelpro::ParseBinaryFacts(std::as_bytes(std::span(data, size)));
  if (!facts.ok()) {
    KP_CHECK(!facts.error().message.empty());
    return 0;
  }
  for (const auto* list : {&facts->needed, &facts->imports, &facts->exports}) {
    KP_CHECK(std::ranges::is_sorted(*list));
    for (const auto& name : *list) {
      KP_CHECK(name.find('\0') == name.npos);
    }
  }
  return 0;
}
