// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "profile/ncu_csv.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto profile = kernelpro::ParseNcuCsv(text, "fuzz");
  if (profile.ok()) {
    (void)kernelpro::MergeLaunches(*profile);
    for (const kernelpro::KernelProfile& kernel : profile->kernels) {
      for (const auto& [name, metric] : kernel.metrics) {
        if (!std::isfinite(metric.value)) {
          std::abort();
        }
      }
    }
  }
  return 0;
}
