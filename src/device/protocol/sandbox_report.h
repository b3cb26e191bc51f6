// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "device/device.h"
#include "device/protocol/bytes.h"

namespace kernelpro::protocol {

/// What a runner says keeps its candidate in: u32 count, each a text name, u8 on, text detail. It
/// is sent before the candidate is loaded, so it is ours. Stops at what is not there.
[[nodiscard]] inline std::vector<SandboxMeasure> ReadSandboxReport(ByteReader& in) {
  std::vector<SandboxMeasure> measures;
  const std::uint32_t count = in.U32();
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
    SandboxMeasure measure;
    measure.name = in.Text();
    measure.on = in.U8() != 0;
    measure.detail = in.Text();
    if (in.ok()) {
      measures.push_back(std::move(measure));
    }
  }
  return measures;
}

}  // namespace kernelpro::protocol
