// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/file.h"
#include "task/task.h"
#include "toolchain/toolchain.h"

namespace kernelpro {
namespace {

namespace fs = std::filesystem;
using Kind = CompileFailure::Kind;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kGood = R"(#include <cuda_runtime.h>
__global__ void Twice(const float* x, float* y, int n) {
  __shared__ float tile[64];
  int unused;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = i < n ? x[i] : 0;
  __syncthreads();
  if (i < n) y[i] = 2 * tile[63 - threadIdx.x];
}
extern "C" cudaError_t kernelpro_run(const void*, cudaStream_t stream) {
  Twice<<<1, 64, 0, stream>>>(nullptr, nullptr, 0);
  return cudaGetLastError();
}
)";

/// The limits of these tests are there to be hit on purpose only: the machine may be very busy.
ToolchainLimits Patient() {
  ToolchainLimits limits;
  limits.wall = std::chrono::minutes(8);
  return limits;
}

class NvccTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto folder = TemporaryFolder::Create("kp-nvcc");
    ASSERT_TRUE(folder.ok());
    folder_ = new TemporaryFolder(std::move(folder).value());
  }

  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }

  static std::unique_ptr<Toolchain> Open(ToolchainLimits limits = Patient()) {
    auto toolchain = Toolchain::Find(folder_->path() / "cache", limits);
    EXPECT_TRUE(toolchain.ok()) << (toolchain.ok() ? "" : toolchain.error().message);
    return toolchain.ok() ? std::move(toolchain).value() : nullptr;
  }

  static BuildOutcome Compile(const BuildRequest& request, ToolchainLimits limits = Patient()) {
    auto outcome = Open(limits)->Compile(request, {});
    EXPECT_TRUE(outcome.ok()) << (outcome.ok() ? "" : outcome.error().message);
    return outcome.ok() ? std::move(outcome).value() : BuildOutcome();
  }

  static BuildOutcome CompileText(std::string_view source, ToolchainLimits limits = Patient()) {
    BuildRequest request;
    request.source = std::string(source);
    return Compile(request, limits);
  }

  static CompileFailure Failure(std::string_view source, ToolchainLimits limits = Patient()) {
    BuildOutcome outcome = CompileText(source, limits);
    EXPECT_TRUE(outcome.failure.has_value());
    return outcome.failure.value_or(CompileFailure());
  }

  static bool WorkIsGone() { return fs::is_empty(folder_->path() / "cache" / "work"); }

  static TemporaryFolder* folder_;
};

TemporaryFolder* NvccTest::folder_ = nullptr;

TEST_F(NvccTest, AGoodBuildHasFilesFiguresAndWarnings) {
  const BuildOutcome outcome = CompileText(kGood);
  ASSERT_TRUE(outcome.build.has_value());
  EXPECT_FALSE(outcome.failure.has_value());
  const Build& build = *outcome.build;
  EXPECT_FALSE(build.from_cache);
  EXPECT_GT(build.elapsed.count(), 0);

  EXPECT_EQ(ReadFile(build.library)->substr(0, 4),
            "\x7f"
            "ELF");
  EXPECT_EQ(ReadFile(build.cubin)->substr(0, 4),
            "\x7f"
            "ELF");
  const std::string ptx = *ReadFile(build.ptx);
  EXPECT_THAT(ptx, HasSubstr(".target sm_90"));
  EXPECT_THAT(ptx, HasSubstr("\t.loc\t1 8 "));
  const fs::path source = build.library.parent_path() / "candidate.cu";
  EXPECT_THAT(ptx, HasSubstr(".file\t1 \"" + source.string() + "\""));
  EXPECT_EQ(*ReadFile(source), kGood) << "line information leads to the source";

  ASSERT_EQ(build.kernels.size(), 1U);
  const auto& [name, figures] = *build.kernels.begin();
  EXPECT_EQ(name, "_Z5TwicePKfPfi");
  EXPECT_EQ(figures.shared_bytes, 256U);
  EXPECT_EQ(figures.barriers, 1U);
  EXPECT_GT(figures.registers, 0U);

  ASSERT_EQ(build.diagnostics.size(), 1U);
  EXPECT_EQ(build.diagnostics[0].severity, Diagnostic::Severity::kWarning);
  EXPECT_EQ(build.diagnostics[0].file, "candidate.cu");
  EXPECT_EQ(build.diagnostics[0].line, 4U);
  EXPECT_THAT(build.diagnostics[0].text, HasSubstr("unused"));

  const BuildOutcome again = CompileText(kGood);
  ASSERT_TRUE(again.build.has_value());
  EXPECT_TRUE(again.build->from_cache);
  EXPECT_EQ(again.build->key, build.key);
  EXPECT_EQ(again.build->kernels.size(), 1U);
  EXPECT_EQ(again.build->diagnostics.size(), 1U);

  ASSERT_TRUE(WriteFileAtomically(build.cubin, "damaged").ok());
  const BuildOutcome rebuilt = CompileText(kGood);
  ASSERT_TRUE(rebuilt.build.has_value());
  EXPECT_FALSE(rebuilt.build->from_cache);
  EXPECT_NE(*ReadFile(rebuilt.build->cubin), "damaged");
  EXPECT_TRUE(WorkIsGone());
}

// As on machines where the nvcc on $PATH is a script that starts the one of the toolkit.
TEST_F(NvccTest, AWrapperScriptOnThePathWorks) {
  const fs::path folder = folder_->path() / "wrapper";
  fs::create_directories(folder);
  const fs::path real = Open()->nvcc();
  ASSERT_TRUE(WriteFileAtomically(folder / "nvcc",
                                  "#!/bin/sh\nexec " + fs::canonical(real).string() + " \"$@\"\n")
                  .ok());
  fs::permissions(folder / "nvcc", fs::perms::owner_all);
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", (folder.string() + ":" + path).c_str(), 1);
  const auto toolchain = Open();
  ::setenv("PATH", path.c_str(), 1);
  ASSERT_NE(toolchain, nullptr);
  EXPECT_EQ(toolchain->nvcc(), folder / "nvcc");
  EXPECT_TRUE(fs::exists(toolchain->toolkit() / "include" / "cuda_runtime.h"));
  BuildRequest request;
  request.source = std::string(kGood) + "// through a wrapper\n";
  const auto outcome = toolchain->Compile(request, {});
  ASSERT_TRUE(outcome.ok());
  EXPECT_TRUE(outcome->build.has_value());
}

TEST_F(NvccTest, EverythingThatMattersIsInTheKey) {
  const auto toolchain = Open();
  BuildRequest request;
  request.source = std::string(kGood);
  request.headers["kernelpro_task.h"] = "// a\n";
  std::set<std::string> keys;
  const auto add = [&] {
    auto outcome = toolchain->Compile(request, {});
    ASSERT_TRUE(outcome.ok());
    ASSERT_TRUE(outcome->build.has_value());
    keys.insert(outcome->build->key);
  };
  add();
  request.headers["kernelpro_task.h"] = "// b\n";
  add();
  request.flags = {"-DX=1"};
  add();
  request.arch = "sm_90a";
  add();
  EXPECT_EQ(keys.size(), 4U);
}

TEST_F(NvccTest, TwoThreadsWithOneKeyCompileOnce) {
  const auto toolchain = Open();
  BuildRequest request;
  request.source = std::string(kGood) + "// two threads\n";
  std::vector<BuildOutcome> outcomes(2);
  {
    std::vector<std::jthread> threads;
    for (BuildOutcome& outcome : outcomes) {
      threads.emplace_back([&] {
        auto result = toolchain->Compile(request, {});
        ASSERT_TRUE(result.ok());
        outcome = std::move(result).value();
      });
    }
  }
  ASSERT_TRUE(outcomes[0].build.has_value());
  ASSERT_TRUE(outcomes[1].build.has_value());
  EXPECT_EQ(outcomes[0].build->library, outcomes[1].build->library);
  EXPECT_NE(outcomes[0].build->from_cache, outcomes[1].build->from_cache);
}

TEST_F(NvccTest, ErrorsHaveFileAndLine) {
  const CompileFailure failure = Failure("int a;\n\nint b = missing;\n");
  EXPECT_EQ(failure.kind, Kind::kErrors);
  ASSERT_FALSE(failure.diagnostics.empty());
  EXPECT_EQ(failure.diagnostics[0].file, "candidate.cu");
  EXPECT_EQ(failure.diagnostics[0].line, 3U);
  EXPECT_THAT(failure.diagnostics[0].text, HasSubstr("missing"));
  EXPECT_THAT(failure.log, HasSubstr("missing"));
  EXPECT_THAT(failure.log, Not(HasSubstr(folder_->path().string())));
  EXPECT_TRUE(WorkIsGone());
}

TEST_F(NvccTest, ErrorsOfPtxasAndTheLinkerToo) {
  const CompileFailure shared = Failure(
      "__global__ void k(float* y) { __shared__ float a[60000]; a[threadIdx.x] = y[0];\n"
      "  __syncthreads(); y[1] = a[5]; }\n");
  ASSERT_FALSE(shared.diagnostics.empty());
  EXPECT_THAT(shared.diagnostics[0].text, HasSubstr("too much shared data"));
  const CompileFailure missing = Failure("void nowhere();\nvoid g() { nowhere(); }\n");
  ASSERT_FALSE(missing.diagnostics.empty());
  EXPECT_THAT(missing.diagnostics[0].text, HasSubstr("undefined reference to `nowhere()'"));
}

TEST_F(NvccTest, HostileSourcesEndAsFailures) {
  ToolchainLimits small = Patient();
  small.memory_bytes = 2ULL << 30U;
  EXPECT_EQ(Failure("#include \"candidate.cu\"\n", small).kind, Kind::kErrors);
  EXPECT_EQ(Failure("#include \"/dev/zero\"\n", small).kind, Kind::kMemory);
  EXPECT_EQ(Failure("template <int N> struct A { static constexpr int v = A<N + 1>::v; };\n"
                    "int x = A<0>::v;\n",
                    small)
                .kind,
            Kind::kErrors);
  std::string binary;
  for (int i = 0; i < 20'000; ++i) {
    binary += static_cast<char>((i * 7919 + i / 13) & 0xff);
  }
  const CompileFailure garbage = Failure(binary, small);
  EXPECT_FALSE(garbage.diagnostics.empty());
  EXPECT_LE(garbage.log.size(), (64U << 10U) + 16U);
  EXPECT_TRUE(WorkIsGone());
}

TEST_F(NvccTest, FilesOfTheHostAreNotQuoted) {
  const fs::path secret = folder_->path() / "secret.txt";
  ASSERT_TRUE(WriteFileAtomically(secret, "int hunter2(\n").ok());
  for (const std::string& source :
       {fmt::format("#include \"{}\"\n", secret.string()),
        fmt::format("#define S \"{}\"\n#include S\n", secret.string()),
        fmt::format("#ifdef __CUDA_ARCH__\n#include \"{}\"\n#endif\n", secret.string())}) {
    const CompileFailure failure = Failure(source);
    EXPECT_THAT(failure.diagnostics[0].text, HasSubstr("belongs neither to")) << source;
    EXPECT_THAT(failure.log, Not(HasSubstr("hunter2")));
  }
  const CompileFailure renamed =
      Failure(fmt::format("#line 1 \"{}\"\nint f() {{ int 'x; }}\n#error e\n", secret.string()));
  EXPECT_THAT(renamed.log, Not(HasSubstr("hunter2")));
  ASSERT_TRUE(WriteFileAtomically(secret, "int fine;\n").ok());
  EXPECT_FALSE(CompileText(fmt::format("#include \"{}\"\n", secret.string())).build.has_value())
      << "also when it compiles";
}

TEST_F(NvccTest, TimeIsLimitedAndCanBeStopped) {
  ToolchainLimits hasty;
  hasty.wall = std::chrono::milliseconds(20);
  const CompileFailure failure = Failure(std::string(kGood) + "// hasty\n", hasty);
  EXPECT_EQ(failure.kind, Kind::kTimeout);
  EXPECT_FALSE(failure.diagnostics.empty());
  std::stop_source stop;
  stop.request_stop();
  BuildRequest request;
  request.source = std::string(kGood) + "// stopped\n";
  const auto stopped = Open()->Compile(request, stop.get_token());
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().code, ErrorCode::kCancelled);
  EXPECT_TRUE(WorkIsGone());
}

TEST_F(NvccTest, RefusesFlagsAndOddRequests) {
  BuildRequest request;
  request.source = std::string(kGood);
  request.flags = {"-I/etc"};
  const BuildOutcome outcome = Compile(request);
  ASSERT_TRUE(outcome.failure.has_value());
  EXPECT_EQ(outcome.failure->kind, Kind::kForbiddenFlag);
  EXPECT_THAT(outcome.failure->diagnostics[0].text, HasSubstr("-I/etc"));
  const auto toolchain = Open();
  EXPECT_THAT(toolchain->version(), HasSubstr("nvcc "));
  const auto code = [&](const BuildRequest& bad) {
    const auto result = toolchain->Compile(bad, {});
    return result.ok() ? ErrorCode::kInternal : result.error().code;
  };
  EXPECT_EQ(code({.source = "", .file_name = "../k.cu", .headers = {}, .flags = {}}),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({.source = "", .file_name = "k.cu", .headers = {{"/etc/x.h", ""}}, .flags = {}}),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(
      code({.source = "", .file_name = "k.cu", .headers = {}, .flags = {}, .arch = "sm_90,x"}),
      ErrorCode::kInvalidArgument);
}

TEST_F(NvccTest, SaysWhereItLooked) {
  const std::string path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): one thread
  if (fs::exists("/usr/local/cuda/bin/nvcc")) {
    setenv("PATH", "/nowhere", 1);  // NOLINT(concurrency-mt-unsafe)
    const auto found = Toolchain::Find(folder_->path() / "cache");
    setenv("PATH", path.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    ASSERT_FALSE(found.ok()) << "nvcc is found, its g++ is not";
    EXPECT_THAT(found.error().message, HasSubstr("g++"));
    return;
  }
  setenv("PATH", "/nowhere", 1);  // NOLINT(concurrency-mt-unsafe)
  const auto found = Toolchain::Find(folder_->path() / "cache");
  setenv("PATH", path.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(found.error().message, HasSubstr("/usr/local/cuda/bin"));
}

/// A source that compiles only when the header's struct is laid out as the layout says.
std::string LayoutAsserts(const ArgsLayout& layout, std::string_view type) {
  std::string text = fmt::format("static_assert(sizeof({}) == {});\n", type, layout.bytes);
  for (const ArgsField& field : layout.fields) {
    text += fmt::format("static_assert(__builtin_offsetof({}, {}) == {});\n", type, field.name,
                        field.offset);
  }
  return text;
}

Task MixedTask() {
  auto task = ParseTask(R"(name = "mixed"
axes = ["rows"]
flops = "rows"
[tensors]
a = {dtype = "bf16", role = "input", shape = ["rows"]}
b = {dtype = "f16", role = "input", shape = ["rows"]}
c = {dtype = "u32", role = "input", shape = ["rows"]}
d = {dtype = "i8", role = "output", shape = ["rows"]}
[scalars]
flag = {dtype = "u8", value = 1}
half = {dtype = "f16", value = 1}
wide = {dtype = "f64", value = 1}
brain = {dtype = "bf16", value = 1}
single = {dtype = "f32", value = 1}
[[workloads]]
name = "w"
kind = "timed"
axes = {rows = 8}
)",
                        "task.toml");
  EXPECT_TRUE(task.ok());
  return std::move(task).value();
}

TEST_F(NvccTest, GeneratedHeadersHaveThePromisedLayout) {
  const Task task = MixedTask();
  BuildRequest request;
  request.headers["kernelpro_task.h"] = CandidateHeader(task);
  request.source =
      "#include \"kernelpro_task.h\"\n" + LayoutAsserts(TaskArgsLayout(task), "TaskArgs");
  const BuildOutcome candidate = Compile(request);
  EXPECT_TRUE(candidate.build.has_value()) << candidate.failure->log;
  ReferenceRequest reference;
  reference.header = ReferenceHeader(task);
  reference.source = "#include \"kernelpro_reference.h\"\n" +
                     LayoutAsserts(ReferenceArgsLayout(task), "ReferenceArgs");
  const auto built = CompileReference(reference, folder_->path() / "cache", Patient(), {});
  ASSERT_TRUE(built.ok());
  EXPECT_TRUE(built->build.has_value()) << built->failure->log;
}

TEST_F(NvccTest, AReferenceCompilesLoadsAndComesFromTheCache) {
  ReferenceRequest request;
  request.header = "struct ReferenceArgs { double* y; };\n";
  request.source =
      "#include \"kernelpro_reference.h\"\n"
      "extern \"C\" void kernelpro_reference(const ReferenceArgs* a) { *a->y = 42; }\n";
  const fs::path cache = folder_->path() / "cache";
  const auto built = CompileReference(request, cache, Patient(), {});
  ASSERT_TRUE(built.ok());
  ASSERT_TRUE(built->build.has_value()) << built->failure->log;
  void* library = dlopen(built->build->library.c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr);

  struct Args {
    double* y;
  };

  auto* run = reinterpret_cast<void (*)(const Args*)>(dlsym(library, "kernelpro_reference"));
  ASSERT_NE(run, nullptr);
  double y = 0;
  const Args args{&y};
  run(&args);
  EXPECT_EQ(y, 42);
  dlclose(library);
  EXPECT_TRUE(CompileReference(request, cache, Patient(), {})->build->from_cache);

  request.source = "#include \"kernelpro_reference.h\"\nint x = nothing;\n";
  const auto failed = CompileReference(request, cache, Patient(), {});
  ASSERT_TRUE(failed.ok());
  ASSERT_TRUE(failed->failure.has_value());
  EXPECT_EQ(failed->failure->diagnostics[0].file, "reference.cc");
  EXPECT_EQ(failed->failure->diagnostics[0].line, 2U);
}

class ExampleTask : public NvccTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(ExampleTask, SeedAndReferenceCompileWithoutMessages) {
  const fs::path folder = fs::path(KP_SOURCE_DIR) / "examples" / "tasks" / GetParam();
  const auto task = LoadTask(folder);
  ASSERT_TRUE(task.ok()) << task.error().message;
  BuildRequest request;
  request.source = *ReadFile(task->seed);
  request.headers["kernelpro_task.h"] = CandidateHeader(*task);
  const BuildOutcome seed = Compile(request);
  ASSERT_TRUE(seed.build.has_value()) << seed.failure->log;
  EXPECT_TRUE(seed.build->diagnostics.empty()) << seed.build->diagnostics[0].text;
  EXPECT_EQ(seed.build->kernels.size(), 1U);
  ReferenceRequest reference;
  reference.source = *ReadFile(task->reference);
  reference.header = ReferenceHeader(*task);
  const auto built = CompileReference(reference, folder_->path() / "cache", Patient(), {});
  ASSERT_TRUE(built.ok());
  ASSERT_TRUE(built->build.has_value()) << built->failure->log;
  EXPECT_TRUE(built->build->diagnostics.empty());
}

INSTANTIATE_TEST_SUITE_P(All, ExampleTask,
                         ::testing::Values("row_softmax", "transpose", "matmul", "layer_norm",
                                           "block_sum"));

}  // namespace
}  // namespace kernelpro
