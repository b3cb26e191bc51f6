// SPDX-License-Identifier: Apache-2.0
// Any bytes as a cubin, fat binary or program. Beyond not crashing: code stays inside the file, and
// no function counts more instructions than it has.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "base/check.h"
#include "sass/cubin.h"
#include "sass/cubin_histogram.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = std::as_bytes(std::span(data, size));
  const auto code = kernelpro::sass::ReadGpuCode(file, "fuzz");
  if (!code.ok()) {
    KP_CHECK(!code.error().message.empty());
    return 0;
  }
  for (const auto& cubin : code->cubins) {
    for (const auto& function : cubin.functions) {
      const std::byte* const end = function.code.data() + function.code.size();
      KP_CHECK(function.code.empty() || (std::less_equal<>()(file.data(), function.code.data()) &&
                                         std::less_equal<>()(end, file.data() + file.size())));
      const auto histogram = kernelpro::sass::HistogramOf(function.code, 90);
      KP_CHECK(histogram.metrics.at("sass.instructions").value <=
               static_cast<double>(function.code.size() / 16));
    }
  }
  return 0;
}
