// SPDX-License-Identifier: Apache-2.0
// What a user gets for input that is not right: a clear message, exit code 2, nothing lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli.h"

namespace kernelpro::e2e {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class InputTest : public ::testing::Test {
 protected:
  void ExpectRefused(const std::vector<std::string>& arguments,
                     const ::testing::Matcher<const std::string&>& message, int code = 2) {
    const Cli::Answer answer = cli.Run(arguments);
    EXPECT_EQ(answer.exit_code, code) << answer.out << answer.err;
    EXPECT_THAT(answer.err, message);
  }

  Cli cli;
};

TEST_F(InputTest, Usage) {
  ExpectRefused({}, HasSubstr("subcommand"));
  ExpectRefused({"optimise"}, HasSubstr("optimise"));
  ExpectRefused({"optimize"}, HasSubstr("TASK"));
  ExpectRefused({"optimize", "x", "--evaluations", "many"}, HasSubstr("evaluations"));
  for (const char* command :
       {"optimize", "evaluate", "profile", "diagnose", "emulate", "tools", "doctor"}) {
    const Cli::Answer help = cli.Run({command, "--help"});
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_THAT(help.out, AllOf(HasSubstr("Example"), HasSubstr("--json"))) << command;
  }
}

TEST_F(InputTest, MissingTask) {
  ExpectRefused({"optimize", "no/such/task"}, HasSubstr("no/such/task"));
}

TEST_F(InputTest, MalformedTaskShowsTheLine) {
  const auto task = cli.CopyTask("transpose");
  Cli::Edit(task / "task.toml", "axes = ", "axes = = ");
  ExpectRefused({"optimize", task}, AllOf(HasSubstr("task.toml:"), HasSubstr("axes = = ")));
}

TEST_F(InputTest, UnknownDtype) {
  const auto task = cli.CopyTask("transpose");
  Cli::Edit(task / "task.toml", "\"f32\"", "\"f31\"");
  ExpectRefused({"optimize", task},
                AllOf(HasSubstr("f31"), HasSubstr("bf16"), HasSubstr("task.toml:")));
}

TEST_F(InputTest, UndeclaredAxis) {
  const auto task = cli.CopyTask("transpose");
  Cli::Edit(task / "task.toml", "shape = [\"rows\"", "shape = [\"rosw\"");
  ExpectRefused({"optimize", task}, AllOf(HasSubstr("rosw"), HasSubstr("task.toml:")));
}

TEST_F(InputTest, ReferenceThatDoesNotCompile) {
  const auto task = cli.CopyTask("transpose");
  Cli::Edit(task / "reference.cc", "kernelpro_reference(const ReferenceArgs* args) {",
            "kernelpro_reference(const ReferenceArgs* args) { undeclared_type x;");
  ExpectRefused({"optimize", task},
                AllOf(HasSubstr("reference.cc:"), HasSubstr("undeclared_type")));
}

TEST_F(InputTest, WrongSeedIsSaidBeforeAnySearch) {
  const auto task = cli.CopyTask("transpose");
  Cli::Edit(task / "seed.cu", "__global__ void", "__device__ void Nothing() {}\n__global__ void");
  Cli::Edit(task / "seed.cu", "return cudaGetLastError();",
            "return cudaMemsetAsync(args->out, 0, 4, stream);");
  const Cli::Answer answer = cli.Run({"optimize", task, "--run", (cli.folder() / "run").string()});
  EXPECT_EQ(answer.exit_code, 2) << answer.out << answer.err;
  EXPECT_THAT(answer.err, AllOf(HasSubstr("seed"), HasSubstr("wrong_result")));
}

TEST_F(InputTest, NoNvcc) {
  // An empty file system over /usr/local, seen by this one process only.
  ProcessSpec spec;
  spec.argv = {
      "unshare",
      "-rm",
      "sh",
      "-c",
      "mount -t tmpfs none /usr/local || exit 77; PATH=/usr/bin:/bin CUDA_HOME=/nonexistent "
      "exec \"$0\" \"$@\"",
      KP_BINARY_DIR "/bin/kernelpro",
      "optimize",
      cli.CopyTask("transpose"),
      "--run",
      cli.folder() / "run"};
  const auto ran = RunProcess(spec);
  if (!ran || ran->exit_code == 77 || ran->err.find("unshare:") != std::string::npos) {
    GTEST_SKIP() << "skipped: no mount namespaces here";
  }
  EXPECT_EQ(ran->exit_code, 2) << ran->out << ran->err;
  EXPECT_THAT(ran->err, AllOf(HasSubstr("nvcc"), HasSubstr("/nonexistent")));
}

TEST_F(InputTest, UnwritableRunFolder) {
  const auto task = cli.CopyTask("transpose");
  ExpectRefused({"optimize", task, "--run", "/proc/run"}, HasSubstr("/proc/run"));
}

TEST_F(InputTest, BinaryGarbageAsSource) {
  const auto task = cli.CopyTask("transpose");
  const auto file = cli.folder() / "garbage.cu";
  ASSERT_TRUE(WriteFileAtomically(file, std::string("\x7f"
                                                    "ELF\0\1\2\xff",
                                                    8))
                  .ok());
  ExpectRefused({"evaluate", task, file}, AllOf(HasSubstr("garbage.cu"), HasSubstr("binary")));
}

TEST_F(InputTest, ResumeOfNothing) {
  ExpectRefused({"optimize", "--resume", "nowhere"}, HasSubstr("nowhere"));
}

TEST_F(InputTest, UnknownDeviceAndPolicy) {
  const auto task = cli.CopyTask("transpose");
  ExpectRefused({"optimize", task, "--device", "abacus"}, HasSubstr("emulator"));
  ExpectRefused({"optimize", task, "--search", "psychic"}, HasSubstr("mcts"));
  ExpectRefused({"optimize", task, "--proposer", "oracle"}, HasSubstr("playbook"));
}

TEST_F(InputTest, JsonErrorsAreJsonToo) {
  const Cli::Answer answer = cli.Run({"optimize", "no/such/task", "--json"});
  EXPECT_EQ(answer.exit_code, 2);
  EXPECT_THAT(answer.Json()["error"].get<std::string>(), HasSubstr("no/such/task"));
}

}  // namespace
}  // namespace kernelpro::e2e
