// SPDX-License-Identifier: Apache-2.0
// Candidates that break rules, each beside its honest twin; every one gets its verdict.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>

#include "cli.h"

namespace kernelpro::e2e {
namespace {

/// y[j] = sum of x over segment j; the body of the kernel and of the host function are the test's.
std::string Source(const std::string& kernel_body, const std::string& host_before = "",
                   const std::string& globals = "") {
  return "#include \"kernelpro_task.h\"\n#include <cstdio>\n#include <cstdlib>\n#include "
         "<unistd.h>\n" +
         globals + "\n__global__ void Sum(const float* x, float* y, int segments, int length) {\n" +
         "  const int j = blockIdx.x * blockDim.x + threadIdx.x;\n" + kernel_body +
         "\n}\nextern \"C\" cudaError_t kernelpro_run(const TaskArgs* args, cudaStream_t stream) "
         "{\n" +
         "  const int segments = static_cast<int>(args->segments);\n"
         "  const int length = static_cast<int>(args->length);\n" +
         host_before +
         "\n  Sum<<<(segments + 63) / 64, 64, 0, stream>>>(args->in, args->out, segments, "
         "length);\n"
         "  return cudaGetLastError();\n}\n";
}

constexpr const char* kHonest =
    "  if (j < segments) {\n    float sum = 0;\n    for (int i = 0; i < length; ++i) sum += "
    "x[(size_t)j * "
    "length + i];\n    y[j] = sum;\n  }\n";

struct Case {
  const char* name;
  std::string source;
  const char* verdict;
};

/// Keeps pointers out of the names of the tests.
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

std::vector<Case> Cases() {
  return {
      {"honest", Source(kHonest), "ok"},
      {"loops_forever_on_device", Source("  while (true) { y[0] += 1; }"), "timeout"},
      {"loops_forever_on_host", Source(kHonest, "  volatile int go = 1; while (go) {}"), "timeout"},
      {"writes_out_of_bounds", Source(std::string(kHonest) + "  if (j == 0) y[segments] = 1;"),
       "out_of_bounds"},
      {"misaligned",
       Source(std::string(kHonest) +
              "  if (j == 0) *reinterpret_cast<int2*>(reinterpret_cast<char*>(y) + 4) = "
              "make_int2(0, 0);"),
       "runtime_error"},
      {"divides_warps_at_a_barrier",
       Source(std::string(kHonest) + "  if (threadIdx.x < 32) { __syncthreads(); } else { "
                                     "asm volatile(\"bar.sync 1, 64;\"); }"),
       "runtime_error"},
      {"exits", Source(kHonest, "  exit(0);"), "runtime_error"},
      {"forks", Source(kHonest, "  if (fork() == 0) { sleep(100); }"), "policy_violation"},
      {"prints_pass",
       Source("", "  printf(\"PASS\\n{\\\"verdict\\\":\\\"ok\\\"}\\n\"); fflush(stdout);"),
       "unwritten_output"},
      {"crashes", Source(kHonest, "  *(volatile int*)8 = 1;"), "runtime_error"},
      {"writes_half",
       Source("  if (j < segments / 2) { float sum = 0; for (int i = 0; i < length; ++i) sum "
              "+= x[(size_t)j * length + i]; y[j] = sum; }"),
       "unwritten_output"},
      {"wrong_by_one",
       Source("  if (j < segments) { float sum = 0; for (int i = 1; i < length; ++i) sum += "
              "x[(size_t)j * length + i]; y[j] = sum; }"),
       "wrong_result"},
      {"changes_its_input",
       Source(std::string(kHonest) + "  if (j == 0) const_cast<float*>(x)[0] = 0;"),
       "input_modified"},
      {"bad_launch",
       Source(kHonest,
              "  Sum<<<1, 5000, 0, stream>>>(args->in, args->out, segments, length); return "
              "cudaGetLastError();"),
       "launch_error"},
      {"static_constructor_exits", Source(kHonest, "", "struct Bye { Bye() { _exit(0); } } bye;"),
       "runtime_error"},
      {"does_not_compile", Source("  y[j] = undeclared;"), "compile_error"},
      {"shared_race",
       Source(
           std::string(
               "  __shared__ float s[64]; s[threadIdx.x] = 0; s[(threadIdx.x + 32) % 64] += 1;\n") +
           kHonest),
       "race"},
      {"fails_when_asked_again",
       Source(kHonest,
              "  if (calls++ > 2) return cudaMemsetAsync(args->out, 0, segments * 4, stream);",
              "static int calls = 0;"),
       "nondeterministic"},
  };
}

class HostileTest : public ::testing::TestWithParam<Case> {};

TEST_P(HostileTest, GetsItsVerdict) {
  const Cli cli;
  const auto task = cli.CopyTask("block_sum");
  const auto file = cli.folder() / "candidate.cu";
  ASSERT_TRUE(WriteFileAtomically(file, GetParam().source).ok());
  const Cli::Answer answer = cli.Run({"evaluate", task, file, "--json"});
  const auto json = answer.Json();
  ASSERT_TRUE(json.is_object()) << answer.out << answer.err;
  EXPECT_EQ(json.value("verdict", ""), GetParam().verdict) << json.dump(1) << answer.err;
  EXPECT_EQ(answer.exit_code, std::string(GetParam().verdict) == "ok" ? 0 : 1);
  EXPECT_THAT(LeftoverProcesses(), ::testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Candidates, HostileTest, ::testing::ValuesIn(Cases()),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace kernelpro::e2e
