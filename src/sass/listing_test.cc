// SPDX-License-Identifier: Apache-2.0
#include "sass/listing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/file.h"

namespace kernelpro::sass {
namespace {

using ::testing::HasSubstr;

/// An empty binary, two architectures, encodings over two lines, branch targets as numbers.
constexpr std::string_view kCuobjdump = R"(
Fatbin elf code:
================
arch = sm_80
code version = [1,7]

	code for sm_80

Fatbin elf code:
================
arch = sm_90a

	code for sm_90a
		Function : _Z4copyPfS_
	.headerflags	@"EF_CUDA_TEXMODE_UNIFIED EF_CUDA_64BIT_ADDRESS EF_CUDA_SM90"
        /*0000*/                   LDC R1, c[0x0][0x28] ;           /* 0x00000a00ff017b82 */
                                                                    /* 0x000fe20000000800 */
        /*0010*/              @!P0 BRA 0x40 ;                       /* 0x0000000000288947 */
                                                                    /* 0x000fea0003800000 */
        /*0020*/                   LDG.E.128.CONSTANT R4, desc[UR4][R2.64+0x10] ; /* 0x0000100402047981 */
                                                                    /* 0x000ea4000c1e9d00 */
        /*0030*/                   STG.E.128 desc[UR4][R6.64], R4 ; /* 0x0000000406007986 */
                                                                    /* 0x004fe2000c101d04 */
        /*0040*/                   EXIT ;                           /* 0x000000000000794d */
                                                                    /* 0x000fea0003800000 */
		..........

		Function : empty_one
	.headerflags	@"EF_CUDA_SM90"
		Function : second
        /*0000*/                   EXIT ;

Fatbin ptx code:
================
arch = sm_90
compressed
)";

TEST(Listing, Cuobjdump) {
  const auto listing = ParseListing(kCuobjdump, "a.sass");
  ASSERT_TRUE(listing.ok()) << listing.error().message;
  EXPECT_EQ(listing->empty_binaries, 1U);
  ASSERT_EQ(listing->functions.size(), 2U);
  const Function& copy = listing->functions[0];
  EXPECT_EQ(copy.name, "_Z4copyPfS_");
  EXPECT_EQ(copy.arch, "sm_90a");
  EXPECT_EQ(copy.Architecture(), 90);
  ASSERT_EQ(copy.instructions.size(), 5U);
  const Instruction& branch = copy.instructions[1];
  EXPECT_EQ(branch.predicate, "@!P0");
  EXPECT_EQ(branch.opcode, "BRA");
  EXPECT_EQ(branch.targets, std::vector<std::uint64_t>{0x40});
  EXPECT_EQ(branch.Text(), "@!P0 BRA 0x40");
  const Instruction& load = copy.instructions[2];
  EXPECT_EQ(load.address, 0x20U);
  EXPECT_EQ(load.opcode, "LDG.E.128.CONSTANT");
  EXPECT_EQ(load.operands, "R4, desc[UR4][R2.64+0x10]");
  ASSERT_TRUE(load.encoding.has_value());
  EXPECT_EQ((*load.encoding)[0], 0x0000100402047981U);
  EXPECT_EQ((*load.encoding)[1], 0x000ea4000c1e9d00U);
  EXPECT_EQ(listing->functions[1].name, "second");
  EXPECT_FALSE(listing->functions[1].instructions[0].encoding.has_value());
}

constexpr std::string_view kNvdisasm =
    R"SASS(	.headerflags	@"EF_CUDA_64BIT_ADDRESS EF_CUDA_SM70 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM70)"
	.elftype	@"ET_EXEC"

//--------------------- .text.scale               --------------------------
	.section	.text.scale,"ax",@progbits
	.sectioninfo	@"SHI_REGISTERS=12"
	.align	128
.text.scale:
        .type           scale,@function
        .size           scale,(.L_x_2 - scale)
scale:
	//## File "/src/scale.cu", line 7
        /*0000*/                   S2R R0, SR_TID.X ;
	//## File "/src/ops.cuh", line 3 inlined at "/src/scale.cu", line 9
	//## File "/src/scale.cu", line 9
        /*0010*/               @P0 BRA `(.L_x_1) ;
.L_x_0:
        /*0020*/                   BRA `(.L_x_0);
.L_x_1:
        /*0030*/                   EXIT;
        /*0040*/                   NOP;
.L_x_2:
)SASS";

TEST(Listing, Nvdisasm) {
  std::string text(kNvdisasm);
  for (const bool windows : {false, true}) {
    if (windows) {
      for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2) {
        text.replace(at, 1, "\r\n");
      }
    }
    const auto listing = ParseListing(text, "a.s");
    ASSERT_TRUE(listing.ok()) << listing.error().message;
    ASSERT_EQ(listing->functions.size(), 1U);
    const Function& f = listing->functions[0];
    EXPECT_EQ(f.name, "scale");
    EXPECT_EQ(f.arch, "sm_70");
    ASSERT_EQ(f.instructions.size(), 5U);
    EXPECT_EQ(f.FileOf(f.instructions[0]), "/src/scale.cu");
    EXPECT_EQ(f.instructions[0].line, 7U);
    EXPECT_EQ(f.FileOf(f.instructions[1]), "/src/ops.cuh");  // Where it stands, not who inlined it.
    EXPECT_EQ(f.instructions[1].line, 3U);
    EXPECT_EQ(f.instructions[2].line, 3U);  // Goes on until the next mark.
    EXPECT_EQ(f.instructions[1].targets, std::vector<std::uint64_t>{0x30});
    EXPECT_EQ(f.instructions[2].targets, std::vector<std::uint64_t>{0x20});
    EXPECT_EQ(f.files.size(), 2U);
  }
}

constexpr std::string_view kJson = R"([
  {"ELF": {"layout-id": 4}, "SM": {"version": {"major": 9, "minor": 0}},
   "SchemaVersion": {"major": 12, "minor": 8, "revision": 0}, "Producer": "nvdisasm",
   ".note.nv.tkinfo": [{"tki_toolOptions": "-arch sm_90a -m 64"}]},
  [{"function-name": "k", "start": 256, "length": 80, "other-attributes": ["a", "b"],
    "sass-instructions": [
      {"opcode": "MOV", "operands": "R1,c[0x0][0x28]"},
      {"opcode": ""},
      {"predicate": "@P0", "opcode": "BRA", "operands": "0x140",
       "other-attributes": {"control-flow": "True"}},
      {"opcode": "LDG.E", "operands": "R4,desc[UR4][R2.64]", "other-flags": ["x"]},
      {"opcode": "EXIT", "other-attributes": {"control-flow": "True"}}]},
   {"function-name": "none", "start": 0, "length": 0, "sass-instructions": []}]])";

TEST(Listing, InlinedFromCudasOwnHeaders) {
  const auto listing = ParseListing(R"SASS(.text.k:
	//## File "/usr/local/cuda/include/cuda_bf16.hpp", line 900 inlined at "/src/a.cu", line 9
	//## File "/src/a.cu", line 9 inlined at "/src/a.cu", line 20
	//## File "/src/a.cu", line 20
        /*0000*/                   FADD R1, R1, R2 ;
	//## File "/usr/local/cuda/include/cuda_bf16.hpp", line 901
        /*0010*/                   EXIT ;
)SASS",
                                    "x");
  ASSERT_TRUE(listing.ok()) << listing.error().message;
  const Function& f = listing->functions[0];
  EXPECT_EQ(f.FileOf(f.instructions[0]), "/src/a.cu");
  EXPECT_EQ(f.instructions[0].line, 9U);
  EXPECT_EQ(f.instructions[1].line, 901U);  // There is no other.
}

TEST(Listing, Json) {
  const auto listing = ParseListing(kJson, "a.json");
  ASSERT_TRUE(listing.ok()) << listing.error().message;
  ASSERT_EQ(listing->functions.size(), 1U);
  const Function& f = listing->functions[0];
  EXPECT_EQ(f.name, "k");
  EXPECT_EQ(f.arch, "sm_90a");
  ASSERT_EQ(f.instructions.size(), 4U);
  EXPECT_EQ(f.instructions[1].address, 0x20U);  // The gap counts.
  EXPECT_EQ(f.instructions[1].predicate, "@P0");
  EXPECT_EQ(f.instructions[1].targets, std::vector<std::uint64_t>{0x40});
  // Some writers count targets from the function.
  std::string relative(kJson);
  relative.replace(relative.find("0x140"), 5, "0x40");
  const auto twin = ParseListing(relative, "b.json");
  ASSERT_TRUE(twin.ok());
  EXPECT_EQ(twin->functions[0].instructions[1].targets, std::vector<std::uint64_t>{0x40});
  EXPECT_EQ(f.instructions[3].opcode, "EXIT");
  EXPECT_EQ(f.instructions[3].operands, "");
}

TEST(Listing, WhatIsNoListing) {
  const auto error = [](std::string_view text) {
    const auto listing = ParseListing(text, "x");
    EXPECT_FALSE(listing.ok()) << text;
    return listing.ok() ? Error() : listing.error();
  };
  const Error assembler = error("<params>\ninput, 8\n</params>\n--:-:0:-:2      LDS vA, [RZ];\n");
  EXPECT_EQ(assembler.code, ErrorCode::kParse);
  EXPECT_THAT(assembler.message, HasSubstr("x:4: assembler input"));
  EXPECT_THAT(error("[B------:R-:W-:-:S02] MOV R1, c[0x0][0x28] ;\n").message,
              HasSubstr("assembler input"));
  EXPECT_THAT(error("========= COMPUTE-SANITIZER\n").message, HasSubstr("compute-sanitizer"));
  EXPECT_THAT(error("ptxas info    : 0 bytes gmem\n").message, HasSubstr("the log of ptxas"));
  EXPECT_THAT(error(".version 9.0\n.target sm_90\n.address_size 64\n").message, HasSubstr("PTX"));
  EXPECT_EQ(error("").code, ErrorCode::kParse);
  EXPECT_EQ(error("\tcode for sm_90\n\n").code, ErrorCode::kNotFound);
  const Error ptx = error("\nFatbin ptx code:\n================\narch = sm_80\ncompressed\n");
  EXPECT_EQ(ptx.code, ErrorCode::kNotFound);
  EXPECT_THAT(ptx.message, HasSubstr("PTX only"));
  EXPECT_THAT(
      error("\tcode for sm_52\n\t\tFunction : k\n /*0008*/ MOV R1, R2; /* 0x1 */\n").message,
      HasSubstr("sm_52: only sm_70"));
  EXPECT_THAT(error("\t\tFunction : k\n        /*0000*/   MOV R1, R2").message, HasSubstr("x:2: "));
  EXPECT_THAT(error("/*0010*/ EXIT ;\n/*0010*/ EXIT ;\n").message, HasSubstr("x:2: addresses"));
  EXPECT_THAT(error("[\n{},\n[{\"function-name\": }]]").message, HasSubstr("x:3: broken JSON"));
  EXPECT_EQ(error("{\"a\": 1}").code, ErrorCode::kParse);
  EXPECT_EQ(error("[{}, []]").code, ErrorCode::kParse);
}

TEST(Listing, OldCodeBesideNewIsPassedOver) {
  const auto listing = ParseListing(
      "\tcode for sm_52\n\t\tFunction : k\n        /*0008*/   MOV R1, R2;   /* 0x1 */\n"
      "\tcode for sm_90\n\t\tFunction : k\n        /*0000*/   EXIT ;\n",
      "x");
  ASSERT_TRUE(listing.ok()) << listing.error().message;
  ASSERT_EQ(listing->functions.size(), 1U);
  EXPECT_EQ(listing->functions[0].arch, "sm_90");
}

TEST(Listing, EveryPrefixIsSafe) {
  for (const std::string_view text : {kCuobjdump, kNvdisasm, kJson}) {
    for (std::size_t n = 0; n < text.size(); ++n) {
      const auto listing = ParseListing(text.substr(0, n), "x");
      if (!listing.ok()) {
        EXPECT_FALSE(listing.error().message.empty());
      }
    }
  }
}

/// Dumps that other people made, when the folder is at hand (they are not ours to distribute).
class FieldListing : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("KERNELPRO_FIELD_PROFILES");  // NOLINT(concurrency-mt-unsafe)
    if (folder == nullptr) {
      GTEST_SKIP() << "KERNELPRO_FIELD_PROFILES is not set";
    }
    folder_ = folder;
  }

  Result<Listing> Read(const std::string& name) {
    auto text = ReadFile(folder_ / name);
    EXPECT_TRUE(text.ok());
    return ParseListing(text.ok() ? *text : "", name);
  }

  std::filesystem::path folder_;
};

TEST_F(FieldListing, Cuobjdump) {
  const auto listing = Read("25_cuobjdump_sass_sm86.txt");
  ASSERT_TRUE(listing.ok()) << listing.error().message;
  EXPECT_EQ(listing->empty_binaries, 1U);
  ASSERT_EQ(listing->functions.size(), 1U);
  EXPECT_EQ(listing->functions[0].arch, "sm_86");
  EXPECT_EQ(listing->functions[0].instructions.size(), 96U);
  for (const Instruction& instruction : listing->functions[0].instructions) {
    ASSERT_TRUE(instruction.encoding.has_value());
    EXPECT_NE((*instruction.encoding)[1], 0U);
  }
}

TEST_F(FieldListing, Nvdisasm) {
  const auto listing = Read("26_sass_sm70.txt");
  ASSERT_TRUE(listing.ok()) << listing.error().message;
  std::size_t count = 0;
  for (const Function& function : listing->functions) {
    EXPECT_EQ(function.arch, "sm_70");
    count += function.instructions.size();
    EXPECT_FALSE(function.files.empty());
  }
  EXPECT_EQ(count, 1720U);
}

TEST_F(FieldListing, Volta) {
  const auto listing = Read("28_sass_v100_hmma.txt");
  ASSERT_TRUE(listing.ok()) << listing.error().message;
  ASSERT_EQ(listing->functions.size(), 1U);
  std::size_t matrix = 0;
  for (const Instruction& instruction : listing->functions[0].instructions) {
    matrix += instruction.opcode.starts_with("HMMA") ? 1U : 0U;
  }
  EXPECT_EQ(listing->functions[0].instructions.size(), 112U);
  EXPECT_EQ(matrix, 34U);
}

TEST_F(FieldListing, AssemblerInput) {
  const auto listing = Read("30_turingas_style.sass");
  ASSERT_FALSE(listing.ok());
  EXPECT_EQ(listing.error().code, ErrorCode::kParse);
  EXPECT_THAT(listing.error().message, HasSubstr("assembler input"));
}

TEST_F(FieldListing, NothingInTheFolderCrashes) {
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    if (entry.is_regular_file()) {
      const auto listing = Read(entry.path().filename());
      if (!listing.ok()) {
        EXPECT_THAT(listing.error().message, HasSubstr(entry.path().filename().string()));
      }
    }
  }
}

}  // namespace
}  // namespace kernelpro::sass
