// SPDX-License-Identifier: Apache-2.0
// Planted faults under NVIDIA's compute-sanitizer on a real GPU, each found by the tool for it, and
// an honest twin that all four find clean. Without a GPU every test says "skipped: no GPU".
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "base/file.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/gpu.h"
#include "device/device.h"
#include "evaluate/sanitizers.h"
#include "search/workbench.h"
#include "task/task.h"
#include "toolchain/toolchain.h"

namespace kernelpro {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTask = R"(name = "block_sum"
axes = ["n"]
flops = "n"
[tensors.x]
dtype = "f32"
role = "input"
shape = ["n"]
[tensors.out]
dtype = "f32"
role = "output"
shape = ["n"]
[[workloads]]
name = "timed"
kind = "timed"
axes = {n = 65536}
[[workloads]]
name = "even"
kind = "checked"
axes = {n = 4096}
[[workloads]]
name = "odd"
kind = "hidden"
axes = {n = 1003}
)";

/// out[i] = x[i] + what its block's neighbour thread has. Every fault is one word away from right.
std::string Source(const std::string& bound, const std::string& barrier,
                   const std::string& before) {
  return fmt::format(R"(#include "kernelpro_task.h"
__global__ void Neighbour(const float* x, float* out, int64_t n) {{
  __shared__ float kept[128];
  const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  kept[threadIdx.x] = i < n ? x[i] : 0.0f;
  {}
  const float other = kept[(threadIdx.x + 64) % 128];
  if (i < n + {}) {{
    out[i] = {}other;
  }}
}}
extern "C" cudaError_t kernelpro_run(const TaskArgs* a, cudaStream_t stream) {{
  Neighbour<<<static_cast<unsigned>(a->n / 128 + 1), 128, 0, stream>>>(a->x, a->out, a->n);
  return cudaGetLastError();
}}
)",
                     barrier, bound, before);
}

class SanitizerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda::CountGpus() == 0) {
      GTEST_SKIP() << "skipped: no GPU";
    }
    auto folder = TemporaryFolder::Create("kp-gpu-sanitizer");
    ASSERT_TRUE(folder.ok());
    folder_ = std::make_unique<TemporaryFolder>(std::move(folder).value());
    auto task = ParseTask(kTask, "task.toml");
    ASSERT_TRUE(task.ok()) << task.error().message;
    task_ = *task;
    auto device = OpenDevice("cuda");
    ASSERT_TRUE(device.ok()) << device.error().message;
    device_ = std::move(device).value();
    auto toolchain = Toolchain::Find(folder_->path() / "cache");
    ASSERT_TRUE(toolchain.ok()) << toolchain.error().message;
    toolchain_ = std::move(toolchain).value();
    request_.toolkit = toolchain_->toolkit();
    request_.tool = FindComputeSanitizer(request_.toolkit);
    if (request_.tool.empty()) {
      GTEST_SKIP() << "skipped: no compute-sanitizer";
    }
    auto recipe = cuda::RunnerRecipe::Find(device_->gpu()->uuid());
    ASSERT_TRUE(recipe.ok()) << recipe.error().message;
    request_.recipe = *recipe;
  }

  [[nodiscard]] SanitizerReport Run(const std::string& source) {
    Candidate candidate;
    candidate.source = source;
    auto outcome =
        toolchain_->Compile(search::MakeBuildRequest(task_, candidate, device_->info()), {});
    EXPECT_TRUE(outcome.ok() && outcome->build) << source;
    if (!outcome.ok() || !outcome->build) {
      return {};
    }
    request_.library = outcome->build->library;
    auto report = RunSanitizers(task_, request_, {});
    EXPECT_TRUE(report.ok());
    if (!report.ok()) {
      return {};
    }
    fmt::print("{}\n", Describe(*report));
    for (const SanitizerRun& run : report->runs) {
      fmt::print("  {:<10} {} errors, {} ms\n", run.tool, run.errors, run.elapsed.count());
    }
    return std::move(report).value();
  }

  /// The run of one tool found something, and says where.
  static void ExpectFound(const SanitizerReport& report, const std::string& tool, Verdict verdict) {
    for (const SanitizerRun& run : report.runs) {
      if (run.tool == tool) {
        EXPECT_TRUE(run.ran) << run.first_message;
        EXPECT_GT(run.errors, 0U);
        EXPECT_THAT(run.first_message, ::testing::HasSubstr("Neighbour"));
      }
    }
    const auto condemned = JudgeSanitizers(report);
    ASSERT_TRUE(condemned);
    EXPECT_EQ(Name(condemned->verdict), Name(verdict)) << condemned->reason;
  }

  std::unique_ptr<TemporaryFolder> folder_;
  Task task_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Toolchain> toolchain_;
  SanitizerRequest request_;
};

TEST_F(SanitizerTest, TheHonestTwinIsClean) {
  const std::string source = Source("0", "__syncthreads();", "");
  const SanitizerReport report = Run(source);
  fmt::print("in: {}\n", Describe(report.confinement));
  EXPECT_TRUE(report.Clean()) << Describe(report);
  EXPECT_EQ(report.workloads, 2U);
  if (!report.Clean()) {  // Whose fault it is: the tool's here, or the confinement's.
    request_.confine = false;
    fmt::print("the same without confinement:\n");
    (void)Run(source);
  }
}

TEST_F(SanitizerTest, OneElementTooFarIsOutOfBounds) {
  ExpectFound(Run(Source("1", "__syncthreads();", "")), "memcheck", Verdict::kOutOfBounds);
}

TEST_F(SanitizerTest, AMissingBarrierIsARace) {
  ExpectFound(Run(Source("0", "", "")), "racecheck", Verdict::kRace);
}

TEST_F(SanitizerTest, AnOutputThatIsReadBeforeItIsWrittenIsNondeterministic) {
  ExpectFound(Run(Source("0", "__syncthreads();", "out[i] * 0.0f + ")), "initcheck",
              Verdict::kNondeterministic);
}

TEST_F(SanitizerTest, ABarrierThatNotAllReachIsARuntimeError) {
  // Behind the right barrier one for half of each warp. The hardware lets it pass: the others end.
  ExpectFound(
      Run(Source("0", "__syncthreads(); if (threadIdx.x % 32 < 16) { __syncthreads(); }", "")),
      "synccheck", Verdict::kRuntimeError);
}

}  // namespace
}  // namespace kernelpro
