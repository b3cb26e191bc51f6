// SPDX-License-Identifier: Apache-2.0
// profile, diagnose and tools as a user runs them: programs, files, comparisons, plug-ins.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "cli.h"

namespace kernelpro::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kTranspose = R"x(#include <cstdio>
__global__ void transpose(const float* a, float* b, int n) {
  const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  if (x < n && y < n) b[BAD ? x * n + y : y * n + x] = a[y * n + x];
}
int main(int argc, char**) {
  const int n = 512;
  float *a, *b;
  cudaMalloc(&a, n * n * 4);
  cudaMalloc(&b, n * n * 4);
  cudaMemset(a, 0, n * n * 4);
  transpose<<<dim3(n / 32, n / 32), dim3(32, 32)>>>(a, b, n);
  return cudaDeviceSynchronize() != cudaSuccess || argc > 2;
}
)x";

constexpr const char* kPtxasLog =
    R"(ptxas info    : Compiling entry function '_Z4spilPf' for 'sm_90'
ptxas info    : Function properties for _Z4spilPf
    264 bytes stack frame, 512 bytes spill stores, 640 bytes spill loads
ptxas info    : Used 32 registers, used 0 barriers, 264 bytes cumulative stack size
)";

class DiagnoseTest : public ::testing::Test {
 protected:
  fs::path Write(const std::string& name, const std::string& text, bool executable = false) {
    const fs::path path = cli.folder() / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
    if (executable) {
      fs::permissions(path, fs::perms::owner_all);
    }
    return path;
  }

  Cli::Answer Ok(std::vector<std::string> arguments) {
    Cli::Answer answer = cli.Run(std::move(arguments));
    EXPECT_EQ(answer.exit_code, 0) << answer.out << answer.err;
    return answer;
  }

  static std::vector<std::string> Ids(const json& diagnosis) {
    std::vector<std::string> ids;
    for (const json& finding : diagnosis.at("findings")) {
      ids.push_back(finding.at("id"));
    }
    return ids;
  }

  Cli cli;
};

TEST_F(DiagnoseTest, AProgramOnTheEmulatorAndItsRepair) {
  const fs::path program = Write("t.cu", kTranspose);
  const fs::path before = cli.folder() / "before.json";
  const fs::path after = cli.folder() / "after.json";
  const json bad = Ok({"diagnose", program, "--device", "emulator", "--kernel", "transpose",
                       "--flag", "-DBAD=1", "--save", before, "--json"})
                       .Json();
  EXPECT_THAT(Ids(bad), ::testing::Contains("mem.coalesce_st"));
  EXPECT_EQ(bad["kernels"][0]["name"], "transpose");
  EXPECT_EQ(bad["findings"][0]["rests_on"], "emulation");
  EXPECT_THAT(bad["findings"][0]["file"].get<std::string>(), HasSubstr("t.cu"));
  const json good = Ok({"diagnose", program, "--device", "emulator", "--flag", "-DBAD=0", "--save",
                        after, "--json"})
                        .Json();
  EXPECT_THAT(Ids(good), Not(::testing::Contains("mem.coalesce_st")));

  const json change = Ok({"diagnose", "--before", before, "--after", after, "--json"}).Json();
  EXPECT_THAT(change["kernels"][0]["gone"].get<std::vector<std::string>>(),
              ::testing::Contains("mem.coalesce_st"));
  EXPECT_THAT(Ok({"diagnose", "--before", before, "--after", after}).out, HasSubstr("gone"));
}

TEST_F(DiagnoseTest, WrongProgramsAreRefusedWithTheReason) {
  const fs::path program = Write("t.cu", kTranspose);
  const Cli::Answer unknown = cli.Run(
      {"diagnose", program, "--device", "emulator", "--flag", "-DBAD=1", "--kernel", "transpoze"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("there are: transpose"));
  const Cli::Answer broken = cli.Run({"diagnose", program, "--device", "emulator"});  // no BAD
  EXPECT_EQ(broken.exit_code, 2);
  EXPECT_THAT(broken.err, HasSubstr("BAD"));
  EXPECT_EQ(cli.Run({"diagnose", "nothing.cu"}).exit_code, 2);
  EXPECT_EQ(cli.Run({"diagnose", program, "--device", "emulator", "--energy", "5"}).exit_code, 2);
  const fs::path idle = Write("idle.cu", "int main() { return 3; }\n");
  const Cli::Answer nothing = cli.Run({"diagnose", idle, "--device", "emulator"});
  EXPECT_EQ(nothing.exit_code, 1);
  EXPECT_THAT(nothing.err, HasSubstr("without launching a kernel"));
}

TEST_F(DiagnoseTest, ForbiddenCountersLeaveTheOtherFiles) {
  const fs::path denied = Write("ncu.txt",
                                "==PROF== Connected to process 1\n==ERROR== ERR_NVGPUCTRPERM - The "
                                "user does not have permission\n");
  EXPECT_EQ(cli.Run({"diagnose", "--ncu", denied}).exit_code, 3);
  const fs::path log = Write("build.log", kPtxasLog);
  const json diagnosis = Ok({"diagnose", "--ncu", denied, "--ptxas", log, "--json"}).Json();
  EXPECT_THAT(Ids(diagnosis), ::testing::ElementsAre("mem.spill")) << "a log has no launch shape";
  EXPECT_EQ(diagnosis["findings"][0]["rests_on"], "compiler log");
  EXPECT_EQ(diagnosis["findings"][0]["bound"], 0) << "nothing was timed";
  EXPECT_THAT(diagnosis["notes"][0].get<std::string>(), HasSubstr("ERR_NVGPUCTRPERM"));
  EXPECT_THAT(Ok({"diagnose", "--ptxas", log}).out, HasSubstr("upper bound unknown"));
}

TEST_F(DiagnoseTest, ASanitizersVerdictComesBeforeAdvice) {
  const std::string head = "========= COMPUTE-SANITIZER\n";
  const std::string finding =
      "========= Invalid __global__ write of size 4 bytes\n"
      "=========     at Scale(float *)+0x130 in candidate.cu:9\n";
  const fs::path wrong = Write("wrong.log", head + finding + "========= ERROR SUMMARY: 2 errors\n");
  const fs::path right = Write("right.log", head + "========= ERROR SUMMARY: 0 errors\n");
  const fs::path cut = Write("cut.log", head);
  const fs::path build = Write("build.log", kPtxasLog);
  const json diagnosis = Ok({"diagnose", "--sanitizer", wrong, "--ptxas", build, "--json"}).Json();
  EXPECT_THAT(diagnosis["notes"][0].get<std::string>(),
              ::testing::AllOf(HasSubstr("2 errors, first: Invalid __global__ write of size 4"),
                               HasSubstr("candidate.cu:9"), HasSubstr("Repair them first")));
  EXPECT_THAT(Ids(diagnosis), ::testing::Contains("mem.spill"));
  const std::string feedback =
      Ok({"diagnose", "--sanitizer", wrong, "--ptxas", build, "--format", "feedback"}).out;
  EXPECT_THAT(feedback, HasSubstr("WRONG   compute-sanitizer found 2 errors"));
  EXPECT_THAT(feedback, Not(HasSubstr("blocks of")));
  EXPECT_THAT(Ok({"diagnose", "--sanitizer", right}).out,
              ::testing::AllOf(HasSubstr("found no error"), HasSubstr("No kernel was profiled")));
  EXPECT_THAT(Ok({"profile", "--sanitizer", cut}).out, HasSubstr("clears nothing"));
  const Cli::Answer other = cli.Run({"diagnose", "--sanitizer", build});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("not what compute-sanitizer prints"));
}

TEST_F(DiagnoseTest, AnyFormCanBeAskedFor) {
  const fs::path log = Write("build.log", kPtxasLog);
  EXPECT_THAT(Ok({"diagnose", "--ptxas", log, "--format", "feedback"}).out, HasSubstr("PRIMARY"));
  EXPECT_THAT(Ok({"diagnose", "--ptxas", log, "--format", "markdown"}).out, HasSubstr("## ["));
  EXPECT_EQ(cli.Run({"diagnose", "--ptxas", log, "--format", "html"}).exit_code, 2);
  const json profile = Ok({"profile", "--ptxas", log, "--json"}).Json();
  EXPECT_EQ(profile["kernels"][0]["metrics"]["ptxas.spill_store_bytes"]["value"], 512);
}

TEST_F(DiagnoseTest, RulesAndProgramsOfTheUser) {
  const fs::path log = Write("build.log", kPtxasLog);
  constexpr const char* kRule =
      "id = \"team.regs\"\ntitle = \"Few registers\"\nsource = \"us\"\nneeds = "
      "[\"ptxas.registers\"]\n"
      "severity = \"ptxas.registers < 40 ? 0.9 : 0\"\nbound = \"0\"\nseen = "
      "\"{ptxas.registers:0}.\"\n"
      "why = \"w.\"\ndo = [\"d.\"]\ncheck = \"c.\"\navoid = \"a.\"\n";
  (void)Write("rules/team.toml", kRule);
  const std::string rules = cli.folder() / "rules";
  EXPECT_THAT(Ids(Ok({"diagnose", "--ptxas", log, "--rules", rules, "--json"}).Json()),
              ::testing::Contains("team.regs"));
  EXPECT_THAT(Ok({"tools", "show", "team.regs", "--rules", rules}).out, HasSubstr("Few registers"));
  (void)Write("rules/team.toml", "id = \"team.regs\"\ntitel = \"x\"\n");
  const Cli::Answer wrong = cli.Run({"diagnose", "--ptxas", log, "--rules", rules});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("team.toml:2"));

  const fs::path tool =
      Write("tool.sh",
            "#!/bin/sh\ncat > /dev/null\necho "
            "'{\"findings\":[{\"id\":\"ext.one\",\"title\":\"T\",\"severity\":0.5,"
            "\"seen\":\"s\",\"why\":\"w\",\"do\":[\"d\"],\"check\":\"c\",\"avoid\":\"a\"}]}'\n",
            true);
  EXPECT_THAT(Ids(Ok({"diagnose", "--ptxas", log, "--tool", tool, "--json"}).Json()),
              ::testing::Contains("ext.one"));
  const fs::path slow = Write("slow.sh", "#!/bin/sh\nsleep 100\n", true);
  EXPECT_EQ(
      cli.Run({"diagnose", "--ptxas", log, "--tool", slow, "--tool-seconds", "0.3"}).exit_code, 1);
}

TEST_F(DiagnoseTest, ToolsAreListedAndShown) {
  const json list = Ok({"tools", "list", "--json"}).Json();
  EXPECT_GE(list["tools"].size(), 60U);
  EXPECT_THAT(Ok({"tools"}).out, HasSubstr("mem.coalesce_ld"));
  EXPECT_THAT(Ok({"tools", "show", "lat.throttle"}).out, HasSubstr("fires on"));
  EXPECT_EQ(cli.Run({"tools", "show", "lat.nothing"}).exit_code, 2);
  std::ifstream in(std::string(KP_SOURCE_DIR) + "/docs/tools.md");
  const std::string page((std::istreambuf_iterator<char>(in)), {});
  for (const json& tool : list["tools"]) {
    EXPECT_THAT(page, HasSubstr("| " + tool["id"].get<std::string>())) << "docs/tools.md";
  }
}

}  // namespace
}  // namespace kernelpro::e2e
