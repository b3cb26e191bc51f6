// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/control_flow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "emulator/ptx/liveness.h"
#include "emulator/ptx/module.h"

namespace kernelpro::ptx {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

Function ParseBody(const std::string& body) {
  auto module = Parse(
      ".version 9.0\n.target sm_90\n.entry k() {\n"
      ".reg .pred %p<9>; .reg .b32 %r<99>; .reg .b64 %rd<99>; .reg .b128 %q<9>;\n" +
          body + "\n}",
      "c.ptx");
  EXPECT_TRUE(module.ok()) << (module.ok() ? "" : module.error().message);
  return module.ok() ? std::move(module->functions.at(0)) : Function{};
}

/// Block number of the instruction.
std::uint32_t At(const ControlFlow& flow, std::uint32_t instruction) {
  return flow.block_of.at(instruction);
}

TEST(ControlFlow, DiamondMeetsAtItsPostDominator) {
  const Function f = ParseBody(
      "@%p1 bra ELSE;\n"  // 0
      "mov.u32 %r1, 1;\n"
      "bra JOIN;\n"                  // 2
      "ELSE: mov.u32 %r1, 2;\n"      // 3
      "JOIN: mov.u32 %r2, %r1;\n"    // 4
      "ret;\n"                       // 5
      "mov.u32 %r3, 9; bra JOIN;");  // 6: unreachable
  const ControlFlow flow = BuildControlFlow(f);
  ASSERT_EQ(flow.blocks.size(), 5U);
  const std::uint32_t entry = At(flow, 0);
  const std::uint32_t left = At(flow, 1);
  const std::uint32_t right = At(flow, 3);
  const std::uint32_t join = At(flow, 4);
  EXPECT_EQ(entry, 0U);
  EXPECT_EQ(left, 1U) << "the fall-through comes first";
  EXPECT_EQ(join, 3U);
  EXPECT_THAT(flow.blocks[entry].successors, ElementsAre(right, left));
  EXPECT_EQ(flow.blocks[entry].post_dominator, join);
  EXPECT_EQ(flow.blocks[left].post_dominator, join);
  EXPECT_EQ(flow.blocks[join].post_dominator, kNoBlock);
  EXPECT_EQ(flow.blocks[join].dominator, entry);
  EXPECT_TRUE(flow.blocks[join].leaves);
  EXPECT_FALSE(flow.blocks[entry].leaves);
  EXPECT_EQ(At(flow, 6), 4U);
  EXPECT_FALSE(flow.blocks[4].reachable);
  EXPECT_TRUE(flow.loops.empty());
  EXPECT_FALSE(flow.irreducible);
}

TEST(ControlFlow, NestedLoopsStayContiguous) {
  // The exit of the inner loop is written before the inner loop: text order would interleave them.
  const Function f = ParseBody(
      "OUTER: @%p1 bra INNER;\n"            // 0
      "AFTER: @%p2 bra OUTER;\n"            // 1, latch of OUTER
      "ret;\n"                              // 2
      "INNER: @%p3 bra SKIP;\n"             // 3
      "mov.u32 %r1, 1;\n"                   // 4
      "SKIP: @%p4 bra AFTER;\n"             // 5
      "mov.u32 %r1, 2;\n@%p5 bra INNER;\n"  // 6, 7
      "bra INNER;");                        // 8
  const ControlFlow flow = BuildControlFlow(f);
  ASSERT_EQ(flow.loops.size(), 2U);
  const Loop& outer = flow.loops[0];
  const Loop& inner = flow.loops[1];
  EXPECT_EQ(outer.header, At(flow, 0));
  EXPECT_EQ(outer.depth, 1U);
  EXPECT_EQ(outer.parent, kNoBlock);
  EXPECT_THAT(outer.latches, ElementsAre(At(flow, 1)));
  EXPECT_EQ(inner.header, At(flow, 3));
  EXPECT_EQ(inner.depth, 2U);
  EXPECT_EQ(inner.parent, 0U);
  EXPECT_THAT(inner.latches, UnorderedElementsAre(At(flow, 7), At(flow, 8)));
  EXPECT_EQ(inner.end - inner.header, 5U) << "3, 4, 5, 6-7 and 8";
  EXPECT_GT(At(flow, 1), At(flow, 8)) << "the inner loop's exit comes after all of it";
  EXPECT_TRUE(outer.Contains(At(flow, 1)));
  EXPECT_FALSE(outer.Contains(At(flow, 2)));
  EXPECT_EQ(flow.blocks[At(flow, 1)].loop, 0U);
  EXPECT_EQ(flow.back_edges.size(), 3U);
}

TEST(ControlFlow, TwoEntriesMakeACycleIrreducible) {
  const Function f = ParseBody("@%p1 bra B; A: mov.u32 %r1, 1; B: @%p2 bra A; ret;");
  const ControlFlow flow = BuildControlFlow(f);
  EXPECT_TRUE(flow.irreducible);
  EXPECT_TRUE(flow.loops.empty());
  EXPECT_TRUE(flow.back_edges.empty());
}

TEST(ControlFlow, EndlessLoopHasNoPostDominator) {
  const Function f = ParseBody("@%p1 bra OUT; L: bra L; OUT: ret;");
  const ControlFlow flow = BuildControlFlow(f);
  EXPECT_EQ(flow.blocks[At(flow, 1)].post_dominator, kNoBlock);
  EXPECT_EQ(flow.blocks[0].post_dominator, At(flow, 2)) << "the only way out";
  ASSERT_EQ(flow.loops.size(), 1U);
  EXPECT_EQ(flow.loops[0].end, flow.loops[0].header + 1);
}

TEST(ControlFlow, IndexedBranchAndGuardedExit) {
  const Function f = ParseBody(
      "brx.idx %r1, T; T: .branchtargets A, B, A, C;\n"
      "A: @%p1 exit;\nmov.u32 %r1, 1; trap;\nB: call_free: ret;\nC: bra B;");
  const ControlFlow flow = BuildControlFlow(f);
  EXPECT_THAT(flow.blocks[0].successors, ElementsAre(At(flow, 1), At(flow, 4), At(flow, 5)));
  EXPECT_TRUE(flow.blocks[At(flow, 1)].leaves);
  EXPECT_THAT(flow.blocks[At(flow, 1)].successors, ElementsAre(At(flow, 2)));
  EXPECT_TRUE(flow.blocks[At(flow, 2)].successors.empty());
  EXPECT_EQ(flow.blocks[0].post_dominator, kNoBlock);
}

TEST(ControlFlow, EmptyFunctionHasNoBlocks) {
  EXPECT_TRUE(BuildControlFlow(Function{}).blocks.empty());
}

/// A random body of guarded and plain branches.
Function RandomFunction(Rng& rng, std::uint32_t size) {
  Function f;
  f.registers.push_back({"%p0", Type::kPred});
  for (std::uint32_t i = 0; i < size; ++i) {
    Instruction instruction;
    const std::uint64_t kind = rng.Next() % 6;
    if (kind < 3) {
      instruction.opcode = "bra";
      instruction.guard = kind == 0 ? Operand::kNoRegister : 0;
      Operand& target = instruction.operands.emplace_back();
      target.kind = Operand::Kind::kLabel;
      target.target = static_cast<std::uint32_t>(rng.Next() % size);
    } else {
      instruction.opcode = kind == 3 ? "ret" : "nop";
      instruction.guard = rng.Next() % 4 == 0 ? Operand::kNoRegister : 0;
    }
    instruction.parts = {instruction.opcode};
    f.body.push_back(std::move(instruction));
  }
  return f;
}

/// Blocks that can be reached from `from` when `without` is closed.
std::vector<bool> Reach(const ControlFlow& flow, std::uint32_t from, std::uint32_t without) {
  std::vector<bool> seen(flow.blocks.size(), false);
  std::vector<std::uint32_t> work;
  if (from != without) {
    work.push_back(from);
    seen[from] = true;
  }
  while (!work.empty()) {
    const std::uint32_t block = work.back();
    work.pop_back();
    for (const std::uint32_t to : flow.blocks[block].successors) {
      if (to != without && !seen[to]) {
        seen[to] = true;
        work.push_back(to);
      }
    }
  }
  return seen;
}

bool CanLeave(const ControlFlow& flow, std::uint32_t from, std::uint32_t without) {
  const std::vector<bool> seen = Reach(flow, from, without);
  for (std::uint32_t i = 0; i < seen.size(); ++i) {
    if (seen[i] && flow.blocks[i].leaves) {
      return true;
    }
  }
  return false;
}

/// The definition of dominance: b cannot be reached when a is closed.
void CheckDominators(const ControlFlow& flow) {
  const auto count = static_cast<std::uint32_t>(flow.blocks.size());
  const std::vector<bool> reachable = Reach(flow, 0, kNoBlock);
  std::vector<std::vector<bool>> dominated(count);  // [a][b]: a strictly dominates b
  std::vector<std::uint32_t> depth(count, 0);
  for (std::uint32_t a = 0; a < count; ++a) {
    const std::vector<bool> without = Reach(flow, 0, a);
    dominated[a].resize(count);
    for (std::uint32_t b = 0; b < count; ++b) {
      dominated[a][b] = a != b && reachable[a] && reachable[b] && !without[b];
      depth[b] += dominated[a][b] ? 1U : 0U;
    }
  }
  for (std::uint32_t b = 0; b < count; ++b) {
    ASSERT_EQ(flow.blocks[b].reachable, reachable[b]);
    std::uint32_t nearest = kNoBlock;
    for (std::uint32_t a = 0; a < count; ++a) {
      if (dominated[a][b] && depth[a] + 1 == depth[b]) {
        nearest = a;
      }
    }
    ASSERT_EQ(flow.blocks[b].dominator, nearest) << "block " << b;
  }
}

void CheckPostDominators(const ControlFlow& flow) {
  const auto count = static_cast<std::uint32_t>(flow.blocks.size());
  for (std::uint32_t b = 0; b < count; ++b) {
    // Of the blocks on every way out of b, the nearest has the most such blocks of its own.
    std::optional<std::uint32_t> nearest;
    std::size_t most = 0;
    for (std::uint32_t a = 0; a < count; ++a) {
      if (a == b || !CanLeave(flow, b, kNoBlock) || CanLeave(flow, b, a)) {
        continue;
      }
      std::size_t own = 1;
      for (std::uint32_t c = 0; c < count; ++c) {
        own += c != a && !CanLeave(flow, a, c) ? 1U : 0U;
      }
      if (own > most) {
        most = own;
        nearest = a;
      }
    }
    ASSERT_EQ(flow.blocks[b].post_dominator, nearest.value_or(kNoBlock)) << "block " << b;
  }
}

/// A back edge goes to a block that closes off its source; every other edge goes up the numbers,
/// or the function is irreducible. A loop is what reaches its latches without its header.
void CheckNumbering(const ControlFlow& flow) {
  bool goes_down_otherwise = false;
  for (std::uint32_t b = 0; b < flow.blocks.size(); ++b) {
    for (const std::uint32_t to : flow.blocks[b].successors) {
      if (!flow.blocks[b].reachable) {
        continue;
      }
      const bool back = b == to || !Reach(flow, 0, to)[b];
      ASSERT_EQ(std::ranges::count(flow.back_edges, std::pair{b, to}), back ? 1 : 0);
      goes_down_otherwise = goes_down_otherwise || (!back && to <= b);
    }
  }
  if (goes_down_otherwise) {
    ASSERT_TRUE(flow.irreducible);
  }
  for (const Loop& loop : flow.loops) {
    for (std::uint32_t b = 0; b < flow.blocks.size(); ++b) {
      const std::vector<bool> seen = Reach(flow, b, loop.header);
      const bool reaches =
          std::ranges::any_of(loop.latches, [&](std::uint32_t latch) { return seen[latch]; });
      const bool member = b == loop.header || (flow.blocks[b].reachable && reaches);
      ASSERT_EQ(loop.Contains(b), member) << "block " << b << " loop at " << loop.header;
    }
    if (loop.parent != kNoBlock) {
      ASSERT_TRUE(flow.loops[loop.parent].Contains(loop.header));
      ASSERT_EQ(loop.depth, flow.loops[loop.parent].depth + 1);
    }
  }
}

TEST(ControlFlow, AgreesWithTheDefinitionsOnRandomGraphs) {
  Rng rng(20261130);
  int reducible_with_loops = 0;
  int irreducible = 0;
  for (int round = 0; round < 200; ++round) {
    const Function f = RandomFunction(rng, 3 + static_cast<std::uint32_t>(rng.Next() % 22));
    const ControlFlow flow = BuildControlFlow(f);
    ASSERT_NO_FATAL_FAILURE(CheckDominators(flow)) << "round " << round;
    ASSERT_NO_FATAL_FAILURE(CheckPostDominators(flow)) << "round " << round;
    ASSERT_NO_FATAL_FAILURE(CheckNumbering(flow)) << "round " << round;
    reducible_with_loops += !flow.irreducible && !flow.loops.empty() ? 1 : 0;
    irreducible += flow.irreducible ? 1 : 0;
  }
  EXPECT_GT(reducible_with_loops, 20) << "the graphs exercise too little";
  EXPECT_GT(irreducible, 20);
}

TEST(ControlFlow, LargeChainsAreQuickAndDoNotOverflowTheStack) {
  // A ladder whose blocks all branch to the end and back: quadratic for naive dominators.
  Function f = ParseBody("");
  f.registers.push_back({"%p0", Type::kPred});
  f.body.clear();
  constexpr std::uint32_t kSize = 200000;
  for (std::uint32_t i = 0; i < kSize; ++i) {
    Instruction instruction;
    instruction.opcode = "bra";
    instruction.parts = {"bra"};
    instruction.guard = 0;
    Operand& target = instruction.operands.emplace_back();
    target.kind = Operand::Kind::kLabel;
    target.target = i % 2 == 0 ? kSize - 1 - i : (i > 1 ? i - 2 : 0);
    f.body.push_back(std::move(instruction));
  }
  EXPECT_EQ(BuildControlFlow(f).blocks.size(), kSize);
}

std::vector<std::string> Names(const Function& f, const std::vector<std::uint32_t>& registers) {
  std::vector<std::string> names;
  for (const std::uint32_t reg : registers) {
    names.push_back(f.registers.at(reg).name);
  }
  return names;
}

TEST(Liveness, ValuesAcrossALoop) {
  const Function f = ParseBody(
      "mov.u32 %r1, 0;\nmov.u64 %rd1, 4096;\nmov.u32 %r9, 7;\n"  // 0-2
      "LOOP: ld.global.u32 %r2, [%rd1];\n"                       // 3
      "add.s32 %r1, %r1, %r2;\n"
      "add.s64 %rd1, %rd1, 4;\n"
      "setp.lt.s32 %p1, %r1, 100;\n"
      "@%p1 bra LOOP;\n"                   // 7
      "st.global.u32 [%rd1], %r1; ret;");  // 8
  const ControlFlow flow = BuildControlFlow(f);
  const Liveness live = *ComputeLiveness(f, flow);
  EXPECT_TRUE(live.live_in[0].empty());
  EXPECT_THAT(Names(f, live.live_out[0]), UnorderedElementsAre("%r1", "%rd1"));
  EXPECT_THAT(Names(f, live.live_in[At(flow, 3)]), UnorderedElementsAre("%r1", "%rd1"));
  EXPECT_THAT(Names(f, live.live_out[At(flow, 3)]), UnorderedElementsAre("%r1", "%rd1"));
  EXPECT_THAT(Names(f, live.live_in[At(flow, 8)]), UnorderedElementsAre("%r1", "%rd1"));
  // %r1 + the two words of %rd1 + the dead %r9 at its write, or %r2 at the load: four words.
  EXPECT_EQ(live.max_live_registers, 4U);
  EXPECT_EQ(live.peak_instruction, 2U);
  EXPECT_EQ(live.max_live_predicates, 1U);
}

TEST(Liveness, GuardedWriteKeepsTheOldValue) {
  const Function f = ParseBody(
      "mov.u32 %r1, 1; setp.eq.s32 %p1, %r2, 0;\nL: @%p1 mov.u32 %r1, 2;\n"
      "@%p1 bra L; mov.b32 %r3, %r1; ret;");
  const ControlFlow flow = BuildControlFlow(f);
  const Liveness live = *ComputeLiveness(f, flow);
  EXPECT_THAT(Names(f, live.live_in[At(flow, 2)]), UnorderedElementsAre("%r1", "%p1"));
  EXPECT_THAT(Names(f, live.live_in[0]), UnorderedElementsAre("%r2"));
}

TEST(Liveness, WideValuesCountTheirWords) {
  const Function f = ParseBody("mov.b128 %q1, {%rd1, %rd2}; mov.b128 {%rd3, %rd4}, %q1; ret;");
  const Liveness live = *ComputeLiveness(f, BuildControlFlow(f));
  EXPECT_EQ(live.max_live_registers, 4U);
}

TEST(Liveness, ReadsAndWritesOfOddInstructions) {
  const Function f = ParseBody(
      "st.global.v2.b32 [%rd1], {%r1, %r2}; bar.sync %r1; bar.red.popc.u32 %r3, 0, %p1;\n"
      "setp.eq.s32 %p1|%p2, %r1, %r2; atom.global.add.u32 %r4, [%rd1+4], %r1;\n"
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r1, %r2}, %rd1, %rd2, %p1, 1, 1, 0, 0;\n"
      "@%p3 red.global.add.u32 [%rd1], %r1; nanosleep.u32 %r5; ret;");
  const auto access = [&](std::size_t i) { return AccessOf(f.body.at(i)); };
  EXPECT_THAT(Names(f, access(0).reads), ElementsAre("%rd1", "%r1", "%r2"));
  EXPECT_TRUE(access(0).writes.empty());
  EXPECT_TRUE(access(1).writes.empty());
  EXPECT_THAT(Names(f, access(2).writes), ElementsAre("%r3"));
  EXPECT_THAT(Names(f, access(3).writes), ElementsAre("%p1", "%p2"));
  EXPECT_THAT(Names(f, access(4).writes), ElementsAre("%r4"));
  EXPECT_THAT(Names(f, access(4).reads), ElementsAre("%rd1", "%r1"));
  EXPECT_THAT(Names(f, access(5).writes), ElementsAre("%r1", "%r2"));
  EXPECT_THAT(Names(f, access(5).reads), ElementsAre("%rd1", "%rd2", "%p1", "%r1", "%r2"));
  EXPECT_THAT(Names(f, access(6).reads), ElementsAre("%p3", "%rd1", "%r1"));
  EXPECT_THAT(Names(f, access(7).reads), ElementsAre("%r5"));
}

}  // namespace
}  // namespace kernelpro::ptx
