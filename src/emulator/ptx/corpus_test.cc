// SPDX-License-Identifier: Apache-2.0
// Compiles every file of tests/data/corpus for both of nvcc's PTX dialects and parses the output.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "emulator/ptx/module.h"
#include "emulator/ptx/test_support.h"

namespace kernelpro::ptx {
namespace {

std::vector<std::string> CorpusFiles() {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(KP_SOURCE_DIR) + "/tests/data/corpus")) {
    if (entry.path().extension() == ".cu") {
      names.push_back(entry.path().stem());
    }
  }
  std::ranges::sort(names);
  return names;
}

class Corpus : public ::testing::TestWithParam<std::string> {};

TEST_P(Corpus, ParsesInBothDialects) {
  if (FindOnPath("nvcc").empty()) {
    GTEST_SKIP() << "no nvcc on PATH: the compiler's current output cannot be checked";
  }
  const std::string& name = GetParam();
  const std::string source = std::string(KP_SOURCE_DIR) + "/tests/data/corpus/" + name + ".cu";
  const auto folder = TemporaryFolder::Create("kp-ptx");
  ASSERT_TRUE(folder.ok());
  const std::string suffix = name.starts_with("k16") || name.starts_with("k17") ? "a" : "";
  for (const std::string chip : {"sm_90", "sm_100"}) {
    if (name.starts_with("k16") && chip == "sm_100") {
      continue;  // wgmma exists on sm_90a only
    }
    // -lineinfo adds directives and takes nothing away: without it one dialect is enough.
    for (const std::string_view option : {"-lineinfo", ""}) {
      if (option.empty() && chip == "sm_100") {
        continue;
      }
      const std::string ptx = folder->path() / (chip + std::string(option) + ".ptx");
      const std::string command = "nvcc -std=c++17 -ptx -arch=" + chip + suffix + " " +
                                  std::string(option) + " -o '" + ptx + "' '" + source + "'";
      SCOPED_TRACE(command);
      ASSERT_EQ(std::system(command.c_str()), 0);  // NOLINT(concurrency-mt-unsafe)
      const auto text = ReadFile(ptx);
      ASSERT_TRUE(text.ok());
      const auto module = Parse(*text, name + ".ptx");
      ASSERT_TRUE(module.ok()) << module.error().message;
      EXPECT_EQ(module->target, chip + suffix);
      CheckAgainstText(*module, *text);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Files, Corpus, ::testing::ValuesIn(CorpusFiles()),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace kernelpro::ptx
