// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

#include "emulator/simt/alu_test_util.h"

// Which opcode strings SelectAlu answers for.
namespace kernelpro::simt::alu_test {
namespace {

/// First parts of opcodes that are not arithmetic: memory, control, barriers, cross-lane, tensor
/// cores, asynchronous copies. The engine executes or rejects these itself.
const std::set<std::string>& NotArithmetic() {
  static const std::set<std::string> kNames = {
      "activemask", "atom",      "bar",      "barrier", "bra",   "call",     "cp",
      "fence",      "ld",        "ldmatrix", "mapa",    "match", "mbarrier", "membar",
      "mma",        "nanosleep", "prefetch", "redux",   "ret",   "shfl",     "st",
      "trap",       "vote",      "wgmma",    "wmma"};
  return kNames;
}

/// cvta of these spaces needs the windows' addresses.
bool IsEngineCvta(const std::string& opcode) {
  return opcode == "cvta.local.u64" || opcode == "cvta.param.u64" || opcode == "cvta.shared.u64";
}

TEST(CoverageTest, EveryArithmeticOpcodeOfTheCorpus) {
  std::ifstream list(KP_SOURCE_DIR "/tests/data/ptx/opcodes.txt");
  ASSERT_TRUE(list.is_open());
  int arithmetic = 0;
  std::string opcode;
  for (long count = 0; list >> opcode >> count;) {
    const bool expected =
        !NotArithmetic().contains(opcode.substr(0, opcode.find('.'))) && !IsEngineCvta(opcode);
    EXPECT_EQ(Supported(opcode), expected) << opcode;
    arithmetic += expected ? 1 : 0;
  }
  EXPECT_GT(arithmetic, 150);
}

TEST(CoverageTest, UnknownModifiersAreNotIgnored) {
  for (const char* opcode : {"add.f33",
                             "add",
                             "add.",
                             "add.s32.s32",
                             "add.rn.s32",
                             "add.sat.u32",
                             "add.ftz.f64",
                             "add.rn.rz.f32",
                             "add.rn.rn.f32",
                             "add.wide.u32",
                             "mul.s32",
                             "mul.wide.s64",
                             "mul.lo.f32",
                             "fma.f32",
                             "fma.f64",
                             "div.f32",
                             "div.sat.rn.f32",
                             "sqrt.f32",
                             "min.sat.f32",
                             "min.NaN.f64",
                             "setp.f32",
                             "setp.ltu.s32",
                             "setp.lo.s32",
                             "setp.lt.b32",
                             "setp.lt.foo.f32",
                             "setp.eq.ftz.f64",
                             "set.eq.and.u32.f32",
                             "cvt.f32",
                             "cvt.f32.s32",
                             "cvt.s32.f32",
                             "cvt.rn.s32.f32",
                             "cvt.rna.bf16.f32",
                             "cvt.rm.tf32.f32",
                             "cvt.rn.e4m3x2.f32",
                             "cvt.f16.f32",
                             "cvt.rn.f64.f32",
                             "mov.f16x2",
                             "mov.b128",
                             "mov.v2.f32",
                             "selp.b8",
                             "cvta.to.shared.u64",
                             "cvta.global.u32",
                             "ex2.f32",
                             "ex2.approx.f16.ftz",
                             "tanh.f32",
                             "tanh.approx.ftz.f32",
                             "lop3.and.b32",
                             "prmt.b32.xyz",
                             "shf.l.b32",
                             "shl.s32",
                             "and.u32",
                             "bfe.b32",
                             "popc.u32",
                             "neg.u32",
                             "abs.u32",
                             "dp4a.u32",
                             "mad.cc.lo.f32",
                             "add.noftz.f16",
                             "fma.rn.oob.f16",
                             "sin.approx.f64",
                             "rcp.approx.f64",
                             "frob.f32",
                             ""}) {
    EXPECT_FALSE(Supported(opcode)) << opcode;
  }
}

TEST(CoverageTest, BothInstructionSetsAnswerAlike) {
  std::ifstream list(KP_SOURCE_DIR "/tests/data/ptx/opcodes.txt");
  std::string opcode;
  for (long count = 0; list >> opcode >> count;) {
    for (const AluIsa isa : Isas()) {
      EXPECT_EQ(SelectAluFor(isa, Parse(opcode)).run != nullptr, Supported(opcode)) << opcode;
    }
  }
}

}  // namespace
}  // namespace kernelpro::simt::alu_test
