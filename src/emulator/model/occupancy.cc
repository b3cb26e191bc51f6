// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdint>

#include "emulator/model/model.h"

namespace kernelpro::model {
namespace {

constexpr std::uint32_t kWarp = 32;
constexpr std::uint32_t kMaxThreadsPerCta = 1024;
constexpr std::uint32_t kMaxRegistersPerThread = 255;
constexpr std::uint64_t kRegisterUnit = 256;
constexpr std::uint64_t kSharedUnit = 128;
constexpr std::uint64_t kSubPartitions = 4;

std::uint64_t RoundUp(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

/// Registers belong to one of the SM's four quarters, so a warp never uses the rest of two.
std::uint32_t RegisterLimit(const GpuSpec& spec, std::uint32_t registers, std::uint64_t warps) {
  if (registers > kMaxRegistersPerThread) {
    return 0;
  }
  const std::uint64_t per_warp = RoundUp(std::uint64_t{registers} * kWarp, kRegisterUnit);
  // The launch check assumes that a CTA allocates in all quarters at once.
  if (per_warp * RoundUp(warps, kSubPartitions) > spec.registers_per_sm) {
    return 0;
  }
  const std::uint64_t warps_per_quarter = spec.registers_per_sm / kSubPartitions / per_warp;
  return static_cast<std::uint32_t>(warps_per_quarter * kSubPartitions / warps);
}

std::uint32_t SharedLimit(const GpuSpec& spec, std::uint64_t bytes) {
  if (bytes > spec.shared_per_cta_bytes) {
    return 0;
  }
  const std::uint64_t per_cta = RoundUp(bytes + spec.shared_reserved_per_cta_bytes, kSharedUnit);
  return per_cta == 0 ? spec.ctas_per_sm
                      : static_cast<std::uint32_t>(spec.shared_per_sm_bytes / per_cta);
}

/// The sizes that compute capability 8.0 to 9.0 can split off, up to the GPU's own maximum.
constexpr std::array<std::uint64_t, 10> kCarveoutKib = {0, 8, 16, 32, 64, 100, 132, 164, 196, 228};

}  // namespace

std::uint64_t SharedCarveout(const GpuSpec& spec, std::uint32_t ctas_per_sm,
                             std::uint64_t shared_per_cta) {
  const std::uint64_t used =
      ctas_per_sm * RoundUp(std::min(shared_per_cta, spec.shared_per_cta_bytes) +
                                spec.shared_reserved_per_cta_bytes,
                            kSharedUnit);
  for (const std::uint64_t kib : kCarveoutKib) {
    if (used <= kib << 10U) {
      return std::min(kib << 10U, spec.shared_per_sm_bytes);
    }
  }
  return spec.shared_per_sm_bytes;
}

Occupancy ComputeOccupancy(const GpuSpec& spec, const KernelResources& resources,
                           std::uint32_t threads_per_cta, std::uint64_t dynamic_shared) {
  Occupancy out;
  if (threads_per_cta == 0 || threads_per_cta > kMaxThreadsPerCta) {
    return out;
  }
  const std::uint32_t warps = (threads_per_cta + kWarp - 1) / kWarp;
  // ptxas never allocates none: the smallest unit is 8 registers a thread.
  const std::uint32_t registers = std::max(resources.registers_per_thread, 1U);
  out.limit_warps = spec.warps_per_sm / warps;
  out.limit_ctas = spec.ctas_per_sm;
  out.limit_registers = RegisterLimit(spec, registers, warps);
  // No sum can wrap: a request beyond the per-CTA maximum is clamped to just above it.
  const std::uint64_t too_much = spec.shared_per_cta_bytes + 1;
  out.limit_shared = SharedLimit(
      spec, std::min(resources.static_shared_bytes, too_much) + std::min(dynamic_shared, too_much));
  out.ctas_per_sm =
      std::min({out.limit_warps, out.limit_ctas, out.limit_registers, out.limit_shared});
  out.warps_per_sm = out.ctas_per_sm * warps;
  out.theoretical = double(out.warps_per_sm) / double(spec.warps_per_sm);
  return out;
}

}  // namespace kernelpro::model
