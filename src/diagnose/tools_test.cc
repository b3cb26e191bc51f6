// SPDX-License-Identifier: Apache-2.0
// Every tool: a profile on which it fires, derived by hand, and a twin without the flaw.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/text.h"
#include "diagnose/diagnose.h"
#include "diagnose/test_profiles.h"
#include "profile/metric_names.h"

namespace kernelpro {
namespace {

using ::testing::HasSubstr;
using testing::ProfileBuilder;

std::optional<Finding> Find(const ProfileBuilder& builder, const std::string& id) {
  const Diagnosis diagnosis = builder.Diagnosis();
  const auto found = std::ranges::find(diagnosis.findings, id, &Finding::id);
  return found == diagnosis.findings.end() ? std::nullopt : std::optional(*found);
}

/// A finding is complete: whole sentences, a place, a check with a metric.
void ExpectComplete(const std::optional<Finding>& f) {
  ASSERT_TRUE(f.has_value());
  EXPECT_FALSE(f->title.empty());
  EXPECT_EQ(f->kernel, "kernel");
  for (const std::string& text : {f->seen, f->why, f->action, f->check, f->avoid}) {
    EXPECT_TRUE(text.ends_with('.')) << f->id << ": " << text;
  }
  EXPECT_GE(f->remedies.size(), 2U);
  EXPECT_EQ(f->action, f->remedies.front());
  EXPECT_EQ(f->seen.find("__"), std::string::npos) << "metric names belong into the check";
  EXPECT_EQ(f->why.find("__"), std::string::npos);
  EXPECT_FALSE(f->evidence.empty());
}

TEST(Tools, AHealthyKernelHasNoFinding) {
  EXPECT_TRUE(ProfileBuilder().Diagnosis().findings.empty());
}

TEST(Tools, CoalesceLoads) {
  ProfileBuilder bad;
  // 32 sectors a request, 4 bytes of each used; the line is known.
  bad.Set(metric::kLoadSectors, 32e6).Set(metric::kLoadBytesPerSector, 4);
  bad.Set(metric::kLoadRequests, 1e6).Set(metric::kIssueActive, 0.05);
  bad.Set(metric::kL1Wavefronts, 34e6).Set(metric::kDramPct, 20).Set(metric::kL1Pct, 50);
  bad.Line(7, metric::kLoadSectors, 32e6).Line(7, metric::kLoadBytesPerSector, 4);
  bad.Line(9, metric::kLoadSectors, 33e6).Line(9, metric::kLoadBytesPerSector, 32);
  const auto f = Find(bad, "mem.coalesce_ld");
  ExpectComplete(f);
  EXPECT_EQ(f->line, 7U);
  EXPECT_DOUBLE_EQ(f->severity, 1);  // 0.875 wasted, loads are most of the sectors
  EXPECT_THAT(f->seen, HasSubstr("4.0 of 32 bytes"));
  EXPECT_THAT(f->seen, HasSubstr("32.0 sectors a warp request where 4.0"));
  // L2 keeps 1 - 28/36 of 0.3, L1 hardly anything; DRAM 0.2/0.9 loses half of 7/9: that stays.
  EXPECT_NEAR(f->expected, 1 - 0.2 / 0.9 * (1 - 0.5 * 28.0 / 36), 1e-9);
  EXPECT_FALSE(Find(ProfileBuilder(), "mem.coalesce_ld").has_value());
  // Twin: 16 sectors a request are right for 16 bytes a lane.
  EXPECT_FALSE(
      Find(ProfileBuilder().Set(metric::kLoadSectors, 32e6).Set(metric::kLoadRequests, 2e6),
           "mem.coalesce_ld"));
}

TEST(Tools, CoalesceLoadsIsSilentWhereL1RecoversTheSectors) {
  ProfileBuilder twin;
  twin.Set(metric::kLoadSectors, 8e6).Set(metric::kLoadBytesPerSector, 16);
  twin.Set(metric::kLoadHitPct, 95).Set(metric::kL1HitPct, 95).Set(metric::kL1Wavefronts, 4e6);
  EXPECT_FALSE(Find(twin, "mem.coalesce_ld").has_value());
  EXPECT_TRUE(Find(twin.Set(metric::kLoadHitPct, 20), "mem.coalesce_ld").has_value());
}

TEST(Tools, CoalesceStores) {
  ProfileBuilder bad;
  bad.Set(metric::kStoreSectors, 32e6).Set(metric::kStoreBytesPerSector, 4);
  bad.Set(metric::kL1Wavefronts, 66e6).Line(8, metric::kStoreSectors, 32e6);
  bad.Line(8, metric::kStoreBytesPerSector, 4);
  const auto f = Find(bad, "mem.coalesce_st");
  ExpectComplete(f);
  EXPECT_EQ(f->line, 8U);
  EXPECT_FALSE(Find(bad, "mem.coalesce_ld").has_value());
  // Twin: a reduction's few one-lane stores do not matter.
  ProfileBuilder twin;
  twin.Set(metric::kStoreRequests, 1e4).Set(metric::kStoreSectors, 1e4);
  twin.Set(metric::kStoreBytesPerSector, 4);
  EXPECT_FALSE(Find(twin, "mem.coalesce_st").has_value());
}

TEST(Tools, Width) {
  ProfileBuilder bad;
  bad.Set(metric::kMemory32b, 5e5).Set(metric::kMemory128b, 0);
  const auto f = Find(bad, "mem.width");
  ExpectComplete(f);
  EXPECT_NEAR(f->expected, 1 - 0.45 / 0.9, 1e-9);  // DRAM is what remains
  EXPECT_FALSE(Find(ProfileBuilder(), "mem.width").has_value());
  EXPECT_FALSE(Find(bad.Set(metric::kDramPct, 80), "mem.width").has_value());
}

TEST(Tools, L1Reuse) {
  ProfileBuilder bad;  // 12.8 GB requested of 100 MB
  bad.Set(metric::kLoadBytes, 12.8e9).Set(metric::kL1Pct, 95).Set(metric::kDramPct, 5);
  const auto f = Find(bad, "mem.l1_reuse");
  ExpectComplete(f);
  EXPECT_THAT(f->seen, HasSubstr("128 times"));
  EXPECT_FALSE(Find(bad.Set(metric::kLoadBytes, 200e6), "mem.l1_reuse").has_value());
}

TEST(Tools, ExcessAndRoof) {
  ProfileBuilder bad;
  bad.Task("compulsory_bytes", 80e6).Set(metric::kDramPct, 85);
  const auto excess = Find(bad, "mem.excess");
  ExpectComplete(excess);
  EXPECT_THAT(excess->seen, HasSubstr("2.5 times"));
  EXPECT_FALSE(Find(bad, "mem.dram_roof").has_value());  // wasted bytes come first
  ProfileBuilder twin;
  twin.Task("compulsory_bytes", 195e6).Set(metric::kDramPct, 85);
  EXPECT_FALSE(Find(twin, "mem.excess").has_value());
  const auto roof = Find(twin, "mem.dram_roof");
  ExpectComplete(roof);
  EXPECT_THAT(roof->avoid, HasSubstr("occupancy"));
}

TEST(Tools, InFlight) {
  ProfileBuilder bad;  // 6 warps x 128 bytes of the 20 KB that hide the latency
  bad.Set(metric::kLoadRequests, 1e6)
      .Set(metric::kWarpsActivePct, 10)
      .Set(metric::kDramPct, 10)
      .Set(metric::kWarpsMaximumPct, 100);
  const auto f = Find(bad, "mem.inflight");
  ExpectComplete(f);
  EXPECT_GT(f->severity, 0.9);
  ProfileBuilder twin = bad;  // 16 bytes a lane and all warps
  twin.Set(metric::kWarpsActivePct, 95).Set(metric::kLoadSectors, 16e6);
  EXPECT_FALSE(Find(twin, "mem.inflight").has_value());
}

TEST(Tools, Atomics) {
  ProfileBuilder bad;
  bad.Set(metric::kRedRequests, 1e6).Set(metric::kAtomicInputMaxPct, 98);
  bad.Set(metric::kAtomicOperations, 32e6).Set(metric::kAtomicHottest, 32e6);
  bad.Set(metric::kDramPct, 2).Line(12, metric::kRedRequests, 1e6);
  const auto f = Find(bad, "mem.atomics");
  ExpectComplete(f);
  EXPECT_EQ(f->line, 12U);
  EXPECT_THAT(f->seen, HasSubstr("100 % of them hit one"));
  EXPECT_NEAR(f->expected, 1 - 0.30, 1e-9);  // L2 is what remains
  EXPECT_FALSE(Find(bad.Set(metric::kAtomicInputMaxPct, 5), "mem.atomics").has_value());
}

TEST(Tools, SpillsAndLocalArrays) {
  ProfileBuilder spill;
  spill.Set(metric::kSpillStores, 400).Set(metric::kSpillLoads, 500);
  ExpectComplete(Find(spill, "mem.spill"));
  EXPECT_FALSE(Find(spill, "mem.local_array").has_value());
  ProfileBuilder array;
  array.Set(metric::kLocalLoads, 5e5).Set(metric::kLocalStores, 1e5);
  array.Set(metric::kLocalLoadSectors, 4e6).Line(20, metric::kLocalLoads, 5e5);
  const auto f = Find(array, "mem.local_array");
  ExpectComplete(f);
  EXPECT_EQ(f->line, 20U);
  EXPECT_FALSE(Find(array, "mem.spill").has_value());
  EXPECT_FALSE(Find(ProfileBuilder(), "mem.spill").has_value());
  EXPECT_FALSE(Find(ProfileBuilder(), "mem.local_array").has_value());
}

ProfileBuilder SharedKernel() {
  ProfileBuilder b;
  b.Set(metric::kSharedLoads, 10e6).Set(metric::kSharedStores, 2e6).Set(metric::kL1Pct, 90);
  b.Set(metric::kSharedLoadWavefronts, 10e6).Set(metric::kSharedStoreWavefronts, 2e6);
  b.Set(metric::kL1Wavefronts, 15e6).Set(metric::kDramPct, 10).Set(metric::kLsuPct, 60);
  return b;
}

TEST(Tools, BankConflicts) {
  ProfileBuilder bad = SharedKernel();  // 8-way loads
  bad.Set(metric::kSharedLoadWavefronts, 80e6).Set(metric::kSharedLoadConflicts, 70e6);
  bad.Set(metric::kL1Wavefronts, 85e6).Line(30, metric::kSharedLoadConflicts, 70e6);
  const auto f = Find(bad, "smem.bank");
  ExpectComplete(f);
  EXPECT_EQ(f->line, 30U);
  EXPECT_NEAR(f->evidence.at("conflict_share"), 70.0 / 82, 1e-9);
  EXPECT_NEAR(f->expected, 1 - 0.6, 1e-9);  // the LSU queue at 0.6 stays
  EXPECT_FALSE(Find(SharedKernel(), "smem.bank").has_value());
}

TEST(Tools, SharedPressure) {
  ProfileBuilder bad = SharedKernel();  // one multiply-add a wavefront
  bad.Set(metric::kFfma, 320e6);
  const auto f = Find(bad, "smem.pressure");
  ExpectComplete(f);
  EXPECT_THAT(f->seen, HasSubstr("1.0 multiply-adds"));
  EXPECT_FALSE(Find(bad.Set(metric::kFfma, 10 * 320e6), "smem.pressure").has_value());
}

TEST(Tools, SmallGridTailAndBlocks) {
  const auto grid = Find(ProfileBuilder().Grid(33, 256), "par.small_grid");
  ExpectComplete(grid);
  EXPECT_DOUBLE_EQ(grid->expected, 0.5);  // what DRAM leaves; more blocks also hide latency
  EXPECT_FALSE(Find(ProfileBuilder().Grid(132, 256), "par.small_grid").has_value());

  const auto tail = Find(ProfileBuilder().Grid(1067, 256), "par.tail");
  ExpectComplete(tail);
  EXPECT_NEAR(tail->expected, 1 - 1067 / 1056.0 / 2, 1e-9);
  EXPECT_FALSE(Find(ProfileBuilder().Grid(2112, 256), "par.tail").has_value());
  EXPECT_FALSE(Find(ProfileBuilder().Grid(21225, 256), "par.tail").has_value());

  const auto block = Find(ProfileBuilder().Grid(4096, 40), "par.block_size");
  ExpectComplete(block);
  EXPECT_NEAR(block->expected, (1 - 8.0 / 32) / 2, 1e-9);
  EXPECT_FALSE(Find(ProfileBuilder().Grid(4096, 128), "par.block_size").has_value());

  // 131072 blocks at 1.64e9 a second take 80 of 100 us.
  const auto rate = Find(ProfileBuilder().Grid(131072, 64), "par.cta_rate");
  ExpectComplete(rate);
  EXPECT_NEAR(rate->evidence.at("start_share"), 131072 / 1.6434e9 / 100e-6, 1e-3);
  EXPECT_FALSE(Find(ProfileBuilder().Grid(1056, 256), "par.cta_rate").has_value());
}

TEST(Tools, Occupancy) {
  ProfileBuilder low;
  low.Set(metric::kWarpsMaximumPct, 12.5)
      .Set(metric::kWarpsActivePct, 12)
      .Set(metric::kDramPct, 20);
  low.Set(metric::kIssueActive, 0.1).Set(metric::kRegisters, 200).Set(metric::kWaves, 31);
  ProfileBuilder registers = low;
  const auto f = Find(registers.Set(metric::kLimitRegisters, 1), "occ.registers");
  ExpectComplete(f);
  EXPECT_THAT(f->action, HasSubstr("__launch_bounds__(256, 2)"));
  EXPECT_THAT(f->seen, HasSubstr("fits at 128 registers"));  // 65536 / 512 threads
  ProfileBuilder shared = low;
  ExpectComplete(Find(shared.Set(metric::kLimitShared, 1), "occ.smem"));
  ProfileBuilder warps = low;
  warps.Set(metric::kLimitWarps, 1).Set(metric::kLimitRegisters, 8);
  ExpectComplete(Find(warps, "occ.shape"));
  ProfileBuilder blocks = low;
  blocks.Set(metric::kLimitBlocks, 4);
  ExpectComplete(Find(blocks, "occ.shape"));
  // Twins: schedulers are busy anyway; nothing limits; the grid is smaller than the limit.
  EXPECT_FALSE(Find(ProfileBuilder(registers).Set(metric::kIssueActive, 0.7), "occ.registers"));
  EXPECT_FALSE(Find(ProfileBuilder(), "occ.registers").has_value());
  EXPECT_FALSE(Find(ProfileBuilder(registers).Set(metric::kLimitRegisters, 2).Grid(200, 256),
                    "occ.registers"));
  // As many blocks as fit: the grid was made for the limit.
  EXPECT_TRUE(Find(ProfileBuilder(registers).Grid(132, 256), "occ.registers").has_value());
}

TEST(Tools, BarrierFromCounts) {
  // A tree in shared memory: each of 256 threads loads one element, nine barriers, 1.5 accesses
  // between two of them.
  ProfileBuilder bad = SharedKernel();
  bad.Set(metric::kBarriers, 9e6).Set(metric::kSharedLoads, 10e6).Set(metric::kSharedStores, 4e6);
  bad.Line(15, metric::kBarriers, 8e6).Line(11, metric::kBarriers, 1e6);
  const auto f = Find(bad, "lat.barrier");
  ExpectComplete(f);
  EXPECT_EQ(f->line, 15U);
  EXPECT_NEAR(f->evidence.at("barriers_per_element"), 9, 1e-9);
  EXPECT_THAT(f->action, HasSubstr("__shfl_down_sync"));
  // Twin: a tiled product with two barriers for 34 accesses.
  ProfileBuilder tiled = SharedKernel();
  tiled.Set(metric::kBarriers, 1e6).Set(metric::kSharedLoads, 16e6);
  EXPECT_FALSE(Find(tiled, "lat.barrier").has_value());
  // Twin: many elements a thread before one tree.
  ProfileBuilder grid_stride = bad;
  grid_stride.Set(metric::kBarriers, 9e4).Set(metric::kSharedLoads, 1e5);
  EXPECT_FALSE(Find(grid_stride, "lat.barrier").has_value());
}

TEST(Tools, StallsWhereTheyAreSampled) {
  ProfileBuilder sampled;
  sampled.Set(metric::kWarpLatency, 20).Set(metric::kStallBarrier, 8);
  sampled.Set(metric::kStallLongScoreboard, 1).Set(metric::kStallWait, 1).Set(metric::kDramPct, 9);
  const auto f = Find(sampled, "lat.barrier");
  ExpectComplete(f);
  EXPECT_DOUBLE_EQ(f->expected, 0.4);
  EXPECT_FALSE(Find(sampled.Set(metric::kStallBarrier, 2), "lat.barrier").has_value());
  const auto memory = Find(sampled.Set(metric::kStallLongScoreboard, 14), "lat.long_scoreboard");
  ExpectComplete(memory);
  EXPECT_FALSE(Find(sampled.Set(metric::kStallLongScoreboard, 2), "lat.long_scoreboard"));
}

TEST(Tools, DependentChain) {
  ProfileBuilder bad;
  bad.Set(metric::kModelLatencyPct, 95).Set(metric::kIssueActive, 0.1).Set(metric::kDramPct, 1);
  bad.Set(metric::kLoadRequests, 1e3).Set(metric::kWarpsActivePct, 6).Set(metric::kL2Pct, 1);
  const auto f = Find(bad, "lat.ilp");
  ExpectComplete(f);
  EXPECT_FALSE(Find(ProfileBuilder(bad).Set(metric::kIssueActive, 0.95), "lat.ilp").has_value());
  EXPECT_FALSE(Find(ProfileBuilder(bad).Set(metric::kLoadRequests, 5e6), "lat.ilp").has_value());
}

TEST(Tools, AccidentalDoubles) {
  ProfileBuilder bad;
  bad.Task("widest_float_bytes", 4).Set(metric::kDfma, 20e6).Set(metric::kFp64, 30e6);
  bad.Set(metric::kDoubleConversions, 20e6).Set(metric::kFp64Pct, 20);
  bad.Line(14, metric::kFp64, 30e6);
  const auto f = Find(bad, "cmp.fp64");
  ExpectComplete(f);
  EXPECT_EQ(f->line, 14U);
  EXPECT_DOUBLE_EQ(f->severity, 0.8);  // 50 of 640 million instructions
  EXPECT_THAT(f->action, HasSubstr("0.5f"));
  // The same without a task: conversions, and no double in memory.
  ProfileBuilder guessed = bad;
  EXPECT_TRUE(Find(guessed, "cmp.fp64").has_value());
  // Twins: doubles that the task wants; no doubles.
  ProfileBuilder wanted;
  wanted.Task("widest_float_bytes", 8).Set(metric::kDfma, 20e6).Set(metric::kFp64Pct, 10);
  EXPECT_FALSE(Find(wanted, "cmp.fp64").has_value());
  EXPECT_FALSE(Find(ProfileBuilder().Task("widest_float_bytes", 4), "cmp.fp64").has_value());
  // Fewer doubles, less severe.
  ProfileBuilder few = bad;
  few.Set(metric::kDfma, 1e6).Set(metric::kFp64, 1e6).Set(metric::kDoubleConversions, 1e6);
  few.Set(metric::kFp64Pct, 1);
  EXPECT_LT(Find(few, "cmp.fp64").value().severity, 0.5);
}

TEST(Tools, SpecialFunctionsIntegersAndUnfusedOperations) {
  ProfileBuilder special;
  special.Set(metric::kXuPct, 90).Set(metric::kDramPct, 10);
  ExpectComplete(Find(special, "cmp.sfu"));
  EXPECT_FALSE(Find(special.Set(metric::kXuPct, 20), "cmp.sfu").has_value());

  ProfileBuilder integer;  // 8 million divisions of about 20 instructions
  integer.Set(metric::kInteger, 300e6).Set(metric::kBit, 100e6).Set(metric::kDivisions, 8e6);
  integer.Set(metric::kAluPct, 85).Set(metric::kIssueActive, 0.9).Set(metric::kDramPct, 10);
  const auto f = Find(integer, "cmp.int");
  ExpectComplete(f);
  EXPECT_THAT(f->seen, HasSubstr("8.0 million divisions"));
  ProfileBuilder hash = integer;  // integers are the workload
  hash.Set(metric::kFadd, 0).Set(metric::kFfma, 0).Set(metric::kMemoryThreads, 1e6);
  hash.Set(metric::kDivisions, 0).Set(metric::kInteger, 460e6);
  EXPECT_FALSE(Find(hash, "cmp.int").has_value());
  integer.Set(metric::kInteger, 60e6).Set(metric::kBit, 0).Set(metric::kDivisions, 0);
  EXPECT_FALSE(Find(integer, "cmp.int").has_value());

  ProfileBuilder unfused;
  unfused.Set(metric::kFadd, 200e6).Set(metric::kFmul, 200e6).Set(metric::kFfma, 0);
  unfused.Set(metric::kFmaPct, 90).Set(metric::kDramPct, 10);
  ExpectComplete(Find(unfused, "cmp.nonfused"));
  unfused.Set(metric::kFadd, 5e6).Set(metric::kFmul, 5e6).Set(metric::kFfma, 400e6);
  EXPECT_FALSE(Find(unfused, "cmp.nonfused").has_value());
}

TEST(Tools, Divergence) {
  ProfileBuilder bad;
  bad.Set(metric::kLanesActive, 10).Set(metric::kLanesOn, 9).Set(metric::kIssueActive, 0.9);
  bad.Set(metric::kBranchesDivergent, 1e6).Line(21, metric::kBranchesDivergent, 1e6);
  const auto f = Find(bad, "cmp.divergence");
  ExpectComplete(f);
  EXPECT_EQ(f->line, 21U);
  EXPECT_NEAR(f->expected, (1 - 9.0 / 32) * 0.9, 1e-9);
  EXPECT_FALSE(Find(bad.Set(metric::kLanesActive, 31).Set(metric::kLanesOn, 30), "cmp.divergence"));
  // Lanes missing because of a block of 40 threads are no divergence.
  EXPECT_FALSE(Find(ProfileBuilder()
                        .Grid(4096, 40)
                        .Set(metric::kLanesOn, 20)
                        .Set(metric::kLanesActive, 20)
                        .Set(metric::kIssueActive, 0.9),
                    "cmp.divergence"));
}

TEST(Tools, AskOnlyForNamesThatExist) {
  std::ifstream in(std::string(KP_SOURCE_DIR) + "/tests/data/metrics/base_names.txt");
  std::set<std::string> known;
  for (std::string line; std::getline(in, line);) {
    known.insert(line);
  }
  std::set<std::string_view> ids;
  for (const auto& tool : BuiltInTools()) {
    // One id, two limits: the block's warps and the number of blocks.
    EXPECT_TRUE(ids.insert(tool->id()).second || tool->id() == "occ.shape") << tool->id();
    for (const std::string_view need : tool->metrics()) {
      for (const std::string_view name : Split(need, '|')) {
        const bool own = name.find("__") == std::string_view::npos;
        EXPECT_TRUE(own || known.contains(std::string(name.substr(0, name.find('.'))))) << name;
      }
    }
  }
  EXPECT_GE(ids.size(), 55U);
}

}  // namespace
}  // namespace kernelpro
