// SPDX-License-Identifier: Apache-2.0
#include "profile/sass_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/file.h"
#include "sass/test_cubin.h"
#include "sass/test_listing.h"

namespace kernelpro {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr std::string_view kListing = R"(
	code for sm_80

	code for sm_90a
		Function : _ZN2ns3addIiEEvPT_
        /*0000*/                   LDG.E R4, desc[UR4][R2.64] ;
        /*0010*/                   FADD R5, R5, R4 ;
        /*0020*/              @!P0 BRA 0x0 ;
        /*0030*/                   EXIT ;
)";

TEST(SassProfile, Listing) {
  const auto profile = ParseSass(kListing, "a.sass");
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  ASSERT_EQ(profile->kernels.size(), 1U);
  const KernelProfile& kernel = profile->kernels[0];
  EXPECT_EQ(kernel.name, "ns::add<int>");
  EXPECT_EQ(kernel.mangled, "_ZN2ns3addIiEEvPT_");
  EXPECT_EQ(kernel.texts.at("build.arch"), "sm_90a");
  EXPECT_EQ(kernel.texts.at("opcodes"), "static");
  EXPECT_EQ(kernel.opcodes.at("LDG.E"), 1U);
  EXPECT_EQ(kernel.Value("sass.loop.ldg"), 1);
  EXPECT_EQ(kernel.metrics.at("sass.fadd").provenance, Provenance::kCounted);
  EXPECT_THAT(kernel.missing, Contains("gpu__time_duration.sum"));
  ASSERT_TRUE(kernel.hot_loop.has_value());
  EXPECT_EQ(kernel.hot_loop->last, 0x20U);
  EXPECT_EQ(profile->system.at("build.arch").value, 90);
  EXPECT_EQ(profile->system.at("build.accelerated").value, 1);
  EXPECT_FALSE(profile->system.contains("build.lineinfo"));  // cuobjdump never prints lines.
}

TEST(SassProfile, SeveralArchitecturesStandApart) {
  const auto profile = ParseSass(
      "\tcode for sm_80\n\t\tFunction : k\n        /*0000*/   EXIT ;\n"
      "\tcode for sm_90\n\t\tFunction : k\n        /*0000*/   EXIT ;\n",
      "x");
  ASSERT_TRUE(profile.ok());
  ASSERT_EQ(profile->kernels.size(), 2U);
  EXPECT_EQ(profile->kernels[1].Value("sass.arch"), 90);
  EXPECT_FALSE(profile->system.contains("build.arch"));
  EXPECT_THAT(profile->notes, Contains(HasSubstr("sm_80, sm_90")));
}

TEST(SassProfile, Binary) {
  sass::CubinMaker maker;
  maker.AddKernel("scale", sass::kScaleKernel);
  maker.sections.emplace_back(".text.helper", sass::Encoded(sass::kScaleKernel));
  const auto profile = ParseSass(maker.Bytes(), "a.cubin");
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  ASSERT_EQ(profile->kernels.size(), 1U);  // The helper is called, not launched.
  const KernelProfile& kernel = profile->kernels[0];
  EXPECT_EQ(kernel.name, "scale");
  EXPECT_EQ(kernel.Value("sass.ffma"), 1);
  EXPECT_EQ(kernel.Value("ptxas.registers"), 24);
  EXPECT_FALSE(kernel.Value("sass.loops").has_value());
  EXPECT_FALSE(kernel.hot_loop.has_value());
  EXPECT_EQ(profile->system.at("build.lineinfo").value, 0);
  EXPECT_FALSE(profile->system.contains("build.accelerated"));  // The file does not say.
  EXPECT_THAT(profile->notes, Contains(HasSubstr("without a disassembler")));
}

TEST(SassProfile, StallsGetTheirProducers) {
  const sass::Function function = sass::Code(sass::kTiledProduct);
  KernelProfile kernel;
  kernel.hot_spots = {
      {.address = 0x50,
       .samples = 100,
       .stalls = {{"long_scoreboard", 60}, {"selected", 90}, {"wait", 10}}},
      {.address = 0xb0, .samples = 20, .stalls = {{"math_pipe_throttle", 20}}},
      {.address = 0x70, .samples = 10, .stalls = {{"barrier", 10}}, .producer = "known"},
      {.address = 0x9999, .samples = 1, .stalls = {{"long_scoreboard", 1}}}};
  AttributeStalls(kernel, function);
  const HotSpot& store = kernel.hot_spots[0];
  EXPECT_EQ(store.instruction, "STS [R8], R4");
  EXPECT_EQ(store.line, 12U);
  EXPECT_EQ(store.producer, "LDG.E R4, desc[UR4][R2.64]");
  EXPECT_EQ(store.producer_address, 0x30U);
  EXPECT_EQ(store.producer_file, "gemm.cu");
  EXPECT_EQ(store.distance, 2U);
  EXPECT_EQ(kernel.hot_spots[1].instruction, "FFMA R20, R10, R13, R20");
  EXPECT_EQ(kernel.hot_spots[1].producer, "");
  EXPECT_EQ(kernel.hot_spots[2].producer, "known");
  EXPECT_EQ(kernel.hot_spots[3].instruction, "");
}

TEST(SassProfile, MeasuredFiguresStay) {
  KernelProfile kernel;
  kernel.metrics["sass.ffma"] = {7, "inst", Provenance::kMeasured};
  kernel.opcodes = {{"FFMA", 1000}};
  AddSass(sass::Code(sass::kTiledProduct), &kernel);
  EXPECT_EQ(kernel.Value("sass.ffma"), 7);
  EXPECT_EQ(kernel.Value("sass.loop.ffma"), 4);
  EXPECT_EQ(kernel.opcodes.size(), 1U);
  EXPECT_FALSE(kernel.texts.contains("opcodes"));
}

TEST(SassProfile, WhatItIsNot) {
  EXPECT_THAT(ParseSass("ptxas info    : 0 bytes gmem\n", "x").error().message,
              HasSubstr("the log of ptxas"));
  EXPECT_EQ(ReadSass("/no/such/file").error().code, ErrorCode::kNotFound);
}

/// Files that other people made, when the folder is at hand (they are not ours to distribute).
TEST(SassProfile, FieldFolder) {
  const char* folder = std::getenv("KERNELPRO_FIELD_PROFILES");  // NOLINT(concurrency-mt-unsafe)
  if (folder == nullptr) {
    GTEST_SKIP() << "KERNELPRO_FIELD_PROFILES is not set";
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_regular_file()) {
      const auto profile = ReadSass(entry.path());
      const std::string name = entry.path().filename();
      if (name.find("sass") != name.npos && name.find("turingas") == name.npos) {
        ASSERT_TRUE(profile.ok()) << profile.error().message;
        for (const KernelProfile& kernel : profile->kernels) {
          EXPECT_EQ(kernel.Value("sass.unknown.pct"), 0) << name << " " << kernel.name;
        }
      } else {
        ASSERT_FALSE(profile.ok()) << name;
        EXPECT_THAT(profile.error().message, HasSubstr(name));
      }
    }
  }
  const auto naive = ReadSass(std::filesystem::path(folder) / "25_cuobjdump_sass_sm86.txt");
  ASSERT_TRUE(naive.ok());
  EXPECT_EQ(naive->kernels[0].name, "sgemm_naive");
  EXPECT_EQ(naive->kernels[0].Value("sass.loop.ldg_batch"), 8);  // Unrolled by four, two arrays.
}

}  // namespace
}  // namespace kernelpro
