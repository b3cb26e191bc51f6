// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>

#include "base/result.h"
#include "emulator/model/model.h"
#include "emulator/ptx/control_flow.h"
#include "emulator/ptx/liveness.h"
#include "emulator/ptx/module.h"

namespace kernelpro::model {
namespace {

std::uint64_t SumBytes(const ptx::Function& kernel, ptx::Space space) {
  std::uint64_t bytes = 0;
  for (const ptx::Variable& variable : kernel.variables) {
    if (variable.space == space && !variable.is_extern) {
      const std::uint64_t unit = std::max(1U, variable.alignment);
      bytes = (bytes + unit - 1) / unit * unit + variable.bytes;
    }
  }
  return bytes;
}

}  // namespace

KernelResources EstimateResources(const ptx::Function& kernel) {
  constexpr std::uint32_t kOverhead = 8;
  constexpr std::uint32_t kMost = 255;
  KernelResources out;
  // Too large a function to analyse cannot keep its values in registers either.
  const Result<ptx::Liveness> live = ptx::ComputeLiveness(kernel, ptx::BuildControlFlow(kernel));
  out.registers_per_thread = live ? std::min(kMost, live->max_live_registers + kOverhead) : kMost;
  out.static_shared_bytes = SumBytes(kernel, ptx::Space::kShared);
  out.local_bytes_per_thread = SumBytes(kernel, ptx::Space::kLocal);
  return out;
}

}  // namespace kernelpro::model
