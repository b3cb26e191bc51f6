// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "profile/activity_trace.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)kernelpro::ParseActivityTrace(text, "fuzz").ok();
  // Behind a header that is right, most of the input reaches the records.
  const std::string header = "{\"t\":\"kernelpro_activity\",\"version\":1,\"pid\":1}\n";
  (void)kernelpro::ParseActivityTrace(header + std::string(text), "fuzz").ok();
  return 0;
}
