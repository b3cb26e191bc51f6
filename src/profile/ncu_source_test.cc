// SPDX-License-Identifier: Apache-2.0
#include "profile/ncu_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"

namespace kernelpro {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

std::vector<NcuSourceKernel> Read(const std::string& name) {
  const Result<std::string> text =
      ReadFile(std::filesystem::path(KP_SOURCE_DIR) / "tests/data/profiles" / name);
  EXPECT_TRUE(text.ok());
  auto kernels = ParseNcuSource(text.ok() ? *text : "", name);
  EXPECT_TRUE(kernels.ok()) << (kernels.ok() ? "" : kernels.error().message);
  return kernels.ok() ? *kernels : std::vector<NcuSourceKernel>();
}

TEST(NcuSource, InstructionsBySamplesWithTheirReasons) {
  const auto kernels = Read("source_sass.csv");
  ASSERT_EQ(kernels.size(), 2U);
  EXPECT_EQ(kernels[0].name, "axpy(float *, float)");
  EXPECT_EQ(kernels[0].instructions, 4U);
  EXPECT_EQ(kernels[0].samples, 3204);
  ASSERT_EQ(kernels[0].hot_spots.size(), 3U);
  const HotSpot& first = kernels[0].hot_spots[0];
  EXPECT_EQ(first.instruction, "FFMA R5, R2, R7, R4");
  EXPECT_EQ(first.address, 0x20U);
  EXPECT_EQ(first.samples, 2000);
  // Not those of "(Not Issued)", which would count 1900 twice.
  EXPECT_THAT(first.stalls, ElementsAre(Pair("long_scoreboard", 1900),
                                        Pair("math_pipe_throttle", 60), Pair("selected", 40)));
  EXPECT_EQ(kernels[0].hot_spots[1].instruction, "@!P0  LDG.E.128 R4, [R2.64+\"x\"]");
  EXPECT_THAT(kernels[0].hot_spots[1].stalls, Contains(Pair("lg_throttle", 1150)));
  EXPECT_THAT(kernels[0].hot_spots[2].stalls, ElementsAre(Pair("no_instruction", 4)));
  EXPECT_THAT(kernels[1].hot_spots.at(0).stalls, Contains(Pair("gmma", 8)));
  EXPECT_EQ(kernels[1].hot_spots.at(0).address, 0U);
}

TEST(NcuSource, CounterNamesAsColumns) {
  const auto kernels = Read("source_counters.csv");
  ASSERT_EQ(kernels.size(), 1U);
  EXPECT_EQ(kernels[0].instructions, 2U);
  ASSERT_EQ(kernels[0].hot_spots.size(), 1U);
  EXPECT_EQ(kernels[0].hot_spots[0].address, 0U);
  EXPECT_THAT(kernels[0].hot_spots[0].stalls,
              ElementsAre(Pair("math_pipe_throttle", 5), Pair("no_instruction", 2)));
}

TEST(NcuSource, LinesOfTheSourceGoToTheirInstructions) {
  const auto kernels = Read("source_lines.csv");
  ASSERT_EQ(kernels.size(), 1U);
  EXPECT_EQ(kernels[0].name, "k(float*)");
  EXPECT_EQ(kernels[0].samples, 31);
  ASSERT_EQ(kernels[0].hot_spots.size(), 3U);
  EXPECT_EQ(kernels[0].hot_spots[0].instruction, "FMUL R2, R2, c[0x0][0x170]");
  EXPECT_EQ(kernels[0].hot_spots[0].file, "/home/user/k.cu");
  EXPECT_EQ(kernels[0].hot_spots[0].line, 12U);
  EXPECT_EQ(kernels[0].hot_spots[2].line, 13U);
}

TEST(NcuSource, WhatIsNoSuchTableIsRefused) {
  for (const char* text :
       {"", "\"ID\",\"Kernel Name\"\n\"0\",\"k\"\n", "\"Address\"\n", "\"", "\n\n"}) {
    const auto kernels = ParseNcuSource(text, "x.csv");
    ASSERT_FALSE(kernels.ok()) << text;
    EXPECT_EQ(kernels.error().code, ErrorCode::kNotFound);
    EXPECT_THAT(kernels.error().message, HasSubstr("x.csv"));
  }
  // A header, and then nothing that is an instruction.
  const auto kernels = ParseNcuSource("\"Address\",\"Source\"\nzz,FADD\n0x1\n,\n", "x.csv");
  ASSERT_TRUE(kernels.ok());
  EXPECT_THAT(kernels->at(0).hot_spots, IsEmpty());
}

NcuSourceKernel Launch(std::string name, double samples) {
  NcuSourceKernel launch;
  launch.name = std::move(name);
  HotSpot spot;
  spot.instruction = "LDG";
  spot.samples = samples;
  spot.stalls["wait"] = samples;
  launch.hot_spots = {spot};
  launch.samples = samples;
  return launch;
}

Profile Kernels(const std::vector<std::string>& signatures) {
  Profile profile;
  for (const std::string& signature : signatures) {
    KernelProfile kernel;
    kernel.mangled = signature;
    kernel.name = signature.substr(0, signature.find('('));
    profile.kernels.push_back(kernel);
  }
  return profile;
}

TEST(AddHotSpots, LaunchesOfOneKernelAddUp) {
  Profile profile = Kernels({"f<4>(int)", "f<8>(int)"});
  AddHotSpots({Launch("f<4>(int)", 300), Launch("f<8>(int)", 50), Launch("f<4>(int)", 200)},
              profile);
  ASSERT_EQ(profile.kernels[0].hot_spots.size(), 1U);
  EXPECT_EQ(profile.kernels[0].hot_spots[0].samples, 500);
  EXPECT_EQ(profile.kernels[0].hot_spots[0].stalls.at("wait"), 500);
  EXPECT_EQ(profile.kernels[1].hot_spots.at(0).samples, 50);
  EXPECT_THAT(profile.notes, ElementsAre(HasSubstr("Only 50 samples of \"f<8>\"")));
}

TEST(AddHotSpots, WhatMayBeEitherKernelIsLeftOutAndSaid) {
  Profile profile = Kernels({"f(int)", "f(float)"});
  AddHotSpots({Launch("f", 300)}, profile);
  EXPECT_THAT(profile.kernels[0].hot_spots, IsEmpty());
  EXPECT_THAT(profile.kernels[1].hot_spots, IsEmpty());
  EXPECT_THAT(profile.notes, ElementsAre(HasSubstr("left out")));
  profile = Kernels({"f(int)"});
  AddHotSpots({Launch("", 300)}, profile);
  EXPECT_EQ(profile.kernels[0].hot_spots.size(), 1U);
}

TEST(StallReason, OneNameForEachReason) {
  EXPECT_EQ(StallReasonOf("stall_short_sb"), "short_scoreboard");
  EXPECT_EQ(StallReasonOf("smsp__pcsamp_warps_issue_stalled_warpgroup_arrive"), "gmma");
  EXPECT_EQ(StallReasonOf("stall_barrier"), "barrier");
  EXPECT_EQ(StallReasonOf("stall_wait (Not Issued)"), "");
  EXPECT_EQ(StallReasonOf("smsp__pcsamp_warps_issue_stalled_wait_not_issued"), "");
  EXPECT_EQ(StallReasonOf("# Samples"), "");
}

}  // namespace
}  // namespace kernelpro
