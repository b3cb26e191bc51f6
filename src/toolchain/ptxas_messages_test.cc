// SPDX-License-Identifier: Apache-2.0
#include "toolchain/ptxas_messages.h"

#include <gtest/gtest.h>

#include <string>

namespace kernelpro {
namespace {

TEST(PtxasMessages, KindsFunctionsAndPlaces) {
  const auto messages = ParsePtxasMessages(
      "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are "
      "serialized due to the presence of Extern calls in the function '_Z1kv'\n"
      "ptxas info    : Potential Performance Loss: 'setmaxnreg' ignored to allow debugging.\n"
      "ptxas /tmp/a b.ptx, line 7; warning : Program is doing double precision computations.\n"
      "ptxas warning : Registers are spilled to local memory in function 'f', 1 bytes spill "
      "stores\n"
      "ptxas warning : Local memory used for function 'f', size of stack frame: 8 bytes\n"
      "#7 1.5 ptxas info    : (C7519) warpgroup.arrive is injected in around line 3 by compiler to "
      "allow use of registers in GMMA in function 'g'\n");
  ASSERT_EQ(messages.size(), 6U);
  EXPECT_EQ(messages[0].note.kind, "wgmma_serialized");
  EXPECT_EQ(messages[0].note.code, "C7510");
  EXPECT_EQ(messages[0].function, "_Z1kv");
  EXPECT_EQ(messages[0].note.text.find("(C7510)"), std::string::npos);
  EXPECT_EQ(messages[1].note.kind, "setmaxnreg_ignored");
  EXPECT_EQ(messages[1].note.code, "");
  EXPECT_EQ(messages[1].function, "");
  EXPECT_EQ(messages[2].note.kind, "double_precision");
  EXPECT_EQ(messages[2].note.file, "/tmp/a b.ptx");
  EXPECT_EQ(messages[2].note.line, 7U);
  EXPECT_EQ(messages[3].note.kind, "spill");
  EXPECT_EQ(messages[4].note.kind, "local_memory");
  EXPECT_EQ(messages[5].note.kind, "other");
  EXPECT_EQ(messages[5].function, "g");
}

TEST(PtxasMessages, FiguresErrorsAndRepetitionsAreNone) {
  const std::string twice = "ptxas warning : Local memory used for function 'f'\n";
  EXPECT_EQ(ParsePtxasMessages(twice + twice).size(), 1U);
  EXPECT_TRUE(ParsePtxasMessages("").empty());
  EXPECT_TRUE(ParsePtxasMessages("ptxas info    : Used 8 registers\n"
                                 "ptxas info    : Compiling entry function 'k' for 'sm_90'\n"
                                 "ptxas fatal   : Ptx assembly aborted due to errors\n"
                                 "ptxas k.ptx, line 1; error   : (C1) Unknown modifier\n"
                                 "warning : Local memory used for function 'f'\n"
                                 "ptxas\nptxas : \nptxas info : (C\n")
                  .empty());
}

}  // namespace
}  // namespace kernelpro
