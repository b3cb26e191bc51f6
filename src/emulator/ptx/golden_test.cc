// SPDX-License-Identifier: Apache-2.0
// What compilers really write: tests/data/ptx holds their output, tests/data/corpus the sources.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "emulator/ptx/control_flow.h"
#include "emulator/ptx/line_table.h"
#include "emulator/ptx/liveness.h"
#include "emulator/ptx/module.h"
#include "emulator/ptx/test_support.h"

namespace kernelpro::ptx {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

Module ParseGolden(const std::string& name) {
  const std::filesystem::path path =
      std::filesystem::path(KP_SOURCE_DIR) / "tests" / "data" / "ptx" / name;
  auto text = ReadFile(path);
  EXPECT_TRUE(text.ok()) << path;
  auto module = Parse(*text, name);
  EXPECT_TRUE(module.ok()) << (module.ok() ? "" : module.error().message);
  return module.ok() ? std::move(module).value() : Module{};
}

TEST(Golden, EveryFileAgreesWithACountOfItsStatements) {
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(KP_SOURCE_DIR) + "/tests/data/ptx")) {
    if (entry.path().extension() != ".ptx") {
      continue;
    }
    ++files;
    SCOPED_TRACE(entry.path().filename());
    const auto text = ReadFile(entry.path());
    ASSERT_TRUE(text.ok());
    const auto module = Parse(*text, entry.path().filename());
    ASSERT_TRUE(module.ok()) << module.error().message;
    CheckAgainstText(*module, *text);
  }
  EXPECT_GE(files, 8);
}

TEST(Golden, BothDialectsOfTheNaiveProduct) {
  for (const char* name : {"matmul_naive.sm_90.ptx", "matmul_naive.sm_100.ptx"}) {
    SCOPED_TRACE(name);
    const Module module = ParseGolden(name);
    ASSERT_EQ(module.functions.size(), 1U);
    const Function& f = module.functions[0];
    EXPECT_EQ(f.name, "matmul_naive");
    EXPECT_TRUE(f.is_entry);
    ASSERT_EQ(f.parameters.size(), 6U);
    EXPECT_EQ(f.parameters[5].offset, 32U) << "three pointers, then M, N, K";
    const ControlFlow flow = BuildControlFlow(f);
    EXPECT_FALSE(flow.irreducible);
    EXPECT_GE(flow.loops.size(), 1U) << "the loop over k, and its remainder";
    EXPECT_TRUE(std::ranges::all_of(flow.blocks, [](const auto& b) { return b.reachable; }));
    const Liveness live = *ComputeLiveness(f, flow);
    EXPECT_TRUE(live.live_in[0].empty()) << "something is read that nothing sets";
    // ptxas gives these 28 and 32 registers; what is live must fit in them.
    EXPECT_GE(live.max_live_registers, 12U);
    EXPECT_LE(live.max_live_registers, 40U);
  }
}

TEST(Golden, CallsTablesAndPackedAddresses) {
  for (const char* name : {"calls.sm_90.ptx", "calls.sm_100.ptx"}) {
    SCOPED_TRACE(name);
    const Module module = ParseGolden(name);
    const std::set<std::string> declared = {"vprintf", "malloc", "free", "__assertfail"};
    for (const Function& f : module.functions) {
      EXPECT_EQ(f.is_declaration, declared.contains(f.name)) << f.name;
      EXPECT_EQ(f.is_declaration, f.body.empty()) << f.name;
    }
    std::map<std::string, const Variable*> variables;
    for (const Variable& v : module.variables) {
      variables[v.name] = &v;
    }
    const Variable& packed = *variables.at("packed");
    EXPECT_EQ(packed.bytes, 9U);
    ASSERT_EQ(packed.relocations.size(), 1U);
    EXPECT_EQ(packed.relocations[0].offset, 1U);
    EXPECT_EQ(packed.relocations[0].symbol, "garr");
    EXPECT_EQ(packed.relocations[0].addend, 4);
    const Variable& table = *variables.at("table");
    ASSERT_EQ(table.relocations.size(), 2U);
    EXPECT_EQ(table.relocations[1].symbol, "_Z2g2f");
    EXPECT_FALSE(table.relocations[1].generic);
    EXPECT_EQ(variables.at("cf")->space, Space::kConst);
    EXPECT_TRUE(variables.at("sh")->is_extern);
    const Function& k = *module.Find("_Z1kPfi1S");
    EXPECT_THAT(k.max_ntid, ElementsAre(128U, 1U, 1U));
    EXPECT_EQ(k.min_ctas_per_sm, 2U);
    EXPECT_EQ(k.parameters.at(2).bytes, 16U);
    std::set<std::string> slots;
    for (const Parameter& slot : k.call_slots) {
      EXPECT_TRUE(slots.insert(slot.name).second) << slot.name << " is there twice";
    }
    EXPECT_TRUE(std::ranges::any_of(k.body, [](const Instruction& i) {
      return i.parts[0] == "call" && i.operands.size() == 4 &&
             i.operands[1].kind == Operand::Kind::kRegister;
    })) << "the indirect call";
  }
}

/// (CUDA line, instructions) of one kernel.
std::map<std::uint32_t, int> LinesOf(const Module& module, std::string_view function) {
  std::map<std::uint32_t, int> lines;
  for (const Instruction& i : module.Find(function)->body) {
    EXPECT_TRUE(i.where.line == 0 || module.files.at(i.where.file) == "/src/k13_half.cu")
        << "line " << i.where.ptx_line;
    ++lines[i.where.line];
  }
  return lines;
}

TEST(Golden, InlinedHeaderCodeCountsForTheUsersLine) {
  const Module module = ParseGolden("half.sm_90.ptx");
  ASSERT_EQ(module.files.size(), 7U);
  EXPECT_EQ(module.files[3], "/usr/local/cuda/bin/../targets/x86_64-linux/include/cuda_fp16.hpp");
  // The whole of half2_ops is one source line; one cvta.to is at `.loc 1 0 41`.
  const auto lines = LinesOf(module, "half2_ops");
  ASSERT_TRUE(lines.contains(4));
  for (const auto& [line, count] : lines) {
    EXPECT_TRUE(line == 4 || line == 0) << line << ": " << count;
  }
}

TEST(Lines, ChainsEndAtTheNearestUserFile) {
  const auto module = Parse(
      ".version 9.0\n.target sm_90\n.entry k() { .reg .b32 %r<9>;\n"
      "mov.b32 %r1, 0;\n"
      ".loc 1 7 3\nmov.b32 %r2, 0;\n"
      ".loc 2 20 1, function_name $L__info_string0+4, inlined_at 1 8 5\nmov.b32 %r3, 0;\n"
      ".loc 3 30 1, function_name $L__info_string1, inlined_at 2 20 1\nmov.b32 %r4, 0;\n"
      ".loc 3 31 1, function_name $L__info_string1, inlined_at 4 9 2\nmov.b32 %r5, 0;\n"
      ".loc 4 9 2, function_name $L__info_string1, inlined_at 1 10 2\nmov.b32 %r6, 0;\n"
      ".loc 3 33 3\nmov.b32 %r7, 0;\n"
      ".loc 99 1 1\nmov.b32 %r8, 0; ret; }\n"
      ".entry second() { ret; }\n"
      ".file 1 \"/home/u/k.cu\"\n.file 2 \"/usr/local/cuda/include/cuda_fp16.hpp\", 12, 34\n"
      ".file 3 \"/opt/x/targets/x86_64-linux/include/crt/a.h\"\n.file 4 \"/home/u/mine.cuh\"\n",
      "l.ptx");
  ASSERT_TRUE(module.ok()) << module.error().message;
  const std::pair<std::uint32_t, std::uint32_t> expected[] = {{0, 0}, {1, 7}, {1, 8},  {1, 8},
                                                              {4, 9}, {4, 9}, {3, 33}, {0, 0}};
  for (std::size_t i = 0; i < std::size(expected); ++i) {
    const SourceLocation& where = module->functions[0].body.at(i).where;
    EXPECT_EQ(std::pair(where.file, where.line), expected[i]) << "instruction " << i;
  }
  EXPECT_EQ(module->functions[0].body[0].where.ptx_line, 4U);
  EXPECT_EQ(module->functions[1].body[0].where.line, 0U) << "a .loc ends with its function";
}

TEST(Lines, ToolkitHeadersAreKnownByTheirFolder) {
  EXPECT_TRUE(IsToolkitHeader("/usr/local/cuda-13.0/include/cccl/cuda/std/a.h"));
  EXPECT_TRUE(IsToolkitHeader("/usr/lib/llvm-19/lib/clang/19/include/__clang_cuda_math.h"));
  EXPECT_TRUE(IsToolkitHeader("/v/lib/python3.11/site-packages/nvidia/cu13/include/mma.h"));
  EXPECT_FALSE(IsToolkitHeader("/home/u/cuda-kernels/include/tile.cuh"));
  EXPECT_FALSE(IsToolkitHeader("k.cu"));
}

}  // namespace
}  // namespace kernelpro::ptx
