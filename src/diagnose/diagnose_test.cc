// SPDX-License-Identifier: Apache-2.0
#include "diagnose/diagnose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "diagnose/facts.h"
#include "diagnose/test_profiles.h"
#include "profile/metric_names.h"

namespace kernelpro {
namespace {

using diagnose::Membership;
using testing::ProfileBuilder;

bool Has(const Diagnosis& d, const std::string& id) {
  return std::ranges::any_of(d.findings, [&](const Finding& f) { return f.id == id; });
}

bool IsSuppressed(const Diagnosis& d, const std::string& id, const std::string& by) {
  return std::ranges::any_of(d.suppressed,
                             [&](const Suppressed& s) { return s.id == id && s.by == by; });
}

ProfileBuilder LowOccupancy() {
  ProfileBuilder b;
  b.Set(metric::kLimitRegisters, 1).Set(metric::kWarpsMaximumPct, 12.5).Set(metric::kDramPct, 20);
  b.Set(metric::kWarpsActivePct, 12).Set(metric::kIssueActive, 0.1).Set(metric::kRegisters, 200);
  return b;
}

TEST(Classes, InvalidProfilesGetNoAdvice) {
  const Diagnosis no_time = LowOccupancy().Time(0).Diagnosis();
  EXPECT_EQ(no_time.classes.at(0).id, "UNKNOWN");
  for (const Finding& f : no_time.findings) {
    EXPECT_EQ(f.bound, 0) << f.id << ": nothing has a bound without a time";
  }
  EXPECT_EQ(LowOccupancy().Set(metric::kL1Pct, 130).Diagnosis().classes.at(0).id, "INVALID");
}

TEST(Classes, FollowTheDecisionTable) {
  EXPECT_GE(
      Membership(ProfileBuilder().Set(metric::kDramPct, 80).Diagnosis().classes, "DRAM_BOUND"),
      0.9);
  ProfileBuilder l2;
  EXPECT_GE(Membership(l2.Set(metric::kL2Pct, 85).Set(metric::kDramPct, 10).Diagnosis().classes,
                       "L2_BOUND"),
            0.9);
  EXPECT_GE(
      Membership(ProfileBuilder().Set(metric::kLsuPct, 80).Diagnosis().classes, "L1_SMEM_BOUND"),
      0.9);
  EXPECT_GE(Membership(ProfileBuilder().Set(metric::kAluPct, 85).Diagnosis().classes,
                       "COMPUTE_BOUND(alu)"),
            0.9);
  EXPECT_GE(Membership(ProfileBuilder().Set(metric::kIssueActive, 0.92).Diagnosis().classes,
                       "ISSUE_BOUND"),
            0.9);
  EXPECT_GE(Membership(ProfileBuilder().Grid(10, 256).Diagnosis().classes, "UNDERFILLED"), 0.9);
  EXPECT_GE(Membership(ProfileBuilder().Grid(1162, 256).Diagnosis().classes, "TAIL"), 0.9);
  EXPECT_GT(
      Membership(ProfileBuilder().Set(metric::kIssueActive, 0.7).Diagnosis().classes, "MIXED"), 0);
  // Evidence is words and figures.
  for (const ClassMembership& c : LowOccupancy().Diagnosis().classes) {
    EXPECT_NE(c.evidence.find_first_of("0123456789"), std::string::npos) << c.id;
  }
}

TEST(Classes, LatencyHasAKindWhereStallsWereSampled) {
  ProfileBuilder b = LowOccupancy();
  EXPECT_GT(Membership(b.Diagnosis().classes, "LATENCY_BOUND"), 0.35);
  b.Set(metric::kWarpLatency, 10).Set(metric::kStallLongScoreboard, 7);
  EXPECT_GT(Membership(b.Diagnosis().classes, "LATENCY_BOUND(memory)"), 0.35);
}

TEST(Classes, AtRoofByTheTasksFloor) {
  ProfileBuilder b;
  EXPECT_EQ(Membership(b.Task("floor_us", 50).Diagnosis().classes, "AT_ROOF"), 0);
  EXPECT_EQ(Membership(b.Task("floor_us", 90).Diagnosis().classes, "AT_ROOF"), 1);
}

TEST(Suppression, SpillsForbidFewerRegisters) {
  EXPECT_TRUE(Has(LowOccupancy().Diagnosis(), "occ.registers"));
  const Diagnosis d = LowOccupancy().Set(metric::kSpillStores, 300).Diagnosis();
  EXPECT_TRUE(Has(d, "mem.spill"));
  EXPECT_FALSE(Has(d, "occ.registers"));
  EXPECT_TRUE(IsSuppressed(d, "occ.registers", "mem.spill"));
}

TEST(Suppression, ScatteredAccessesComeBeforeTheRoof) {
  ProfileBuilder b;
  b.Set(metric::kLoadSectors, 32e6).Set(metric::kLoadBytesPerSector, 4).Set(metric::kDramPct, 85);
  const Diagnosis d = b.Diagnosis();
  EXPECT_TRUE(Has(d, "mem.coalesce_ld"));
  EXPECT_TRUE(IsSuppressed(d, "mem.dram_roof", "mem.coalesce_ld"));
  EXPECT_TRUE(Has(ProfileBuilder().Set(metric::kDramPct, 85).Diagnosis(), "mem.dram_roof"));
}

TEST(Suppression, AFullDramHidesLatency) {
  ProfileBuilder b = LowOccupancy();
  b.Set(metric::kWarpLatency, 10).Set(metric::kStallBarrier, 6);
  EXPECT_TRUE(Has(b.Diagnosis(), "lat.barrier"));
  // L1 as well, so that the tool is called although DRAM is full.
  const Diagnosis d = b.Set(metric::kDramPct, 78).Set(metric::kL1Pct, 70).Diagnosis();
  EXPECT_FALSE(Has(d, "lat.barrier"));
  EXPECT_TRUE(IsSuppressed(d, "lat.barrier", "DRAM_BOUND"));
}

TEST(Suppression, UnderfilledSilencesTailAndOccupancy) {
  ProfileBuilder b = LowOccupancy();
  b.Grid(40, 256);
  const Diagnosis d = b.Diagnosis();
  EXPECT_TRUE(Has(d, "par.small_grid"));
  EXPECT_FALSE(Has(d, "par.tail"));
  EXPECT_FALSE(Has(d, "occ.registers"));
  EXPECT_TRUE(Has(LowOccupancy().Diagnosis(), "occ.registers"));
}

/// One flaw each, as the naive kernels of the examples have them, among others that follow from it.
TEST(Primary, RowPerThreadIsAboutCoalescingNotAboutTheGrid) {
  ProfileBuilder b;
  b.Grid(16, 256).Set(metric::kLoadSectors, 96e6).Set(metric::kLoadRequests, 3e6);
  b.Set(metric::kLoadBytesPerSector, 4).Set(metric::kStoreSectors, 32e6);
  b.Set(metric::kStoreBytesPerSector, 4).Set(metric::kL1Wavefronts, 128e6);
  b.Set(metric::kLoadHitPct, 92).Set(metric::kL1HitPct, 92).Set(metric::kL1Pct, 8);
  b.Set(metric::kDramPct, 3).Set(metric::kL2Pct, 4).Set(metric::kModelLatencyPct, 95);
  b.Set(metric::kWarpsActivePct, 2).Set(metric::kIssueActive, 0.02).Set(metric::kWaves, 0.015);
  const Diagnosis d = b.Diagnosis();
  ASSERT_FALSE(d.findings.empty());
  EXPECT_EQ(d.findings.front().id, "mem.coalesce_ld");
  EXPECT_TRUE(Has(d, "par.small_grid"));
}

TEST(Primary, TreeReductionWithModuloIsAboutBarriers) {
  ProfileBuilder b;  // as an emulated block sum: integer remainders, conflicts-free shared memory
  b.Set(metric::kBarriers, 9e6).Set(metric::kSharedLoads, 5e6).Set(metric::kSharedStores, 3e6);
  b.Set(metric::kSharedLoadWavefronts, 5e6).Set(metric::kSharedStoreWavefronts, 3e6);
  b.Set(metric::kL1Wavefronts, 10e6).Set(metric::kDivisions, 200e6).Set(metric::kInteger, 300e6);
  b.Set(metric::kIssueActive, 0.85).Set(metric::kAluPct, 70).Set(metric::kLanesOn, 20);
  b.Set(metric::kLanesActive, 22).Set(metric::kDramPct, 12).Set(metric::kLsuPct, 40);
  b.Set(metric::kStoreRequests, 4e3).Set(metric::kStoreSectors, 4e3);
  const Diagnosis d = b.Diagnosis();
  ASSERT_FALSE(d.findings.empty());
  EXPECT_EQ(d.findings.front().id, "lat.barrier") << FeedbackText(d, b.Profile());
}

TEST(Primary, AccidentalDoublesComeBeforeWhatTheyCause) {
  ProfileBuilder b = LowOccupancy();
  b.Task("widest_float_bytes", 4).Set(metric::kFp64, 60e6).Set(metric::kDfma, 60e6);
  b.Set(metric::kDoubleConversions, 60e6).Set(metric::kFp64Pct, 30);
  b.Set(metric::kBarriers, 5e6).Set(metric::kSharedLoads, 6e6).Set(metric::kSharedStores, 4e6);
  const Diagnosis d = b.Diagnosis();
  ASSERT_GE(d.findings.size(), 2U);
  EXPECT_EQ(d.findings.front().id, "cmp.fp64");
}

TEST(Bounds, NeverBeyondTheTasksFloor) {
  ProfileBuilder b;
  b.Set(metric::kMemory32b, 5e5).Set(metric::kMemory128b, 0).Task("floor_us", 80);
  const Diagnosis d = b.Diagnosis();
  ASSERT_TRUE(Has(d, "mem.width"));
  EXPECT_DOUBLE_EQ(d.findings.front().bound, 1 - 80.0 / 100);
  EXPECT_DOUBLE_EQ(d.floor_us, 80);
}

TEST(Bounds, SmallKernelsOfACallWeighLess) {
  Profile profile = LowOccupancy().Profile();
  KernelProfile big = ProfileBuilder()
                          .Set(metric::kMemory32b, 5e5)
                          .Set(metric::kMemory128b, 0)
                          .Profile()
                          .kernels[0];
  big.name = "big";
  big.time_us = 900;
  big.time_share = 0.9;
  profile.kernels[0].time_share = 0.1;
  profile.kernels.push_back(big);
  const Diagnosis d = Diagnose(profile, testing::H200Hardware());
  ASSERT_GE(d.findings.size(), 2U);
  EXPECT_EQ(d.findings[0].kernel, "big");
  profile.kernels[0].time_share = 0.01;
  for (const Finding& f : Diagnose(profile, testing::H200Hardware()).findings) {
    EXPECT_EQ(f.kernel, "big");
  }
}

TEST(NotRun, MissingMetricsAreReportedByName) {
  ProfileBuilder b = LowOccupancy();
  b.Drop(metric::kSpillStores).Drop(metric::kLimitRegisters);
  const Diagnosis d = b.Diagnosis();
  const auto spill = std::ranges::find(d.not_run, "mem.spill", &NotRun::id);
  ASSERT_NE(spill, d.not_run.end());
  EXPECT_THAT(spill->missing, ::testing::ElementsAre(std::string(metric::kSpillStores)));
  EXPECT_FALSE(Has(d, "occ.registers"));
}

TEST(Diagnose, EmptyProfileIsEmptyDiagnosis) {
  const Diagnosis d = Diagnose(Profile{}, Hardware{});
  EXPECT_TRUE(d.findings.empty());
  EXPECT_TRUE(d.classes.empty());
  // A kernel without metrics on unknown hardware is judged without a crash.
  Profile bare;
  bare.kernels.emplace_back();
  bare.kernels[0].time_us = 10;
  bare.kernels[0].block[0] = 32;
  EXPECT_TRUE(Diagnose(bare, Hardware{}).findings.empty());
}

}  // namespace
}  // namespace kernelpro
