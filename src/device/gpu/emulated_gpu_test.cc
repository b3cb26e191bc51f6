// SPDX-License-Identifier: Apache-2.0
// The context without processes around it: refusals that a compiled candidate cannot provoke, and
// random requests.
#include "device/gpu/emulated_gpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <vector>

#include "base/rng.h"
#include "device/protocol/bytes.h"
#include "device/protocol/cuda_error.h"

namespace kernelpro::gpu {
namespace {

using protocol::GpuOp;
using protocol::GpuReply;
using protocol::GpuRequest;

constexpr std::string_view kPtx = R"(.version 9.0
.target sm_90
.address_size 64
.global .align 4 .u32 counter = 5;
.visible .entry store(.param .u64 p)
{
  .reg .b64 %rd<3>;
  .reg .b32 %r<2>;
  ld.param.u64 %rd1, [p];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r1, %tid.x;
  st.global.u32 [%rd2], %r1;
  ret;
}
)";

std::vector<std::byte> FatBinary(std::string_view ptx) {
  protocol::ByteWriter out;
  out.U32(0xba55ed50);
  out.U16(1);
  out.U16(16);
  out.U64(64 + ptx.size());
  out.U16(1);
  out.U16(0x0101);
  out.U32(64);
  out.U64(ptx.size());
  out.U64(0);
  out.U32(0);
  out.U32(90);
  out.U64(0);
  out.U64(0);
  out.U64(0);
  out.U64(0);
  out.Raw(std::as_bytes(std::span(ptx.data(), ptx.size())));
  return out.Take();
}

std::vector<std::byte> Text(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {bytes.begin(), bytes.end()};
}

class EmulatedGpuTest : public ::testing::Test {
 protected:
  EmulatedGpuTest() : gpu_(model::LoadSpec("h200").value(), 64U << 20U) {
    gpu_.BeginCall({CallMode::kCheck, 1'000'000});
  }

  GpuReply Ask(GpuOp op, std::vector<std::uint64_t> values, std::vector<std::byte> bytes = {}) {
    return gpu_.Handle({op, std::move(values), std::move(bytes)});
  }

  /// Loads kPtx and gives the handle of its kernel.
  std::uint64_t Kernel() {
    const GpuReply module = Ask(GpuOp::kRegisterModule, {}, FatBinary(kPtx));
    EXPECT_EQ(module.error, 0);
    const GpuReply function = Ask(GpuOp::kFindFunction, {module.Value(0)}, Text("store"));
    EXPECT_EQ(function.error, 0);
    EXPECT_EQ(function.values.size(), 3U);
    return function.Value(0);
  }

  static std::vector<std::byte> Parameter(std::uint64_t address) {
    const auto bytes = std::bit_cast<std::array<std::byte, 8>>(address);
    return {bytes.begin(), bytes.end()};
  }

  GpuReply Launch(std::uint64_t kernel, std::uint64_t address) {
    return Ask(GpuOp::kLaunch, {kernel, 1, 1, 1, 32, 1, 1, 0, 0, 0}, Parameter(address));
  }

  EmulatedGpu gpu_;
};

TEST_F(EmulatedGpuTest, RunsAKernelAndStaysBrokenAfterAFault) {
  const std::uint64_t kernel = Kernel();
  const std::uint64_t buffer = Ask(GpuOp::kMalloc, {128}).Value(0);
  EXPECT_EQ(Launch(kernel, buffer).error, 0);
  EXPECT_EQ(Ask(GpuOp::kRead, {buffer, 4}).bytes.size(), 4U);
  EXPECT_EQ(Launch(kernel, buffer + 128).error, protocol::kErrorIllegalAddress);
  EXPECT_EQ(Ask(GpuOp::kMalloc, {4}).error, protocol::kErrorIllegalAddress);
  EXPECT_EQ(Ask(GpuOp::kSynchronize, {}).error, protocol::kErrorIllegalAddress);
  const auto report = gpu_.EndCall();
  EXPECT_EQ(report.sticky_error, protocol::kErrorIllegalAddress);
  EXPECT_EQ(report.launches.size(), 2U);
  EXPECT_GT(report.device_us, 0);
}

TEST_F(EmulatedGpuTest, ManyLaunchesAreCountedAndTheFaultIsKept) {
  const std::uint64_t kernel = Kernel();
  const std::uint64_t buffer = Ask(GpuOp::kMalloc, {128}).Value(0);
  constexpr std::size_t kMore = 5;
  for (std::size_t i = 0; i < protocol::kMostLaunchRecords + kMore; ++i) {
    ASSERT_EQ(Launch(kernel, buffer).error, 0);
  }
  EXPECT_NE(Launch(kernel, buffer + 128).error, 0);
  const auto report = gpu_.EndCall();
  EXPECT_EQ(report.launches_left_out, kMore);
  ASSERT_EQ(report.launches.size(), protocol::kMostLaunchRecords + 1);
  EXPECT_FALSE(report.launches.back().report.Completed());
  // Every launch counts in the time, kept or not.
  const double one = report.launches.front().time.time_us;
  EXPECT_NEAR(report.device_us, one * (protocol::kMostLaunchRecords + kMore), one);
}

TEST_F(EmulatedGpuTest, ParametersOfTheWrongSizeAreRefused) {
  const std::uint64_t kernel = Kernel();
  EXPECT_EQ(Ask(GpuOp::kLaunch, {kernel, 1, 1, 1, 32, 1, 1, 0, 0, 0}, Text("123")).error,
            protocol::kErrorInvalidValue);
  EXPECT_EQ(Ask(GpuOp::kLaunch, {kernel, 1, 1, 1, 32, 1, 1, 0, 0, 0}).error,
            protocol::kErrorInvalidValue);
}

TEST_F(EmulatedGpuTest, GeometryIsCheckedBeforeItIsNarrowed) {
  const std::uint64_t kernel = Kernel();
  const std::uint64_t wraps = (1ULL << 32U) + 1;
  EXPECT_EQ(Ask(GpuOp::kLaunch, {kernel, wraps, 1, 1, 32, 1, 1, 0, 0, 0}, Parameter(0)).error,
            protocol::kErrorInvalidConfiguration);
  EXPECT_EQ(Ask(GpuOp::kLaunch, {kernel, 1, 1, 1, wraps, 1, 1, 0, 0, 0}, Parameter(0)).error,
            protocol::kErrorInvalidConfiguration);
  EXPECT_EQ(Ask(GpuOp::kLaunch, {kernel, 0, 1, 1, 32, 1, 1, 0, 0, 0}, Parameter(0)).error,
            protocol::kErrorInvalidConfiguration);
}

TEST_F(EmulatedGpuTest, VariablesHaveTheirInitialValue) {
  const GpuReply module = Ask(GpuOp::kRegisterModule, {}, FatBinary(kPtx));
  const GpuReply variable = Ask(GpuOp::kFindVariable, {module.Value(0)}, Text("counter"));
  ASSERT_EQ(variable.error, 0);
  EXPECT_EQ(variable.Value(1), 4U);
  EXPECT_EQ(Ask(GpuOp::kRead, {variable.Value(0), 4}).bytes[0], std::byte{5});
  EXPECT_EQ(Ask(GpuOp::kFindVariable, {module.Value(0)}, Text("none")).error,
            protocol::kErrorInvalidSymbol);
}

TEST_F(EmulatedGpuTest, PtxThatCannotBeReadIsUnsupportedNotACrash) {
  EXPECT_EQ(Ask(GpuOp::kRegisterModule, {}, FatBinary("this is not PTX")).error,
            protocol::kErrorInvalidPtx);
  EXPECT_NE(gpu_.EndCall().unsupported, "");
}

TEST_F(EmulatedGpuTest, MemoryIsBounded) {
  EXPECT_EQ(Ask(GpuOp::kMalloc, {65U << 20U}).error, protocol::kErrorMemoryAllocation);
  EXPECT_EQ(Ask(GpuOp::kMalloc, {~0ULL}).error, protocol::kErrorMemoryAllocation);
  const std::uint64_t address = Ask(GpuOp::kMalloc, {100}).Value(0);
  EXPECT_EQ(Ask(GpuOp::kMemset, {address, 1, 101}).error, protocol::kErrorInvalidValue);
  EXPECT_EQ(Ask(GpuOp::kMemset, {address + 99, 1, ~0ULL}).error, protocol::kErrorInvalidValue);
  EXPECT_EQ(Ask(GpuOp::kMemset, {address, 0x1ff, 100}).error, 0);
  EXPECT_EQ(Ask(GpuOp::kRead, {address + 99, 1}).bytes[0], std::byte{0xff});
  EXPECT_EQ(Ask(GpuOp::kRead, {address, 101}).error, protocol::kErrorInvalidValue);
  EXPECT_EQ(Ask(GpuOp::kFree, {address + 1}).error, protocol::kErrorInvalidValue);
  EXPECT_EQ(Ask(GpuOp::kFree, {address}).error, 0);
  EXPECT_TRUE(gpu_.EndCall().out_of_memory);
}

TEST_F(EmulatedGpuTest, CopiesCostTimeByTheirBytes) {
  const std::uint64_t address = Ask(GpuOp::kMalloc, {2U << 20U}).Value(0);
  (void)gpu_.EndCall();
  gpu_.BeginCall({CallMode::kCheck, 1000});
  EXPECT_EQ(Ask(GpuOp::kCopy, {address + (1U << 20U), address, 1U << 20U}).error, 0);
  const auto spec = model::LoadSpec("h200").value();
  const double want = 2 * 1048576.0 / spec.dram_bytes_per_s * 1e6 + spec.launch_overhead_us;
  EXPECT_NEAR(gpu_.EndCall().device_us, want, 1e-9);
}

/// Requests that a hostile runner could make up: small numbers, real handles and addresses,
/// extremes.
TEST(EmulatedGpuFuzzTest, RandomRequestsAreAnswered) {
  const auto spec = model::LoadSpec("h200").value();
  const auto image = FatBinary(kPtx);
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    EmulatedGpu gpu(spec, 64U << 20U);
    gpu.BeginCall({CallMode::kCheck, 100'000});
    const std::uint64_t module = gpu.Handle({GpuOp::kRegisterModule, {}, image}).Value(0);
    const std::uint64_t kernel =
        gpu.Handle({GpuOp::kFindFunction, {module}, Text("store")}).Value(0);
    const std::uint64_t buffer = gpu.Handle({GpuOp::kMalloc, {4096}, {}}).Value(0);
    const std::vector<std::uint64_t> pool = {
        0,  1,   2,    32,   module,     kernel,        buffer,      16,          64,   128,
        80, 256, 1024, 5000, buffer + 4, buffer + 4095, 1ULL << 20U, 1ULL << 32U, ~0ULL};
    Rng rng(seed);
    for (int round = 0; round < 500; ++round) {
      GpuRequest request;
      request.op =
          static_cast<GpuOp>(1 + rng.Below(static_cast<std::uint64_t>(GpuOp::kDeviceInfo)));
      request.values.resize(rng.Below(12));
      for (std::uint64_t& value : request.values) {
        value = pool[rng.Below(pool.size())];
      }
      request.bytes.resize(rng.Below(20));
      if (request.op == GpuOp::kRegisterModule) {
        request.bytes = image;
        request.bytes[rng.Below(request.bytes.size())] = static_cast<std::byte>(rng.Below(256));
      }
      const GpuReply reply = gpu.Handle(request);
      ASSERT_STRNE(protocol::CudaErrorName(reply.error), "unrecognized error code");
      if (protocol::IsStickyCudaError(reply.error)) {
        break;  // The context is dead: every later answer is this one.
      }
    }
    (void)gpu.EndCall();
  }
}

}  // namespace
}  // namespace kernelpro::gpu
