// SPDX-License-Identifier: Apache-2.0
#include "profile/ptxas_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace kernelpro {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Profile Parse(std::string_view text) {
  auto profile = ParsePtxasLog(text, "build.log");
  EXPECT_TRUE(profile.ok()) << (profile.ok() ? "" : profile.error().message);
  return profile.ok() ? *profile : Profile{};
}

constexpr std::string_view kLog =
    R"([1/2] nvcc -Xptxas -v k.cu
ptxas k.ptx, line 286; warning : Program is doing double precision computations.
ptxas warning : Local memory used for function '_Z5arrayPfi', size of stack frame: 288 bytes
ptxas warning : Registers are spilled to local memory in function '_ZN2ns5spillIfEEvPT_', 920 bytes spill stores, 984 bytes spill loads
ptxas info    : (C7511) Potential Performance Loss: wgmma.mma_async instructions are serialized due to insufficient register resources for the wgmma pipeline in the function '_Z5arrayPfi'
ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register count at entry.
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_ZN2ns5spillIfEEvPT_' for 'sm_90a'
ptxas info    : Function properties for _ZN2ns5spillIfEEvPT_
ptxas         .     496 bytes stack frame, 920 bytes spill stores, 984 bytes spill loads
2026-01-01T10:00:00.1Z ptxas info    : Used 32 registers, used 1 barriers, 512 bytes cumulative stack size, 4096 bytes smem
ptxas info    : Compile time = 26.374 ms
ptxas info    : Compiling entry function '_Z5arrayPfi' for 'sm_90a'
ptxas info    : Function properties for _Z5arrayPfi
    288 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 40 registers, used 0 barriers, 288 bytes cumulative stack size
ptxas info    : Function properties for _Z3devPfi
    16 bytes stack frame, 12 bytes spill stores, 0 bytes spill loads
ptxas info    : Function properties for _Z5cleanPfi
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
)";

TEST(PtxasLog, KernelsWithFiguresAndNotes) {
  const Profile profile = Parse(kLog);
  ASSERT_EQ(profile.kernels.size(), 2U);
  const KernelProfile& spill = profile.kernels[0];
  EXPECT_EQ(spill.name, "ns::spill<float>");
  EXPECT_EQ(spill.mangled, "_ZN2ns5spillIfEEvPT_");
  EXPECT_EQ(spill.Value("ptxas.registers"), 32);
  EXPECT_EQ(spill.metrics.at("ptxas.registers").provenance, Provenance::kCounted);
  EXPECT_EQ(spill.Value("ptxas.barriers"), 1);
  EXPECT_EQ(spill.Value("ptxas.stack_bytes"), 512);
  EXPECT_EQ(spill.Value("ptxas.shared_bytes"), 4096);
  EXPECT_EQ(spill.Value("ptxas.spill_store_bytes"), 920);
  EXPECT_EQ(spill.Value("ptxas.spill_load_bytes"), 984);
  EXPECT_EQ(spill.texts.at("build.arch"), "sm_90a");
  ASSERT_EQ(spill.notes.size(), 1U);
  EXPECT_EQ(spill.notes[0].kind, "spill");
  EXPECT_FALSE(spill.Value("ptxas.wgmma_serialized").has_value());

  const KernelProfile& array = profile.kernels[1];
  EXPECT_EQ(array.Value("ptxas.spill_store_bytes"), 0) << "not those of the device function";
  EXPECT_EQ(array.Value("ptxas.wgmma_serialized"), 1);
  ASSERT_EQ(array.notes.size(), 2U);
  EXPECT_EQ(array.notes[0].kind, "local_memory");
  EXPECT_EQ(array.notes[1].kind, "wgmma_serialized");
  EXPECT_EQ(array.notes[1].code, "C7511");

  EXPECT_EQ(profile.system.at("build.arch").value, 90);
  EXPECT_EQ(profile.system.at("build.accelerated").value, 1);
  EXPECT_THAT(profile.notes, Contains(HasSubstr("double precision")));
  EXPECT_THAT(profile.notes, Contains(HasSubstr("'setmaxnreg' ignored")));
  EXPECT_THAT(profile.notes, Contains(HasSubstr("1 device function(s) that were not inlined spill "
                                                "registers: dev")));
}

TEST(PtxasLog, WithOneKernelEveryMessageIsAboutIt) {
  const Profile profile = Parse(
      "ptxas k.ptx, line 1; warning : Program is doing double precision computations.\n"
      "ptxas k.ptx, line 2; warning : Program is doing double precision computations.\n"
      "ptxas k.ptx, line 2; warning : Program is doing double precision computations.\n"
      "ptxas info    : Compiling entry function 'k' for 'sm_75'\n"
      "ptxas info    : Used 10 registers\n");
  ASSERT_EQ(profile.kernels.size(), 1U);
  EXPECT_EQ(profile.kernels[0].Value("ptxas.double_precision_warnings"), 2);
  EXPECT_EQ(profile.kernels[0].notes.at(1).line, 2U);
  EXPECT_EQ(profile.kernels[0].notes[1].file, "k.ptx");
  EXPECT_THAT(profile.notes, IsEmpty());
  EXPECT_EQ(profile.system.at("build.accelerated").value, 0);
}

TEST(PtxasLog, MessagesWithoutFigures) {
  const Profile profile = Parse(
      "ptxas warning : Registers are spilled to local memory in function '_Z1kPf', 8 bytes spill "
      "stores, 12 bytes spill loads\n"
      "ptxas info    : (C7517) warpgroup.wait is injected in around line 155 by compiler to allow "
      "use of registers defined by GMMA in function '_Z1kPf'\n");
  ASSERT_EQ(profile.kernels.size(), 1U);
  EXPECT_EQ(profile.kernels[0].name, "k");
  EXPECT_EQ(profile.kernels[0].Value("ptxas.spill_store_bytes"), 8);
  EXPECT_EQ(profile.kernels[0].Value("ptxas.spill_load_bytes"), 12);
  EXPECT_FALSE(profile.kernels[0].Value("ptxas.registers").has_value()) << "unknown, not zero";
  EXPECT_EQ(profile.kernels[0].notes.at(1).kind, "other");
  EXPECT_EQ(profile.kernels[0].notes[1].code, "C7517");
}

TEST(PtxasLog, OneKernelForTwoArchitectures) {
  const Profile profile = Parse(
      "ptxas info    : Compiling entry function 'k' for 'sm_80'\n"
      "ptxas info    : Used 10 registers\n"
      "ptxas info    : Compiling entry function 'k' for 'sm_90'\n"
      "ptxas info    : Used 20 registers\n"
      "ptxas info    : Compiling entry function 'k' for 'sm_90'\n"
      "ptxas info    : Used 30 registers\n");
  ASSERT_EQ(profile.kernels.size(), 2U);
  EXPECT_EQ(profile.kernels[0].Value("ptxas.registers"), 10);
  EXPECT_EQ(profile.kernels[1].Value("ptxas.registers"), 30) << "the last build counts";
  EXPECT_FALSE(profile.system.contains("build.arch"));
}

TEST(PtxasLog, ResourceUsage) {
  const Profile profile = Parse(
      "Fatbin elf code:\n================\narch = sm_70\ncode version = [1,7]\n\n"
      "Resource usage:\n Common:\n  GLOBAL:64448 CONSTANT[3]:72\n"
      " Function _Z6samplePd:\n"
      "  REG:26 STACK:16 SHARED:48 LOCAL:8 CONSTANT[0]:376 TEXTURE:0 SURFACE:0 SAMPLER:0\n");
  ASSERT_EQ(profile.kernels.size(), 1U);
  const KernelProfile& kernel = profile.kernels[0];
  EXPECT_EQ(kernel.name, "sample");
  EXPECT_EQ(kernel.Value("ptxas.registers"), 26);
  EXPECT_EQ(kernel.Value("ptxas.stack_bytes"), 16);
  EXPECT_EQ(kernel.Value("ptxas.shared_bytes"), 48);
  EXPECT_EQ(kernel.Value("ptxas.local_bytes_per_thread"), 24);
  EXPECT_FALSE(kernel.Value("ptxas.spill_store_bytes").has_value());
  EXPECT_EQ(kernel.texts.at("build.arch"), "sm_70");
}

TEST(PtxasLog, NothingOfPtxasSaysWhatItIs) {
  const auto sanitizer = ParsePtxasLog("========= COMPUTE-SANITIZER\n", "x");
  ASSERT_FALSE(sanitizer.ok());
  EXPECT_EQ(sanitizer.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(sanitizer.error().message, HasSubstr("compute-sanitizer log"));
  EXPECT_THAT(sanitizer.error().message, HasSubstr("-Xptxas -v"));
  EXPECT_FALSE(ParsePtxasLog("", "x").ok());
  EXPECT_FALSE(ParsePtxasLog("[1/2] Building CXX\n", "x").ok());
}

}  // namespace
}  // namespace kernelpro
