// SPDX-License-Identifier: Apache-2.0
#include "profile/build_facts.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace kernelpro {
namespace {

std::optional<double> Fact(const std::vector<std::string>& flags, const std::string& name) {
  const auto facts = BuildFacts(flags);
  const auto found = facts.find(name);
  return found == facts.end() ? std::nullopt : std::optional(found->second.value);
}

TEST(BuildFacts, Targets) {
  const std::vector<std::string> native = {"-O3", "-gencode", "arch=compute_90a,code=sm_90a"};
  EXPECT_EQ(Fact(native, "build.arch"), 90);
  EXPECT_EQ(Fact(native, "build.accelerated"), 1);
  EXPECT_EQ(Fact(native, "build.ptx_only"), 0);
  const std::vector<std::string> old = {"-gencode=arch=compute_80,code=compute_80"};
  EXPECT_EQ(Fact(old, "build.arch"), 80);
  EXPECT_EQ(Fact(old, "build.ptx_only"), 1);
  EXPECT_EQ(Fact({"-gencode", "arch=compute_90,code=[compute_90,sm_90]"}, "build.ptx_only"), 0);
  EXPECT_EQ(Fact({"-gencode=arch=compute_90a,code=sm_90a"}, "build.ptx_only"), 0);
  EXPECT_EQ(Fact({"-arch", "sm_86"}, "build.arch"), 86);
  EXPECT_FALSE(Fact({"-O3"}, "build.arch"));
}

TEST(BuildFacts, Switches) {
  EXPECT_EQ(Fact({"-G"}, "build.debug"), 1);
  EXPECT_FALSE(Fact({"-g"}, "build.debug"));
  EXPECT_EQ(Fact({"-fmad=false"}, "build.fmad_off"), 1);
  EXPECT_FALSE(Fact({"-fmad=true"}, "build.fmad_off"));
  EXPECT_EQ(Fact({"-maxrregcount=32"}, "build.maxrregcount"), 32);
  EXPECT_EQ(Fact({"--maxrregcount", "40"}, "build.maxrregcount"), 40);
  EXPECT_FALSE(Fact({"-maxrregcount"}, "build.maxrregcount"));
  EXPECT_EQ(Fact({"-rdc=true"}, "build.rdc"), 1);
}

}  // namespace
}  // namespace kernelpro
