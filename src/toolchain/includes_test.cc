// SPDX-License-Identifier: Apache-2.0
#include "toolchain/includes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

namespace kernelpro {
namespace {

using ::testing::ElementsAre;

const std::vector<std::filesystem::path> kRoots = {"/usr/include", "/opt/cuda/targets/"};

TEST(Includes, KnownFoldersAreFine) {
  EXPECT_EQ(ForeignInclude("# 0 \"k.cu\"\n# 1 \"/usr/include/stdio.h\" 1 3 4\nint x;\n"
                           "# 7 \"k.cu\" 2\n# 1 \"kernelpro_task.h\" 1\n"
                           "# 1 \"/opt/cuda/bin/../targets/x/cuda.h\" 1 3\n",
                           kRoots),
            "");
  EXPECT_EQ(ForeignInclude("", kRoots), "");
}

TEST(Includes, OthersAreNamed) {
  const auto foreign = [](const std::string& text) { return ForeignInclude(text, kRoots); };
  EXPECT_EQ(foreign("# 1 \"/usr/include/a.h\" 1\n# 1 \"/etc/passwd\" 1\n"), "/etc/passwd");
  EXPECT_EQ(foreign("# 1 \"/usr/include/../../etc/passwd\" 1"), "/usr/include/../../etc/passwd");
  EXPECT_EQ(foreign("# 1 \"../secret.h\" 1\n"), "../secret.h");
  EXPECT_EQ(foreign("# 1 \"a/../../secret.h\" 1\n"), "a/../../secret.h");
  EXPECT_EQ(foreign("# 1 \"/usr/include-evil/x\" 1\n"), "/usr/include-evil/x");
  EXPECT_EQ(foreign("# 1 \"/etc/\\\"q\\134\\\\\" 1\n"), "/etc/\"q\\\\");
}

TEST(Includes, OnlyEnteringCounts) {
  // A #line directive of the candidate names a file without reading it.
  EXPECT_EQ(ForeignInclude("# 1 \"/etc/passwd\"\n# 3 \"/etc/passwd\" 2\n", kRoots), "");
  EXPECT_EQ(ForeignInclude("#pragma \"/etc/passwd\" 1\n", kRoots), "");
}

TEST(Includes, SearchFoldersOfGcc) {
  EXPECT_THAT(SearchFolders("Using built-in specs.\n"
                            "#include \"...\" search starts here:\n /ignored\n"
                            "#include <...> search starts here:\n"
                            " /usr/include/c++/12\n"
                            " /usr/lib/gcc/x86_64-linux-gnu/12/../../../include\n"
                            "End of search list.\n /not/this\n"),
              ElementsAre("/usr/include/c++/12", "/usr/lib/include"));
}

TEST(Includes, ToolkitFolderOfADryRun) {
  EXPECT_EQ(ToolkitFolder("#$ _HERE_=/opt/cuda/bin\n#$ TOP=/opt/cuda/bin/..\n#$ X=1\n"),
            "/opt/cuda");
  EXPECT_EQ(ToolkitFolder("#$ TOP=/usr/lib/nvidia-cuda-toolkit\n"), "/usr/lib/nvidia-cuda-toolkit");
  EXPECT_EQ(ToolkitFolder("nvcc fatal: no input\n"), "");
}

TEST(Includes, AFileThatTheCompilerMayNotRead) {
  EXPECT_EQ(UnreadableInclude("candidate.cu:1:10: fatal error: /etc/passwd: Permission denied\n"
                              "compilation terminated.\n"),
            "/etc/passwd");
  EXPECT_EQ(UnreadableInclude("candidate.cu:1:10: fatal error: x.h: No such file or directory\n"),
            "");
}

}  // namespace
}  // namespace kernelpro
