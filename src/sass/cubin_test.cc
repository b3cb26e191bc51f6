// SPDX-License-Identifier: Apache-2.0
#include "sass/cubin.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "base/file.h"
#include "sass/cubin_histogram.h"
#include "sass/test_cubin.h"

namespace kernelpro::sass {
namespace {

using ::testing::HasSubstr;

std::span<const std::byte> View(const std::string& bytes) {
  return std::as_bytes(std::span(bytes));
}

CubinMaker Scale() {
  CubinMaker maker;
  maker.AddKernel("scale", kScaleKernel);
  return maker;
}

TEST(Cubin, FunctionsArchitectureRegistersLines) {
  CubinMaker maker = Scale();
  maker.sections.emplace_back(".debug_line", "x");
  maker.sections.emplace_back(".note.nv.tkinfo", "ptxas -v -arch sm_90a -m 64");
  maker.sections.emplace_back(".text.helper", Encoded(kScaleKernel));
  const std::string bytes = maker.Bytes();
  const auto code = ReadGpuCode(View(bytes), "a.cubin");
  ASSERT_TRUE(code.ok()) << code.error().message;
  ASSERT_EQ(code->cubins.size(), 1U);
  const Cubin& cubin = code->cubins[0];
  EXPECT_EQ(cubin.arch, "sm_90a");
  EXPECT_TRUE(cubin.exact);
  EXPECT_TRUE(cubin.lineinfo);
  EXPECT_FALSE(cubin.debug);
  ASSERT_EQ(cubin.functions.size(), 2U);
  EXPECT_EQ(cubin.functions[0].name, "scale");
  EXPECT_EQ(cubin.functions[0].registers, 24U);
  EXPECT_TRUE(cubin.functions[0].entry);
  EXPECT_EQ(cubin.functions[0].code.size(), kScaleKernel.size() * 16);
  EXPECT_FALSE(cubin.functions[1].entry);
  const std::string plain = Scale().Bytes();
  const auto twin = ReadGpuCode(View(plain), "a.cubin");
  ASSERT_TRUE(twin.ok());
  EXPECT_EQ(twin->cubins[0].arch, "sm_90");
  EXPECT_FALSE(twin->cubins[0].exact);
  EXPECT_FALSE(twin->cubins[0].lineinfo);
}

TEST(Cubin, OlderHeader) {
  CubinMaker maker = Scale();
  maker.arch = 86;
  maker.modern = false;
  const std::string bytes = maker.Bytes();
  const auto code = ReadGpuCode(View(bytes), "a.cubin");
  ASSERT_TRUE(code.ok());
  EXPECT_EQ(code->cubins[0].arch, "sm_86");
  maker.arch = 61;
  const std::string old = maker.Bytes();
  EXPECT_EQ(ReadGpuCode(View(old), "a.cubin").error().code, ErrorCode::kNotFound);
}

TEST(Cubin, FatBinariesInAProgram) {
  const std::string cubin = Scale().Bytes();
  const std::string fat = FatBinary({{.kind = 1, .payload = ".version 9.0"},
                                     {.payload = cubin},
                                     {.payload = "\x28\xb5\x2f\xfd", .flags = 0x8000, .arch = 80}});
  const std::string program = std::string(
                                  "\x7f"
                                  "ELF host code ") +
                              fat + "more" + FatBinary({{.payload = cubin}}) + "end";
  for (const std::string& file : {fat, program}) {
    const auto code = ReadGpuCode(View(file), "a.out");
    ASSERT_TRUE(code.ok()) << code.error().message;
    EXPECT_EQ(code->cubins.size(), file == fat ? 1U : 2U);
    EXPECT_EQ(code->compressed, std::vector<std::string>{"sm_80 (zstd)"});
    EXPECT_EQ(code->ptx, 1U);
  }
}

TEST(Cubin, WhatHoldsNoCode) {
  const auto error = [](const std::string& bytes) {
    const auto code = ReadGpuCode(View(bytes), "x");
    EXPECT_FALSE(code.ok());
    return code.ok() ? Error() : code.error();
  };
  const Error packed = error(FatBinary({{.payload = "????", .flags = 0x2000, .arch = 90}}));
  EXPECT_EQ(packed.code, ErrorCode::kNotFound);
  EXPECT_THAT(packed.message, HasSubstr("compressed (sm_90 (lz4))"));
  EXPECT_THAT(error(FatBinary({{.kind = 1, .payload = "ptx"}})).message, HasSubstr("only PTX"));
  EXPECT_EQ(error(FatBinary({})).code, ErrorCode::kNotFound);
  EXPECT_EQ(error("some text").code, ErrorCode::kParse);
  EXPECT_EQ(error("").code, ErrorCode::kParse);
}

TEST(Cubin, DamagedFilesAreSafe) {
  const std::string whole = Scale().Bytes();
  const std::string fat = FatBinary({{.payload = whole}});
  for (const std::string& file : {whole, fat}) {
    for (std::size_t n = 0; n < file.size(); ++n) {
      const std::string part = file.substr(0, n);
      EXPECT_FALSE(ReadGpuCode(View(part), "x").ok()) << n;
      std::string flipped = file;
      flipped[n] = static_cast<char>(flipped[n] ^ 0xff);
      (void)ReadGpuCode(View(flipped), "x");
    }
  }
}

TEST(CubinHistogram, CountsWithoutPadding) {
  const std::string bytes = Encoded(kScaleKernel);
  const Histogram h = HistogramOf(View(bytes), 90);
  EXPECT_EQ(h.metrics.at("sass.instructions").value, 5);
  EXPECT_EQ(h.metrics.at("sass.ffma").value, 1);
  EXPECT_EQ(h.metrics.at("sass.ldg").value, 1);
  EXPECT_EQ(h.metrics.at("sass.stg").value, 1);
  EXPECT_EQ(h.metrics.at("sass.branches").value, 0);
  EXPECT_EQ(h.metrics.at("sass.unknown.pct").value, 0);
  EXPECT_EQ(h.metrics.at("sass.arch").value, 90);
  EXPECT_FALSE(h.metrics.contains("sass.warpgroup_wait0"));
  EXPECT_FALSE(h.metrics.contains("sass.loops"));
  EXPECT_EQ(h.opcodes.at("LDC"), 1U);
  const std::string odd = Encoded({{0x1ff, 0}, {0x0000000402007981, 0}});
  const Histogram unknown = HistogramOf(View(odd), 90);
  EXPECT_EQ(unknown.metrics.at("sass.unknown.pct").value, 50);
  EXPECT_EQ(unknown.opcodes.at("unknown_0x1ff"), 1U);
  EXPECT_EQ(HistogramOf({}, 90).metrics.at("sass.instructions").value, 0);
}

TEST(CubinHistogram, MovesAndTheirLike) {
  // IMAD.MOV.U32 R16, RZ, RZ, R2 / IMAD R5, R5, R0, R2 / IMAD.MOV.U32 R3, RZ, RZ, 0x3c003c00.
  EXPECT_EQ(DecodeOpcode(0x000000ffff107224, 0x078e0002, 90), "IMAD.MOV");
  EXPECT_EQ(DecodeOpcode(0x0000000005057224, 0x078e0202, 90), "IMAD");
  EXPECT_EQ(DecodeOpcode(0x3c003c00ff037424, 0x078e00ff, 90), "IMAD.MOV");
  // IMAD.U32 R7, RZ, RZ, UR6 / IMAD.X R63, RZ, RZ, R36, P1
  EXPECT_EQ(DecodeOpcode(0x00000006ff077e24, 0x000fe2000f8e00ff, 90), "IMAD.MOV");
  EXPECT_EQ(DecodeOpcode(0x000000ffff3f7224, 0x000fe400008e0624, 90), "IMAD");
  EXPECT_EQ(DecodeOpcode(0x0000000000047308, 0x1000, 90), "MUFU");
  EXPECT_EQ(DecodeOpcode(0x0000000000047308, 0x1800, 90), "MUFU.64H");
  EXPECT_EQ(DecodeOpcode(0x0000000202047236, 0, 70), "HMMA");
  EXPECT_EQ(DecodeOpcode(0x0000000202047836, 0, 90), "VIADD");
  EXPECT_EQ(DecodeOpcode(0x1ff, 0, 90), "");
}

/// Kernels with 37 of one instruction each, compiled here: every number of the table that a line of
/// CUDA can ask for, on three architectures.
TEST(CubinHistogram, AgreesWithTheCompiler) {
  std::filesystem::path nvcc = FindOnPath("nvcc");
  if (nvcc.empty()) {
    GTEST_SKIP() << "nvcc is not on $PATH";
  }
  const auto folder = TemporaryFolder::Create("kernelpro-cubin");
  ASSERT_TRUE(folder.ok());
  const std::map<std::string, std::pair<std::string, std::string>> kernels = {
      {"fadd", {"float", "add.rn.f32 %0,%0,%1;"}},
      {"fmul", {"float", "mul.rn.f32 %0,%0,%1;"}},
      {"ffma", {"float", "fma.rn.f32 %0,%0,%1,%1;"}},
      {"mufu", {"float", "ex2.approx.ftz.f32 %0,%0;"}},
      {"fp64", {"double", "fma.rn.f64 %0,%0,%1,%1;"}},
      {"shfl", {"unsigned", "shfl.sync.bfly.b32 %0,%0,1,31,-1;"}},
      {"bar", {"unsigned", "bar.sync 0;"}},
      {"ldgsts", {"unsigned", "cp.async.ca.shared.global [%0+16],[gdata],4;"}},
      {"lds", {"unsigned", "ld.volatile.shared.b32 %0,[%0];"}},
      {"sts", {"unsigned", "st.volatile.shared.b32 [%0],%1;"}},
      {"ldsm", {"unsigned", "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0},[%0];"}},
      {"atoms", {"unsigned", "atom.shared.cas.b32 %0,[%0],%1,%1;"}},
  };
  std::string source = "__device__ int gdata;\n";
  for (const auto& [name, kernel] : kernels) {
    const auto& [type, text] = kernel;
    const char letter = type == "float" ? 'f' : type == "double" ? 'd' : 'r';
    source += fmt::format(
        "extern \"C\" __global__ void {0}_k({1}* o) {{\n  {1} x = o[threadIdx.x], y = "
        "o[threadIdx.x + 999];\n#pragma unroll\n"
        "  for (int i = 0; i < 37; ++i) asm volatile(\"{2}\" : \"+{3}\"(x) : \"{3}\"(y));\n"
        "  o[threadIdx.x] = x;\n}}\n",
        name, type, text, letter);
  }
  const auto path = folder->path() / "k.cu";
  ASSERT_TRUE(WriteFileAtomically(path, source).ok());
  for (const std::string arch : {"sm_80", "sm_90a", "sm_100a"}) {
    const auto cubin = folder->path() / (arch + ".cubin");
    const std::string command = fmt::format("{} -cubin -arch={} -o {} {} > /dev/null 2>&1",
                                            nvcc.string(), arch, cubin.string(), path.string());
    ASSERT_EQ(std::system(command.c_str()), 0) << command;  // NOLINT: a fixed command
    const auto bytes = ReadFile(cubin);
    ASSERT_TRUE(bytes.ok());
    const auto code = ReadGpuCode(View(*bytes), arch);
    ASSERT_TRUE(code.ok()) << code.error().message;
    ASSERT_EQ(code->cubins.size(), 1U);
    EXPECT_EQ(code->cubins[0].arch, arch);
    EXPECT_EQ(code->cubins[0].functions.size(), kernels.size());
    for (const CubinFunction& function : code->cubins[0].functions) {
      const Histogram h = HistogramOf(function.code, 90);
      const std::string figure = function.name.substr(0, function.name.size() - 2);
      EXPECT_EQ(h.metrics.at("sass." + figure).value, 37) << arch << " " << figure;
      EXPECT_EQ(h.metrics.at("sass.unknown.pct").value, 0) << arch << " " << figure;
      EXPECT_GT(function.registers.value_or(0), 0U);
      EXPECT_TRUE(function.entry);
    }
  }
}

}  // namespace
}  // namespace kernelpro::sass
