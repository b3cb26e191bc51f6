// SPDX-License-Identifier: Apache-2.0
#include "sass/operands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "sass/listing_parts.h"

namespace kernelpro::sass {
namespace {

/// "R4 R5 UR2 P0", sorted by file and number.
std::string Words(std::vector<Slot> slots) {
  std::ranges::sort(slots);
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  std::string text;
  for (const Slot slot : slots) {
    const bool uniform =
        (slot >= kUniformSlots && slot < kPredicateSlots) || slot >= kUniformPredicateSlots;
    const int base = slot >= kUniformPredicateSlots ? kUniformPredicateSlots
                     : slot >= kPredicateSlots      ? kPredicateSlots
                     : slot >= kUniformSlots        ? kUniformSlots
                                                    : 0;
    text += text.empty() ? "" : " ";
    text += uniform ? "U" : "";
    text += (base >= kPredicateSlots ? "P" : "R") + std::to_string(slot - base);
  }
  return text;
}

struct Case {
  std::string_view text, writes, reads;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.text;
}

class Operands : public ::testing::TestWithParam<Case> {};

TEST_P(Operands, WritesAndReads) {
  Instruction instruction;
  ASSERT_TRUE(SplitInstruction(GetParam().text, &instruction));
  const Access access = AccessOf(instruction);
  EXPECT_EQ(Words(access.writes), GetParam().writes) << GetParam().text;
  EXPECT_EQ(Words(access.reads), GetParam().reads) << GetParam().text;
}

INSTANTIATE_TEST_SUITE_P(
    Each, Operands,
    ::testing::Values(
        Case{"FFMA R0, R1.reuse, -R2, |R3|", "R0", "R1 R2 R3"},
        Case{"@!P3 FADD R0, R1, RZ", "R0", "R1 P3"},
        Case{"IMAD.WIDE R2, R3, 0x4, R4", "R2 R3", "R3 R4 R5"},
        Case{"IMAD.WIDE.U32 R2, P0, R3, c[0x0][0x8], R4", "R2 R3 P0", "R3 R4 R5"},
        Case{"IADD3 R2, P0, P1, R4, R5, RZ", "R2 P0 P1", "R4 R5"},
        Case{"IADD3.X R0, R5, R6, RZ, P0, !PT", "R0", "R5 R6 P0"},
        Case{"LEA.HI.X R3, R2, R4, R5, 0x2, P1", "R3", "R2 R4 R5 P1"},
        Case{"LOP3.LUT P0, RZ, R16, 0x3, RZ, 0xc0, !PT", "P0", "R16"},
        Case{"ISETP.GE.U32.AND P0, PT, R0, c[0x0][0x164], P2", "P0", "R0 P2"},
        Case{"PLOP3.LUT P1, PT, P0, PT, UP2, 0x80, 0x8", "P1", "P0 UP2"},
        Case{"FCHK P0, R0, R1", "P0", "R0 R1"}, Case{"SEL R4, R5, R6, !P0", "R4", "R5 R6 P0"},
        Case{"LDG.E.128 R4, desc[UR6][R2.64+0x10]", "R4 R5 R6 R7", "R2 R3 UR6 UR7"},
        Case{"LDG.E.U8 R4, [R2.64]", "R4", "R2 R3"},
        Case{"STG.E.64 desc[UR6][R2.64], R8", "", "R2 R3 R8 R9 UR6 UR7"},
        Case{"LDS.64 R4, [R2.X4+UR4+0x80]", "R4 R5", "R2 UR4"},
        Case{"STS.128 [R2+0x80], R8", "", "R2 R8 R9 R10 R11"},
        Case{"LDSM.16.MT88.4 R4, [R9]", "R4 R5 R6 R7", "R9"},
        Case{"LDGSTS.E.BYPASS.128 [R3], desc[UR4][R6.64]", "", "R3 R6 R7 UR4 UR5"},
        Case{"ATOMG.E.ADD.STRONG.GPU PT, R3, desc[UR4][R6.64], R8", "R3", "R6 R7 R8 UR4 UR5"},
        Case{"REDG.E.ADD.F32.FTZ.RN.STRONG.GPU desc[UR4][R6.64], R8", "", "R6 R7 R8 UR4 UR5"},
        Case{"SHFL.BFLY PT, R3, R2, 0x1, 0x1f", "R3", "R2"},
        Case{"VOTE.ANY R6, PT, P0", "R6", "P0"},
        Case{"HMMA.16816.F32.BF16 R4, R8, R12, R4", "R4 R5 R6 R7",
             "R4 R5 R6 R7 R8 R9 R10 R11 R12 R13"},
        Case{"HMMA.1688.F32 R4, R8, R12, RZ", "R4 R5 R6 R7", "R8 R9 R12"},
        Case{"IMMA.16832.S8.S8 R4, R8.ROW, R12.COL, R4", "R4 R5 R6 R7",
             "R4 R5 R6 R7 R8 R9 R10 R11 R12 R13"},
        Case{"DMMA.884 R4, R8, R10, R4", "R4 R5 R6 R7", "R4 R5 R6 R7 R8 R9 R10 R11"},
        Case{"HGMMA.64x8x16.F32 R24, gdesc[UR4], RZ, !UPT", "R24 R25 R26 R27", "UR4 UR5 UR6 UR7"},
        Case{"HGMMA.64x8x16.F32 R24, R4, gdesc[UR8], R24, gsb0", "R24 R25 R26 R27",
             "R4 R5 R6 R7 R24 R25 R26 R27 UR8 UR9"},
        Case{"DFMA R4, R6, R8, R10", "R4 R5", "R6 R7 R8 R9 R10 R11"},
        Case{"FFMA2 R4, R6.F32x2.HI_LO, R8.F32x2.HI_LO, R4.F32x2.HI_LO", "R4 R5",
             "R4 R5 R6 R7 R8 R9"},
        Case{"F2F.F64.F32 R4, R6", "R4 R5", "R6"}, Case{"F2F.F32.F64 R4, R6", "R4", "R6 R7"},
        Case{"I2F.F64.S64 R4, R6", "R4 R5", "R6 R7"}, Case{"I2F.U64 R4, R6", "R4", "R6 R7"},
        Case{"CS2R R4, SRZ", "R4 R5", ""}, Case{"CS2R.32 R4, SR_CLOCKLO", "R4", ""},
        Case{"S2R R4, SR_TID.X", "R4", ""}, Case{"ULDC.64 UR4, c[0x0][0x118]", "UR4 UR5", ""},
        Case{"R2UR UR4, R8", "UR4", "R8"}, Case{"LDC R4, c[0x0][R8]", "R4", "R8"},
        Case{"BRX R2 -0x230", "", "R2 R3"}, Case{"RET.REL.NODEC R20 `(kernel)", "", "R20 R21"},
        Case{"BRA.U UP0, `(.L_x_1)", "", "UP0"}, Case{"BAR.SYNC 0x0", "", ""},
        Case{"SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R5+URZ+0x140], R4", "P0", "R4 R5"},
        Case{"SYNCS.ARRIVE.TRANS64.A1T0 RZ, [R0], RZ", "", "R0"},
        Case{"UTMALDG.2D [UR8], [UR4]", "", "UR4 UR8"},
        Case{"LDTM.x4 R4, tmem[UR4]", "R4 R5 R6 R7", "UR4"},
        Case{"R2P PR, R0, 0x7f", "P0 P1 P2 P3 P4 P5 P6", "R0"}));

TEST(OperandsMore, Addresses) {
  const auto address = [](std::string_view text) {
    Instruction instruction;
    EXPECT_TRUE(SplitInstruction(text, &instruction));
    return AddressOf(instruction);
  };
  const auto global = address("LDG.E R4, desc[UR6][R2.64+0x10]");
  ASSERT_TRUE(global.has_value());
  EXPECT_EQ(global->base, Slot{2});
  EXPECT_EQ(global->offset, 16);
  const auto minus = address("LDS R4, [R2+UR5+-0x8]");
  ASSERT_TRUE(minus.has_value());
  EXPECT_EQ(minus->offset, -8);
  EXPECT_EQ(minus->uniform, Slot{kUniformSlots + 5});
  EXPECT_EQ(address("LDGSTS.E [R3], desc[UR4][R6.64]")->base, Slot{6});
  EXPECT_FALSE(address("LDC R4, c[0x0][0x10]").has_value());
  EXPECT_FALSE(address("FADD R4, R5, R6").has_value());
}

TEST(OperandsMore, OddTextsAreSafe) {
  for (const std::string_view text :
       {"LDG", "LDG ,,,", "LDG [", "LDG R999999999999, [R2", "FFMA R0, [[[[R1]]]], ]]]]",
        "HMMA.99999999999.F32 R250, R250, R250, R250", "@ FADD R0, R1, R2", "ISETP P0",
        "HGMMA.64x99999x16 R0, gdesc[", "LDTM.x999999 R4, tmem[UR4]"}) {
    Instruction instruction;
    if (SplitInstruction(text, &instruction)) {
      for (const Slot slot : AccessOf(instruction).writes) {
        EXPECT_LT(slot, kSlots);
      }
      (void)AddressOf(instruction);
    }
  }
}

}  // namespace
}  // namespace kernelpro::sass
