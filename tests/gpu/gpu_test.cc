// SPDX-License-Identifier: Apache-2.0
// What only a real GPU can show. Without one every test says "skipped: no GPU".
#include "device/cuda/gpu.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/memory_kernels.h"
#include "device/device.h"
#include "evaluate/evaluator.h"
#include "evaluate/fill.h"
#include "search/workbench.h"
#include "task/task.h"
#include "toolchain/toolchain.h"

namespace kernelpro {
namespace {

namespace fs = std::filesystem;

/// Every tensor of every workload has 64 MB.
constexpr const char* kTask = R"(name = "scale"
axes = ["n"]
flops = "n"
[tolerance]
absolute = 1e-6
relative = 1e-6
[tensors.x]
dtype = "f32"
role = "input"
shape = ["n"]
fill = {kind = "normal", mean = 0, deviation = 1}
[tensors.out]
dtype = "f32"
role = "output"
shape = ["n"]
[[workloads]]
name = "timed"
kind = "timed"
axes = {n = 16777216}
[[workloads]]
name = "first"
kind = "checked"
axes = {n = 16777216}
[[workloads]]
name = "second"
kind = "checked"
axes = {n = 16777215}
[[workloads]]
name = "third"
kind = "hidden"
axes = {n = 16777000}
)";

constexpr const char* kReference = R"(#include "kernelpro_reference.h"
extern "C" void kernelpro_reference(const ReferenceArgs* a) {
  for (int64_t i = 0; i < a->n; ++i) {
    a->out[i] = 3 * a->x[i] + 1;
  }
}
)";

/// The kernel's body with room for what it does besides.
std::string Source(const std::string& device, const std::string& host) {
  return fmt::format(R"(#include "kernelpro_task.h"
#include <unistd.h>
#include <cstdio>
__global__ void Scale(const float* x, float* out, int64_t n) {{
  const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  {}
  if (i < n) {{
    out[i] = 3 * x[i] + 1;
  }}
}}
extern "C" cudaError_t kernelpro_run(const TaskArgs* a, cudaStream_t stream) {{
  {}
  Scale<<<static_cast<unsigned>((a->n + 255) / 256), 256, 0, stream>>>(a->x, a->out, a->n);
  return cudaGetLastError();
}}
)",
                     device, host);
}

struct Case {
  std::string device, host;
  Verdict verdict;
};

class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda::CountGpus() == 0) {
      GTEST_SKIP() << "skipped: no GPU";
    }
    auto folder = TemporaryFolder::Create("kp-gpu");
    ASSERT_TRUE(folder.ok());
    folder_ = std::make_unique<TemporaryFolder>(std::move(folder).value());
    ASSERT_TRUE(WriteFileAtomically(folder_->path() / "task" / "task.toml", kTask).ok());
    ASSERT_TRUE(WriteFileAtomically(folder_->path() / "task" / "reference.cc", kReference).ok());
    auto task = LoadTask(folder_->path() / "task");
    ASSERT_TRUE(task.ok()) << task.error().message;
    task_ = *task;
    auto device = OpenDevice("cuda");
    ASSERT_TRUE(device.ok()) << device.error().message;
    device_ = std::move(device).value();
    auto toolchain = Toolchain::Find(folder_->path() / "cache");
    ASSERT_TRUE(toolchain.ok()) << toolchain.error().message;
    toolchain_ = std::move(toolchain).value();
  }

  [[nodiscard]] BuildOutcome Compile(const std::string& source) {
    Candidate candidate;
    candidate.source = source;
    auto outcome =
        toolchain_->Compile(search::MakeBuildRequest(task_, candidate, device_->info()), {});
    EXPECT_TRUE(outcome.ok());
    EXPECT_TRUE(outcome.ok() && outcome->build) << source;
    return outcome.ok() ? *outcome : BuildOutcome();
  }

  [[nodiscard]] std::unique_ptr<Evaluator> MakeEvaluator(std::chrono::milliseconds call_limit) {
    EvaluatorOptions options;
    options.cache_folder = folder_->path() / "cache";
    options.call_limit = call_limit;
    options.baseline = Compile(Source("", "")).build;
    auto evaluator = Evaluator::Create(task_, *device_, options);
    EXPECT_TRUE(evaluator.ok()) << (evaluator.ok() ? "" : evaluator.error().message);
    return evaluator.ok() ? std::move(evaluator).value() : nullptr;
  }

  std::unique_ptr<TemporaryFolder> folder_;
  Task task_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Toolchain> toolchain_;
};

TEST_F(GpuTest, RefereesKernelsDoWhatTheHostDoes) {
  cuda::Gpu& gpu = *device_->gpu();
  for (const std::size_t bytes :
       {std::size_t{1}, std::size_t{7}, std::size_t{4096}, std::size_t{100'003}}) {
    auto memory = gpu.Allocate(bytes);
    ASSERT_TRUE(memory.ok());
    gpu.kernels().Poison(memory->address(), bytes, 42);
    std::vector<std::byte> got(bytes);
    ASSERT_TRUE(gpu.Download(got, memory->address()).ok());
    std::vector<std::byte> want(bytes);
    Poison(want, 42);
    EXPECT_EQ(got, want) << bytes;
  }
}

TEST_F(GpuTest, ComparisonFindsOneWrongElementAnywhere) {
  cuda::Gpu& gpu = *device_->gpu();
  constexpr std::size_t kCount = 100'003;
  std::vector<double> want(kCount, 1.0);
  auto expected = gpu.Allocate(kCount * sizeof(double));
  auto memory = gpu.Allocate(kCount * sizeof(float));
  auto result = gpu.Allocate(sizeof(cuda::Comparison));
  ASSERT_TRUE(expected.ok() && memory.ok() && result.ok());
  ASSERT_TRUE(gpu.Upload(expected->address(), std::as_bytes(std::span(want))).ok());
  for (const std::size_t wrong : {kCount, std::size_t{0}, kCount / 2, kCount - 1}) {
    std::vector<float> got(kCount, 1.0F);
    if (wrong < kCount) {
      got[wrong] = 1.5F;
    }
    ASSERT_TRUE(gpu.Upload(memory->address(), std::as_bytes(std::span(got))).ok());
    cuda::Comparison found;
    ASSERT_TRUE(gpu.Upload(result->address(), std::as_bytes(std::span(&found, 1))).ok());
    cuda::CompareRule rule;
    rule.count = kCount;
    rule.absolute = 0.01;
    rule.overflow = 1e38;
    gpu.kernels().Compare(memory->address(), expected->address(), rule, result->address());
    ASSERT_TRUE(gpu.Download(std::as_writable_bytes(std::span(&found, 1)), result->address()).ok());
    EXPECT_EQ(found.failed, wrong < kCount ? 1U : 0U);
    EXPECT_EQ(found.first_failed, wrong < kCount ? wrong : ~0ULL);
    EXPECT_DOUBLE_EQ(found.max_absolute, wrong < kCount ? 0.5 : 0.0);
  }
}

// 100 candidates, 10 of which crash or hang: every verdict is right, the next one runs as if
// nothing had happened, and neither memory nor processes are left.
TEST_F(GpuTest, AHundredCandidatesWithTenThatCrash) {
  const std::vector<Case> bad = {
      {"if (i == 5) { out[1LL << 40] = 1; }", "", Verdict::kOutOfBounds},
      {"if (i == 5) { __trap(); }", "", Verdict::kRuntimeError},
      {"if (i == 5) { *(volatile float*)((char*)out + 2) = 1; }", "", Verdict::kRuntimeError},
      {"while (i >= 0 && clock64() != 0) { }", "", Verdict::kTimeout},
      {"", "for (;;) { usleep(1000); }", Verdict::kTimeout},
      {"", "*(volatile int*)nullptr = 1;", Verdict::kRuntimeError},
      {"", "_exit(0);", Verdict::kRuntimeError},
      {"", "fork();", Verdict::kPolicyViolation},
      {"", "void* p; return cudaMalloc(&p, 1ull << 42);", Verdict::kOutOfMemory},
      {"if (i == 5) { printf(\"%d\\n\", int(i)); }", "", Verdict::kOk}};
  const auto evaluator = MakeEvaluator(std::chrono::milliseconds(3000));
  ASSERT_NE(evaluator, nullptr);
  const BuildOutcome good = Compile(Source("", ""));
  ASSERT_TRUE(evaluator->Evaluate(good, {}).ok());  // What is kept from now on is kept.
  const std::uint64_t free_before = device_->gpu()->FreeBytes();
  for (int i = 0; i < 100; ++i) {
    const Case* const c = i % 10 == 5 ? &bad[static_cast<std::size_t>(i / 10)] : nullptr;
    const BuildOutcome build = c == nullptr ? good : Compile(Source(c->device, c->host));
    const auto evaluation = evaluator->Evaluate(build, {});
    ASSERT_TRUE(evaluation.ok()) << evaluation.error().message;
    EXPECT_EQ(Name(evaluation->verdict), Name(c == nullptr ? Verdict::kOk : c->verdict))
        << i << ": " << evaluation->reason;
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const std::uint64_t free_after = device_->gpu()->FreeBytes();
  EXPECT_LT(free_before - std::min(free_before, free_after), 64U << 20U);
  // The baseline's process stays; no other child does.
  std::size_t children = 0;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const auto stat = ReadFile(entry.path() / "stat");
    children += stat.ok() && stat->find("(kernelpro-runn") != std::string::npos &&
                        stat->find(") Z ") == std::string::npos
                    ? 1
                    : 0;
  }
  EXPECT_LE(children, 2U);
}

// Not an assertion but a figure: docs/measurements has it.
TEST_F(GpuTest, CostOfAnEvaluation) {
  const auto evaluator = MakeEvaluator(std::chrono::milliseconds(10'000));
  ASSERT_NE(evaluator, nullptr);
  const BuildOutcome good = Compile(Source("", ""));
  fmt::print(
      "evaluation of 3 checked and 1 timed workload of 64 MB, milliseconds:\n"
      "  all  start  check  time\n");
  for (int i = 0; i < 6; ++i) {
    device_->Prepare();  // As while a compiler runs.
    std::this_thread::sleep_for(std::chrono::milliseconds(i % 2 == 0 ? 0 : 800));
    const auto e = evaluator->Evaluate(good, {});
    ASSERT_TRUE(e.ok()) << e.error().message;
    EXPECT_EQ(e->verdict, Verdict::kOk) << e->reason;
    fmt::print("{:5.0f}  {:5.0f}  {:5.0f}  {:4.0f}  {}\n", e->evaluate_ms, e->start_ms, e->check_ms,
               e->time_ms,
               i == 0       ? "first: reference, inputs and baseline as well"
               : i % 2 == 0 ? "process started now"
                            : "process started while compiling");
  }
}

}  // namespace
}  // namespace kernelpro
