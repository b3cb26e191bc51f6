// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "base/file.h"
#include "process/landlock.h"
#include "toolchain/compile_sandbox.h"
#include "toolchain/toolchain.h"

namespace kernelpro {
namespace {

using testing::HasSubstr;
using testing::Not;

bool On(const std::vector<ConfinementReport>& measures, std::string_view name) {
  return std::ranges::any_of(measures, [&](const auto& m) { return m.name == name && m.on; });
}

class CompilerSandboxTest : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = TemporaryFolder::Create("kp-compiler-sandbox");
    ASSERT_TRUE(folder.ok());
    folder_.emplace(std::move(*folder));
  }

  BuildOutcome Compile(const std::string& source, ToolchainLimits limits = {}) {
    auto toolchain = Toolchain::Find(folder_->path() / "cache", limits);
    EXPECT_TRUE(toolchain.ok());
    BuildRequest request;
    request.source = source;
    auto outcome = (*toolchain)->Compile(request, {});
    EXPECT_TRUE(outcome.ok()) << outcome.error().message;
    return std::move(outcome).value();
  }

  std::filesystem::path Secret() {
    const std::filesystem::path secret = folder_->path() / "secret.txt";
    EXPECT_TRUE(WriteFileAtomically(secret, "hunter2").ok());
    return secret;
  }

  std::optional<TemporaryFolder> folder_;
};

TEST_F(CompilerSandboxTest, AnAssemblerCannotTakeAFileIn) {
  if (landlock::Version() < 1) {
    GTEST_SKIP() << "skipped: this kernel has no Landlock";
  }
  const BuildOutcome outcome =
      Compile(fmt::format("asm(\".section .rodata\\n.incbin \\\"{}\\\"\\n.text\");\n"
                          "extern \"C\" int kernelpro_run(const void*, void*) {{ return 0; }}\n",
                          Secret().string()));
  EXPECT_FALSE(outcome.build.has_value());
  ASSERT_TRUE(outcome.failure.has_value());
  EXPECT_EQ(outcome.failure->kind, CompileFailure::Kind::kErrors);
  EXPECT_THAT(outcome.failure->log, Not(HasSubstr("hunter2")));
}

TEST_F(CompilerSandboxTest, AnIncludeCannotReadEither) {
  const BuildOutcome outcome = Compile(fmt::format("#include \"{}\"\n", Secret().string()));
  ASSERT_TRUE(outcome.failure.has_value());
  EXPECT_THAT(outcome.failure->diagnostics[0].text, HasSubstr("belongs neither to"));
  EXPECT_THAT(outcome.failure->log, Not(HasSubstr("hunter2")));
}

TEST_F(CompilerSandboxTest, AnHonestCandidateCompilesAndTheMeasuresAreTold) {
  const BuildOutcome outcome = Compile(
      "#include <cuda_fp16.h>\n#include <vector>\n#include <cooperative_groups.h>\n"
      "__global__ void k(__half* x) { x[threadIdx.x] = __half(1); }\n"
      "extern \"C\" int kernelpro_run(const void*, void*) { return std::vector<int>(3).size(); "
      "}\n");
  ASSERT_TRUE(outcome.build.has_value()) << outcome.failure->log;
  EXPECT_TRUE(On(outcome.sandbox, "seccomp"));
  EXPECT_TRUE(On(outcome.sandbox, "no network"));
  EXPECT_EQ(On(outcome.sandbox, "landlock"), landlock::Version() >= 1);
}

TEST_F(CompilerSandboxTest, TheLimitIsOfCpuTime) {
  ToolchainLimits limits;
  limits.cpu = std::chrono::seconds(2);
  const BuildOutcome outcome = Compile(
      // Four million instantiations, 22 deep: wide, because nvcc refuses what is deeper than 200.
      "template <int N, long M> struct S {\n"
      "  static constexpr long v = S<N - 1, 2 * M>::v + S<N - 1, 2 * M + 1>::v;\n"
      "};\n"
      "template <long M> struct S<0, M> { static constexpr long v = M; };\n"
      "long x = S<22, 1>::v;\n",
      limits);
  ASSERT_TRUE(outcome.failure.has_value());
  EXPECT_EQ(outcome.failure->kind, CompileFailure::Kind::kTimeout) << outcome.failure->log;
  EXPECT_THAT(outcome.failure->diagnostics[0].text, HasSubstr("2 s of CPU time"));
}

TEST(CompilerSandbox, MeasuresOfThisMachine) {
  const auto measures = CompilerSandbox();
  EXPECT_TRUE(On(measures, "seccomp"));
  EXPECT_TRUE(On(measures, "no network"));
}

TEST(CompilerSandbox, ACompilerInAHomeFolderDoesNotOpenTheHome) {
  auto home = TemporaryFolder::Create("kp-home");
  ASSERT_TRUE(home.ok());
  const std::filesystem::path plain = home->path() / "bin" / "g++";
  ASSERT_TRUE(WriteFileAtomically(plain, "x").ok());
  EXPECT_THAT(CompilerFiles(plain), Not(testing::Contains(home->path())));
  std::filesystem::create_directories(home->path() / "lib" / "gcc");
  EXPECT_THAT(CompilerFiles(plain), testing::Contains(std::filesystem::canonical(home->path())));
}

}  // namespace
}  // namespace kernelpro
