// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "emulator/model/model.h"

#ifdef KP_HAVE_CUDA_OCCUPANCY
#include "base/rng.h"
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <cuda_occupancy.h>
#pragma GCC diagnostic pop
#endif

namespace kernelpro::model {
namespace {

GpuSpec Spec(const std::string& name) {
  Result<GpuSpec> spec = LoadSpec(name);
  EXPECT_TRUE(spec.ok());
  return spec.ok() ? *spec : GpuSpec{};
}

KernelResources Resources(std::uint32_t registers, std::uint64_t shared = 0) {
  KernelResources out;
  out.registers_per_thread = registers;
  out.static_shared_bytes = shared;
  return out;
}

TEST(Occupancy, ThirtyTwoRegistersFillTheH200) {
  // 32 registers x 32 lanes = 1024 a warp; 16384 a quarter / 1024 = 16 warps, 64 an SM.
  const Occupancy o = ComputeOccupancy(Spec("h200"), Resources(32), 256, 0);
  EXPECT_EQ(o.limit_registers, 8U);
  EXPECT_EQ(o.limit_warps, 8U);
  EXPECT_EQ(o.ctas_per_sm, 8U);
  EXPECT_EQ(o.warps_per_sm, 64U);
  EXPECT_DOUBLE_EQ(o.theoretical, 1.0);
}

TEST(Occupancy, RegistersRoundUpToUnitsOf256AWarp) {
  // 33 x 32 = 1056 -> 1280; 16384 / 1280 = 12 warps a quarter, 48 an SM.
  const Occupancy o = ComputeOccupancy(Spec("h200"), Resources(33), 256, 0);
  EXPECT_EQ(o.limit_registers, 6U);
  EXPECT_DOUBLE_EQ(o.theoretical, 0.75);
}

TEST(Occupancy, SharedMemoryIncludesTheReservedKilobyte) {
  // (48 KiB + 1 KiB) x 4 = 196 KiB of 228; a fifth does not fit.
  const Occupancy o = ComputeOccupancy(Spec("h200"), Resources(16, 16 << 10), 128, 32 << 10);
  EXPECT_EQ(o.limit_shared, 4U);
  EXPECT_EQ(o.ctas_per_sm, 4U);
  // 227 KiB is the most one CTA can have, and then it is alone; a byte more does not fit.
  EXPECT_EQ(ComputeOccupancy(Spec("h200"), Resources(16), 128, 227 << 10).ctas_per_sm, 1U);
  EXPECT_EQ(ComputeOccupancy(Spec("h200"), Resources(16), 128, (227 << 10) + 1).ctas_per_sm, 0U);
}

TEST(Occupancy, SmallCtasHitTheCtaLimit) {
  const Occupancy h200 = ComputeOccupancy(Spec("h200"), Resources(16), 32, 0);
  EXPECT_EQ(h200.ctas_per_sm, 32U);
  EXPECT_DOUBLE_EQ(h200.theoretical, 0.5);
  EXPECT_EQ(ComputeOccupancy(Spec("l4"), Resources(16), 32, 0).ctas_per_sm, 24U);
}

TEST(Occupancy, ImpossibleLaunchesGiveZero) {
  const GpuSpec spec = Spec("h200");
  EXPECT_EQ(ComputeOccupancy(spec, Resources(32), 0, 0).ctas_per_sm, 0U);
  EXPECT_EQ(ComputeOccupancy(spec, Resources(32), 1025, 0).ctas_per_sm, 0U);
  EXPECT_EQ(ComputeOccupancy(spec, Resources(256), 32, 0).ctas_per_sm, 0U);
  // 65 registers -> 2304 a warp; 32 warps need 73728 of 65536.
  EXPECT_EQ(ComputeOccupancy(spec, Resources(65), 1024, 0).ctas_per_sm, 0U);
  EXPECT_EQ(ComputeOccupancy(spec, Resources(32), 32, ~std::uint64_t{0}).ctas_per_sm, 0U);
}

TEST(Occupancy, CarveoutIsTheNextSizeTheHardwareOffers) {
  const GpuSpec h200 = Spec("h200");
  // 8 CTAs x 1 KiB reserved; 8 x (8 + 1) = 72 -> 100 KiB; 4 x 49 = 196 exactly.
  EXPECT_EQ(SharedCarveout(h200, 8, 0), 8U << 10);
  EXPECT_EQ(SharedCarveout(h200, 8, 8 << 10), 100U << 10);
  EXPECT_EQ(SharedCarveout(h200, 4, 48 << 10), 196U << 10);
  EXPECT_EQ(SharedCarveout(h200, 1, 227 << 10), 228U << 10);
  EXPECT_EQ(SharedCarveout(Spec("l4"), 1, 99 << 10), 100U << 10);
}

#ifdef KP_HAVE_CUDA_OCCUPANCY
cudaOccDeviceProp Properties(const GpuSpec& spec) {
  cudaOccDeviceProp p;
  p.computeMajor = static_cast<int>(spec.compute_capability / 10);
  p.computeMinor = static_cast<int>(spec.compute_capability % 10);
  p.maxThreadsPerBlock = 1024;
  p.maxThreadsPerMultiprocessor = static_cast<int>(spec.warps_per_sm * 32);
  p.regsPerBlock = static_cast<int>(spec.registers_per_sm);
  p.regsPerMultiprocessor = static_cast<int>(spec.registers_per_sm);
  p.warpSize = 32;
  p.sharedMemPerBlock = 48 << 10;
  p.sharedMemPerMultiprocessor = spec.shared_per_sm_bytes;
  p.numSms = static_cast<int>(spec.sm_count);
  p.sharedMemPerBlockOptin = spec.shared_per_cta_bytes;
  p.reservedSharedMemPerBlock = spec.shared_reserved_per_cta_bytes;
  return p;
}

int Oracle(const GpuSpec& spec, const KernelResources& r, int threads, std::uint64_t dynamic) {
  const cudaOccDeviceProp properties = Properties(spec);
  cudaOccFuncAttributes attributes;
  attributes.maxThreadsPerBlock = 1024;
  attributes.numRegs = static_cast<int>(r.registers_per_thread);
  attributes.sharedSizeBytes = r.static_shared_bytes;
  attributes.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
  attributes.maxDynamicSharedSizeBytes = spec.shared_per_cta_bytes - r.static_shared_bytes;
  cudaOccDeviceState state;
  state.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
  cudaOccResult result{};
  const cudaOccError error = cudaOccMaxActiveBlocksPerMultiprocessor(
      &result, &properties, &attributes, &state, threads, dynamic);
  EXPECT_EQ(error, CUDA_OCC_SUCCESS);
  return result.activeBlocksPerMultiprocessor;
}

TEST(Occupancy, AgreesWithTheToolkitsCalculator) {
  Rng rng(20260);
  for (const std::string& name : SpecNames()) {
    const GpuSpec spec = Spec(name);
    for (int i = 0; i < 5000; ++i) {
      const KernelResources r = Resources(1 + static_cast<std::uint32_t>(rng.Below(255)),
                                          rng.Below(3) == 0 ? 0 : rng.Below(48 << 10));
      const auto threads = 1 + static_cast<std::uint32_t>(rng.Below(1024));
      const std::uint64_t room = spec.shared_per_cta_bytes - r.static_shared_bytes;
      const std::uint64_t dynamic = rng.Below(2) == 0 ? 0 : rng.Below(room + 1);
      ASSERT_EQ(static_cast<int>(ComputeOccupancy(spec, r, threads, dynamic).ctas_per_sm),
                Oracle(spec, r, static_cast<int>(threads), dynamic))
          << name << ": " << threads << " threads, " << r.registers_per_thread << " registers, "
          << r.static_shared_bytes << " + " << dynamic << " bytes";
    }
  }
}
#endif

}  // namespace
}  // namespace kernelpro::model
