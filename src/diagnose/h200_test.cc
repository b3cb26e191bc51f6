// SPDX-License-Identifier: Apache-2.0
// Counters and times of real kernels: the classes that an expert gives them, which tool fires on a
// planted flaw and not on its repaired twin, and bounds that the repair did not exceed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/diagnose.h"
#include "diagnose/facts.h"
#include "diagnose/h200_data.h"

namespace kernelpro {
namespace {

using diagnose::Membership;
using testing::H200;

/// `mbytes`: what the task must move at least, 0 when unknown.
Diagnosis Of(const std::string& name, double mbytes = 0) {
  Profile profile = H200(name).profile;
  if (mbytes > 0) {
    profile.task["compulsory_bytes"] = {mbytes * 1e6, "byte", Provenance::kCounted};
  }
  return Diagnose(profile, testing::H200Hardware());
}

std::optional<Finding> Find(const Diagnosis& diagnosis, const std::string& id) {
  const auto found = std::ranges::find(diagnosis.findings, id, &Finding::id);
  return found == diagnosis.findings.end() ? std::nullopt : std::optional(*found);
}

double Achieved(const std::string& bad, const std::string& good) {
  return 1 - H200(good).event_us / H200(bad).event_us;
}

TEST(H200Classes, ClearCases) {
  for (const std::string name : {"copy4", "copy_gs4", "add4", "tr_pad", "sm_warp", "copy_str8"}) {
    EXPECT_GE(Membership(Of(name).classes, "DRAM_BOUND"), 0.6) << name;
  }
  EXPECT_GE(Membership(Of("expsin").classes, "COMPUTE_BOUND(xu)"), 0.9);
  EXPECT_GE(Membership(Of("fma_ilp1").classes, "COMPUTE_BOUND(fma)"), 0.9);
  EXPECT_GE(Membership(Of("intmul").classes, "COMPUTE_BOUND(alu)"), 0.9);
  EXPECT_GE(Membership(Of("dfma").classes, "COMPUTE_BOUND(fp64)"), 0.9);
  for (const std::string name : {"mm_naive", "mm_bad", "mm_t16", "tr_nopad", "mm_t32conf",
                                 "red_mod", "red_bankconf", "conv_n", "sm_thread"}) {
    EXPECT_GE(Membership(Of(name).classes, "L1_SMEM_BOUND"), 0.35) << name;
  }
  EXPECT_GE(Membership(Of("diverge").classes, "ISSUE_BOUND"), 0.6);
  for (const std::string name :
       {"hist_g", "fma_ilp1_lowocc", "tr_naive", "copy_chunk32", "copy_gs_1blk", "copy1_b32"}) {
    EXPECT_GE(Membership(Of(name).classes, "LATENCY_BOUND"), 0.35) << name;
  }
  EXPECT_GT(Membership(Of("mm_r128").classes, "MIXED"), 0);
}

struct Pair {
  const char* bad;
  const char* good;
  const char* tool;
  double mbytes;  ///< compulsory
};

std::ostream& operator<<(std::ostream& out, const Pair& pair) {
  return out << pair.bad << " -> " << pair.good;
}

class PlantedFlaw : public ::testing::TestWithParam<Pair> {};

TEST_P(PlantedFlaw, FiresFirstAndItsBoundHolds) {
  const Pair& pair = GetParam();
  const Diagnosis bad = Of(pair.bad, pair.mbytes);
  ASSERT_FALSE(bad.findings.empty());
  EXPECT_EQ(bad.findings.front().id, pair.tool);
  const auto finding = Find(bad, pair.tool);
  ASSERT_TRUE(finding.has_value());
  EXPECT_GE(finding->bound, Achieved(pair.bad, pair.good));
  EXPECT_LE(finding->bound, 0.999);
}

TEST_P(PlantedFlaw, TheRepairedTwinIsSilent) {
  const Pair& pair = GetParam();
  EXPECT_FALSE(Find(Of(pair.good, pair.mbytes), pair.tool).has_value());
}

constexpr double kCopy = 64 * 1.048576 * 8;    ///< 64 Mi floats in and out
constexpr double kMatrix = 4 * 1.048576 * 12;  ///< three 2048 x 2048 matrices
constexpr double kRows = 32 * 1.048576 * 8;    ///< 32768 rows of 1024 floats in and out

INSTANTIATE_TEST_SUITE_P(H200, PlantedFlaw,
                         ::testing::Values(Pair{"copy_chunk32", "copy1", "mem.coalesce_ld", kCopy},
                                           Pair{"tr_naive", "tr_pad", "mem.coalesce_st", kCopy},
                                           Pair{"mm_bad", "mm_naive32", "mem.coalesce_ld", kMatrix},
                                           Pair{"sm_thread", "sm_warp", "mem.coalesce_ld", kRows},
                                           Pair{"tr_nopad", "tr_pad", "smem.bank", kCopy},
                                           Pair{"mm_t32conf", "mm_t32", "smem.bank", kMatrix},
                                           Pair{"red_bankconf", "red_seq", "smem.bank", 0},
                                           Pair{"conv_s", "conv_n", "smem.bank", 0},
                                           Pair{"copy_gs", "copy_gs4", "mem.width", kCopy},
                                           Pair{"red_shfl", "red_shfl4", "mem.width", 0},
                                           Pair{"copy1", "copy4", "mem.width", kCopy},
                                           Pair{"copy1_b32", "copy_gs", "par.cta_rate", kCopy},
                                           Pair{"copy_gs_1blk", "copy_gs4", "mem.inflight", kCopy},
                                           Pair{"mm_naive32", "mm_r128", "mem.l1_reuse", kMatrix},
                                           Pair{"mm_t32", "mm_r128", "smem.pressure", kMatrix},
                                           Pair{"mm_r64", "mm_r128", "smem.pressure", kMatrix}));

TEST(H200Twins, WhatTheLiteratureGetsWrong) {
  // A perfect copy has an L1 hit rate of 0; the fastest product runs at 24 % occupancy.
  EXPECT_FALSE(Find(Of("copy4"), "mem.coalesce_ld").has_value());
  for (const std::string name : {"mm_r128", "sm_warp4", "add4", "copy4"}) {
    for (const Finding& finding : Of(name).findings) {
      EXPECT_FALSE(finding.id.starts_with("occ.")) << name;
      EXPECT_FALSE(finding.id.starts_with("lat.")) << name;
    }
  }
  // A vectorised kernel at the DRAM roof has nothing to widen.
  EXPECT_FALSE(Find(Of("add4"), "mem.width").has_value());
  // The modulo reduction does not diverge: its warps are almost full.
  EXPECT_FALSE(Find(Of("red_mod"), "cmp.divergence").has_value());
}

TEST(H200Twins, DivergenceFiresOnTheSwitchOnly) {
  EXPECT_TRUE(Find(Of("diverge"), "cmp.divergence").has_value());
  EXPECT_FALSE(Find(Of("fma_ilp4"), "cmp.divergence").has_value());
}

TEST(H200Twins, SpecialFunctions) {
  EXPECT_TRUE(Find(Of("expsin"), "cmp.sfu").has_value());
  EXPECT_FALSE(Find(Of("gelu1"), "cmp.sfu").has_value());
}

TEST(H200Twins, ThirtyTwoThreadBlocks) {
  const auto rate = Find(Of("copy1_b32"), "par.cta_rate");
  ASSERT_TRUE(rate.has_value());
  EXPECT_GE(rate->bound, Achieved("copy1_b32", "copy1"));
  EXPECT_TRUE(Find(Of("copy1_b32"), "par.block_size").has_value());
  EXPECT_FALSE(Find(Of("copy1"), "par.block_size").has_value());
}

TEST(H200Twins, AtTheRoofTheAdviceIsToStop) {
  const Diagnosis diagnosis = Of("add4");
  ASSERT_EQ(diagnosis.findings.size(), 1U) << FeedbackText(diagnosis, H200("add4").profile);
  EXPECT_EQ(diagnosis.findings[0].id, "mem.dram_roof");
  EXPECT_GE(Membership(diagnosis.classes, "AT_ROOF"), 0.9);
}

TEST(H200NotRun, ToolsWithoutTheirMetricsAreNamed) {
  const Diagnosis diagnosis = Of("hist_g");
  const auto atomics = std::ranges::find(diagnosis.not_run, "mem.atomics", &NotRun::id);
  ASSERT_NE(atomics, diagnosis.not_run.end());
  EXPECT_FALSE(atomics->missing.empty());
  EXPECT_FALSE(Find(diagnosis, "mem.atomics").has_value());
}

}  // namespace
}  // namespace kernelpro
