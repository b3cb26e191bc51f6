// SPDX-License-Identifier: Apache-2.0
// The collector on a real GPU: every metric that it asks for comes back, samples name instructions,
// and the kernel that was asked for is the one that is measured. Without a GPU, nvcc or ncu every
// test says what is missing.
#include "profile/collect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "device/cuda/gpu.h"
#include "process/process.h"
#include "profile/metric_names.h"
#include "profile/nvidia_tool.h"
#include "profile/permission.h"

namespace kernelpro {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Depth = CollectOptions::Depth;

constexpr const char* kProgram = R"(#include <cuda_runtime.h>
namespace ns {
template <int N> __global__ void scale(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * N;
}
}  // namespace ns
__global__ void chase(const int* next, int* out, int steps) {
  int at = threadIdx.x;
  for (int i = 0; i < steps; ++i) at = next[at];
  out[threadIdx.x] = at;
}
int main() {
  const int n = 1 << 24;
  float *x, *y; int *next;
  cudaMalloc(&x, n * 4); cudaMalloc(&y, n * 4); cudaMalloc(&next, n * 4);
  cudaMemset(x, 0, n * 4); cudaMemset(next, 0, n * 4);
  for (int i = 0; i < 4; ++i) {
    ns::scale<3><<<n / 256, 256>>>(x, y, n);
    ns::scale<5><<<n / 256, 256>>>(x, y, n);
    chase<<<1, 32>>>(next, reinterpret_cast<int*>(y), 20000);
  }
  return cudaDeviceSynchronize() != cudaSuccess;
}
)";

/// ncu always names this one, and gives it no value in a table.
std::vector<std::string> Missing(const KernelProfile& kernel) {
  std::vector<std::string> missing = kernel.missing;
  std::erase(missing, "launch__kernel_name");
  return missing;
}

class Collector : public ::testing::Test {
 protected:
  void SetUp() override {
    auto gpu = cuda::Gpu::Open(0);
    if (!gpu) {
      GTEST_SKIP() << "skipped: no GPU";
    }
    capability_ = static_cast<std::uint32_t>((*gpu)->Attribute(cuda::kAttributeMajor) * 10 +
                                             (*gpu)->Attribute(cuda::kAttributeMinor));
    const NvidiaTool nvcc = FindNvidiaTool("nvcc", {});
    if (!nvcc.found() || !FindNvidiaTool("ncu", {}).found()) {
      GTEST_SKIP() << "skipped: no nvcc or no ncu";
    }
    auto folder = TemporaryFolder::Create("kp-collect");
    ASSERT_TRUE(folder.ok());
    folder_ = std::make_unique<TemporaryFolder>(std::move(folder).value());
    const auto source = folder_->path() / "p.cu";
    ASSERT_TRUE(WriteFileAtomically(source, kProgram).ok());
    ProcessSpec spec;
    spec.argv = {nvcc.path.string(), "-O3", "-lineinfo", fmt::format("-arch=sm_{}", capability_),
                 source.string(),    "-o",  Program()};
    const auto built = RunProcess(spec);
    ASSERT_TRUE(built.ok() && built->Succeeded()) << (built.ok() ? built->err : "");
  }

  [[nodiscard]] std::string Program() const { return (folder_->path() / "p").string(); }

  [[nodiscard]] CollectOptions Options(const std::string& kernel, Depth depth) const {
    CollectOptions options;
    options.run.argv = {Program()};
    options.run.kernel = kernel;
    options.run.launch_skip = 2;
    options.depth = depth;
    options.compute_capability = capability_;
    return options;
  }

  /// Skips where the machine forbids the counters, which other tests cover.
  static bool Refused(const Result<Collection>& collected) {
    return !collected.ok() &&
           collected.error().message.find("ERR_NVGPUCTRPERM") != std::string::npos;
  }

  static void Tell(const Collection& collection) {
    for (const CollectPass& pass : collection.passes) {
      fmt::print("  {}: {} ms{}\n", pass.packs, pass.wall.count(), pass.error);
    }
    for (const KernelProfile& kernel : collection.profile.kernels) {
      fmt::print("  {}: {:.1f} us, {} metrics, {} hot spots, missing [{}], passes {}\n",
                 kernel.name, kernel.time_us, kernel.metrics.size(), kernel.hot_spots.size(),
                 fmt::join(kernel.missing, " "),
                 kernel.Value("profiler__replayer_passes").value_or(-1));
    }
    for (const std::string& note : collection.profile.notes) {
      fmt::print("  note: {}\n", note);
    }
  }

  std::unique_ptr<TemporaryFolder> folder_;
  std::uint32_t capability_ = 0;
};

TEST_F(Collector, EveryMetricOfEverySetComesBack) {
  const auto collected = CollectProfile(Options("chase", Depth::kEverything), {});
  if (Refused(collected)) {
    GTEST_SKIP() << "skipped: " << collected.error().message;
  }
  ASSERT_TRUE(collected.ok()) << collected.error().message;
  Tell(*collected);
  ASSERT_EQ(collected->profile.kernels.size(), 1U);
  const KernelProfile& kernel = collected->profile.kernels[0];
  EXPECT_EQ(kernel.name, "chase");
  EXPECT_THAT(Missing(kernel), IsEmpty());
  ASSERT_THAT(kernel.hot_spots, Not(IsEmpty()));
  // A chase through memory waits for its load.
  EXPECT_GT(kernel.hot_spots[0].stalls.count("long_scoreboard"), 0U);
  EXPECT_EQ(collected->passes.size(), 1U);
}

TEST_F(Collector, TargetedRunsAgreeAndTheTwinIsLeftAlone) {
  // The name as a person writes it; ncu prints "ns::scale<(int)5>".
  const auto collected = CollectProfile(Options("ns::scale<5>", Depth::kTargeted), {});
  if (Refused(collected)) {
    GTEST_SKIP() << "skipped: " << collected.error().message;
  }
  ASSERT_TRUE(collected.ok()) << collected.error().message;
  Tell(*collected);
  ASSERT_EQ(collected->profile.kernels.size(), 1U);
  const KernelProfile& kernel = collected->profile.kernels[0];
  EXPECT_THAT(kernel.name, HasSubstr("5"));
  EXPECT_EQ(kernel.Value(metric::kGridSize), 65536);
  EXPECT_GT(kernel.Value(metric::kDramPct).value_or(0), 35);
  // 16 Mi multiplications, from the patched pass.
  EXPECT_EQ(kernel.Value(metric::kFmul), 16777216);
  EXPECT_THAT(Missing(kernel), IsEmpty());
}

TEST_F(Collector, AWrongNameListsTheKernelsThatWereLaunched) {
  const auto collected = CollectProfile(Options("scael", Depth::kFirst), {});
  ASSERT_FALSE(collected.ok());
  if (Refused(collected)) {
    GTEST_SKIP() << "skipped: " << collected.error().message;
  }
  EXPECT_EQ(collected.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(collected.error().message, HasSubstr("chase"));
}

TEST_F(Collector, PermissionIsJudgedAsNcuFindsIt) {
  CollectOptions options = Options("chase", Depth::kFirst);
  options.sampling = false;
  const auto collected = CollectProfile(options, {});
  const CounterPermission permission = ReadCounterPermission();
  fmt::print("  {}\n", permission.why);
  if (permission.state == CounterPermission::State::kAllowed) {
    EXPECT_TRUE(collected.ok()) << collected.error().message;
  } else if (permission.state == CounterPermission::State::kRefused) {
    EXPECT_TRUE(Refused(collected));
  }
}

/// What it costs beside the full set: printed, not asserted.
TEST_F(Collector, CostBesideTheFullSet) {
  const auto started = std::chrono::steady_clock::now();
  const auto collected = CollectProfile(Options("chase", Depth::kTargeted), {});
  const auto ours = std::chrono::steady_clock::now() - started;
  if (!collected.ok()) {
    GTEST_SKIP() << "skipped: " << collected.error().message;
  }
  ProcessSpec spec;
  spec.argv = {FindNvidiaTool("ncu", {}).path.string(),
               "--set",
               "full",
               "--clock-control",
               "none",
               "--cache-control",
               "none",
               "--kernel-name",
               "chase",
               "--launch-skip",
               "2",
               "--launch-count",
               "1",
               "--csv",
               "--page",
               "raw",
               Program()};
  const auto full = RunProcess(spec);
  ASSERT_TRUE(full.ok() && full->Succeeded());
  Tell(*collected);
  fmt::print("  targeted {} ms, --set full {} ms\n",
             std::chrono::duration_cast<std::chrono::milliseconds>(ours).count(),
             full->elapsed.count());
}

}  // namespace
}  // namespace kernelpro
