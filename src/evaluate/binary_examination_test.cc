// SPDX-License-Identifier: Apache-2.0
// What nvcc makes of an honest candidate and of hostile ones, before any of them runs.
#include "evaluate/binary_examination.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace kernelpro {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kHonest = R"(#include <cuda_runtime.h>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>
__global__ void Twice(const float* x, float* y) { y[threadIdx.x] = 2 * x[threadIdx.x]; }
extern "C" cudaError_t kernelpro_run(const void*, cudaStream_t stream) {
  static std::once_flag once;
  static std::map<std::string, std::vector<double>> kept;
  std::call_once(once, [] { kept["x"].push_back(std::pow(kept.size() + 2.5, 1.5)); });
  std::thread([] { std::cout << kept.size(); }).join();
  std::printf("%zu\n", kept.size());
  cudaFuncSetAttribute(Twice, cudaFuncAttributeMaxDynamicSharedMemorySize, 1024);
  Twice<<<1, 32, 0, stream>>>(nullptr, nullptr);
  return cudaGetLastError();
}
)";

constexpr const char* kLooksUpNames = R"(#include <cuda_runtime.h>
#include <dlfcn.h>
#define JOIN(a, b) a##b
extern "C" cudaError_t kernelpro_run(const void*, cudaStream_t) {
  return JOIN(dl, sym)(nullptr, "cudaMalloc") != nullptr ? cudaSuccess : cudaErrorUnknown;
}
)";

constexpr const char* kOwnClock = R"(#include <cuda_runtime.h>
#include <time.h>
extern "C" int clock_gettime(clockid_t, timespec*) noexcept { return 0; }
extern "C" cudaError_t kernelpro_run(const void*, cudaStream_t) { return cudaSuccess; }
)";

class BinaryExaminationTest : public ::testing::Test {
 protected:
  BinaryExaminationTest() : folder_(TemporaryFolder::Create("kp-examine").value()) {
    task_.tensors.push_back({.name = "x", .dtype = DType::kF32, .role = Role::kInput});
  }

  Build Compile(const char* source) {
    ToolchainLimits limits;
    limits.wall = std::chrono::minutes(8);  // The machine may be very busy.
    const auto toolchain = Toolchain::Find(folder_.path(), limits);
    EXPECT_TRUE(toolchain.ok()) << toolchain.error().message;
    BuildRequest request;
    request.source = source;
    const auto outcome = (*toolchain)->Compile(request, {});
    EXPECT_TRUE(outcome.ok() && outcome->build);
    return *outcome->build;
  }

  BinaryFindings Examine(const Build& build) {
    const auto findings = ExamineBinary(build, task_, {}, {});
    EXPECT_TRUE(findings.ok()) << findings.error().message;
    return *findings;
  }

  TemporaryFolder folder_;
  Task task_;
};

TEST_F(BinaryExaminationTest, HonestCandidatePasses) {
  const BinaryFindings findings = Examine(Compile(kHonest));
  EXPECT_FALSE(findings.condemned) << findings.condemned->reason;
  EXPECT_EQ(findings.precision.name, "fp32");
  EXPECT_THAT(findings.notes, IsEmpty());
  task_.policy.lowest_precision = "fp64";
  const auto narrow = Examine(Compile(kHonest)).condemned;
  ASSERT_TRUE(narrow);
  EXPECT_EQ(narrow->verdict, Verdict::kPolicyViolation);
  EXPECT_THAT(narrow->reason, HasSubstr("the task's policy asks for fp64"));
}

TEST_F(BinaryExaminationTest, HostileOnesAreNamed) {
  const auto looks_up = Examine(Compile(kLooksUpNames)).condemned;
  ASSERT_TRUE(looks_up);
  EXPECT_EQ(looks_up->verdict, Verdict::kPolicyViolation);
  EXPECT_THAT(looks_up->reason, HasSubstr("calls dlsym"));
  const auto clock = Examine(Compile(kOwnClock)).condemned;
  ASSERT_TRUE(clock);
  EXPECT_THAT(clock->reason, HasSubstr("defines clock_gettime"));
}

TEST_F(BinaryExaminationTest, WhatCannotBeLookedAtIsSaid) {
  EXPECT_THAT(Examine(Build{}).notes, SizeIs(2));
  Build build;
  build.library = folder_.path() / "x.so";
  EXPECT_FALSE(ExamineBinary(build, task_, {}, {}).ok()) << "our cache lost a file";
  EXPECT_TRUE(WriteFileAtomically(build.library, "not a library").ok());
  EXPECT_TRUE(Examine(build).condemned);
}

}  // namespace
}  // namespace kernelpro
