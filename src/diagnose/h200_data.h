// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "kernelpro/profile.h"
#include "kernelpro/tool.h"

/// Test data: 51 micro kernels measured on an H200 (tests/data/h200).
namespace kernelpro::testing {

struct H200Kernel {
  std::string name;  ///< of the variant: "copy1_b32"
  double event_us = 0;
  /// The 26 counters; bytes per sector and access widths are added from the kernel's source, which
  /// says how many bytes each lane moves. Time is the event time.
  Profile profile;
};

[[nodiscard]] const std::vector<H200Kernel>& H200Kernels();
[[nodiscard]] const H200Kernel& H200(const std::string& name);
[[nodiscard]] Hardware H200Hardware();

}  // namespace kernelpro::testing
