// SPDX-License-Identifier: Apache-2.0
#include "profile/emulation_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "device/emulated_launch.h"
#include "profile/metric_names.h"

namespace kernelpro {
namespace {

using ::testing::Contains;
using ::testing::Not;

model::GpuSpec Spec() {
  model::GpuSpec spec;
  spec.name = "h200";
  spec.sm_count = 132;
  spec.clock_hz = 2e9;
  spec.warps_per_sm = 64;
  spec.ctas_per_sm = 32;
  spec.registers_per_sm = 65536;
  spec.dram_bytes_per_s = 4e12;
  spec.dram_peak_bytes_per_s = 5e12;
  spec.fp32_lanes = 128;
  spec.launch_overhead_us = 2;
  return spec;
}

struct Op {
  std::string opcode;
  simt::InstructionCounters counters;
  std::uint32_t line = 0;
};

/// 264 CTAs of 256 threads, of which `executed` ran; 12 us of which 2 are launch cost.
EmulatedLaunch Launch(const std::vector<Op>& ops, std::uint64_t executed = 264) {
  EmulatedLaunch launch;
  launch.report.kernel = "_Z4copyPKfPf";
  launch.report.grid = {264, 1, 1};
  launch.report.block = {256, 1, 1};
  launch.report.ctas = 264;
  launch.report.ctas_executed = executed;
  launch.report.sampled = true;
  launch.files = {"", "/t/k.cu"};
  for (const Op& op : ops) {
    launch.report.instructions.push_back(op.counters);
    launch.instructions.push_back({.opcode = op.opcode, .file = 1, .line = op.line});
  }
  launch.time.time_us = 12;
  launch.time.bounds = {{"dram", 15000, 1}, {"l1", 5000, 0.33}, {"issue", 4000, 0.27}};
  launch.time.occupancy = {.ctas_per_sm = 8,
                           .warps_per_sm = 64,
                           .theoretical = 1,
                           .limit_warps = 8,
                           .limit_registers = 10,
                           .limit_shared = 32,
                           .limit_ctas = 32};
  launch.time.dram_read_bytes = 20e6;
  launch.time.dram_write_bytes = 5e6;
  launch.time.l2_bytes = 50e6;
  launch.resources.registers_per_thread = 24;
  return launch;
}

/// 100 warp-level loads of 4 bytes a lane with a stride of 32 bytes: 32 sectors a request.
Op StridedLoad() {
  return {"ld.global.f32",
          {.warps = 100,
           .lanes = 3200,
           .lanes_on = 3200,
           .requests = 100,
           .sectors = 3200,
           .ideal_sectors = 400,
           .lines = 800,
           .l1_hit_sectors = 320,
           .bytes = 12800},
          7};
}

Op Store() {
  return {"st.global.f32",
          {.warps = 100,
           .lanes = 3200,
           .lanes_on = 3200,
           .requests = 100,
           .sectors = 400,
           .ideal_sectors = 400,
           .lines = 100,
           .bytes = 12800},
          8};
}

TEST(FromEmulation, CountsSectorsBytesAndLines) {
  const Profile profile = FromEmulation({Launch({StridedLoad(), Store()})}, {}, Spec(), {});
  ASSERT_EQ(profile.kernels.size(), 1U);
  const KernelProfile& k = profile.kernels[0];
  EXPECT_EQ(k.name, "copy");
  EXPECT_EQ(k.Value(metric::kLoadSectors), 3200);
  EXPECT_EQ(k.Value(metric::kLoadRequests), 100);
  EXPECT_DOUBLE_EQ(*k.Value(metric::kLoadBytesPerSector), 4);
  EXPECT_DOUBLE_EQ(*k.Value(metric::kStoreBytesPerSector), 32);
  EXPECT_DOUBLE_EQ(*k.Value(metric::kLoadHitPct), 10);
  EXPECT_EQ(k.Value(metric::kMemory32b), 200);
  EXPECT_EQ(k.Value(metric::kMemory128b), 0);
  EXPECT_EQ(k.metrics.at(std::string(metric::kLoadSectors)).provenance, Provenance::kCounted);
  ASSERT_EQ(k.lines.size(), 2U);
  EXPECT_EQ(k.lines[0].file, "/t/k.cu");
  EXPECT_EQ(k.lines[0].line, 7U);
  EXPECT_EQ(k.lines[0].metrics.at(std::string(metric::kLoadBytesPerSector)).value, 4);
  EXPECT_FALSE(k.lines[0].metrics.contains(std::string(metric::kStoreSectors)));
  EXPECT_EQ(k.opcodes.at("ld.global.f32"), 100U);
}

TEST(FromEmulation, UtilisationsLeaveOutTheLaunchCost) {
  const Profile profile = FromEmulation({Launch({StridedLoad()})}, {}, Spec(), {});
  const KernelProfile& k = profile.kernels[0];
  // 10 us at 2 GHz are 20000 cycles.
  EXPECT_DOUBLE_EQ(*k.Value(metric::kL1Pct), 25);
  EXPECT_DOUBLE_EQ(*k.Value(metric::kIssueActive), 0.2);
  EXPECT_DOUBLE_EQ(*k.Value(metric::kDramPct), 100 * 25e6 / 10e-6 / 5e12);
  EXPECT_NEAR(*k.Value(metric::kModelLaunchOverheadPct), 100 * 2.0 / 12, 1e-9);
  EXPECT_DOUBLE_EQ(*k.Value(metric::kL2HitPct), 50);
  EXPECT_DOUBLE_EQ(*k.Value(metric::kWaves), 264.0 / (132 * 8));
  EXPECT_DOUBLE_EQ(*k.Value(metric::kWarpsActivePct), 25);  // 2 of 8 CTAs an SM
  EXPECT_EQ(k.metrics.at(std::string(metric::kL1Pct)).provenance, Provenance::kModelled);
  EXPECT_THAT(k.missing, Contains(std::string(metric::kStallBarrier)));
  EXPECT_THAT(k.missing, Contains(std::string(metric::kFp64Pct)));  // no such bound was given
  EXPECT_FALSE(k.Value(metric::kFp64Pct).has_value());
}

TEST(FromEmulation, SampledLaunchesAreScaledAndLaunchesMerged) {
  const Profile once = FromEmulation({Launch({StridedLoad()}, 66)}, {}, Spec(), {});
  EXPECT_EQ(once.kernels[0].Value(metric::kLoadSectors), 12800);  // 264 / 66 = 4
  EmulatedLaunch other = Launch({Store()});
  other.report.kernel = "other";
  other.time.time_us = 6;
  const Profile three =
      FromEmulation({other, Launch({StridedLoad()}), Launch({StridedLoad()})}, {}, Spec(), {});
  ASSERT_EQ(three.kernels.size(), 2U);
  EXPECT_EQ(three.kernels[0].name, "copy");
  EXPECT_EQ(three.kernels[0].Value(metric::kLoadSectors), 6400);
  EXPECT_DOUBLE_EQ(*three.kernels[0].Value(metric::kL1Pct), 25);
  EXPECT_DOUBLE_EQ(three.kernels[0].time_share, 24.0 / 30);
  EXPECT_EQ(three.kernels[1].Value(metric::kLoadSectors), 0);
  EXPECT_FALSE(three.kernels[1].Value(metric::kLoadBytesPerSector).has_value());
}

TEST(FromEmulation, HitsOfALaunchRunWholeAreUnknown) {
  EmulatedLaunch whole = Launch({StridedLoad()});
  whole.report.sampled = false;
  const KernelProfile k = FromEmulation({whole}, {}, Spec(), {}).kernels[0];
  EXPECT_FALSE(k.Value(metric::kLoadHitPct).has_value());
  EXPECT_THAT(k.missing, Contains(std::string(metric::kL1HitPct)));
}

TEST(FromEmulation, DoublesBarriersDivisionsAndDivergence) {
  const auto lanes = [](std::uint64_t warps, std::uint64_t on) {
    return simt::InstructionCounters{.warps = warps, .lanes = warps * 32, .lanes_on = on};
  };
  simt::InstructionCounters branch = lanes(10, 320);
  branch.divergent = 4;
  const Profile profile = FromEmulation({Launch({{"cvt.f64.f32", lanes(10, 320), 3},
                                                 {"fma.rn.f64", lanes(10, 160), 3},
                                                 {"div.rn.f64", lanes(10, 320), 3},
                                                 {"rem.u32", lanes(10, 320), 4},
                                                 {"bar.sync", lanes(10, 320), 5},
                                                 {"bra", branch, 6}})},
                                        {}, Spec(), {});
  const KernelProfile& k = profile.kernels[0];
  EXPECT_EQ(k.Value(metric::kDfma), 160);
  EXPECT_EQ(k.Value(metric::kFp64), 480);
  EXPECT_EQ(k.Value(metric::kDoubleConversions), 320);
  EXPECT_EQ(k.Value(metric::kDivisions), 320);
  EXPECT_EQ(k.Value(metric::kBarriers), 10);
  EXPECT_EQ(k.Value(metric::kBranchesDivergent), 4);
  EXPECT_DOUBLE_EQ(*k.Value(metric::kBranchesUniformPct), 60);
  EXPECT_DOUBLE_EQ(*k.Value(metric::kLanesOn), (5 * 320 + 160) / 60.0);
}

TEST(FromEmulation, SharedConflictsKeepTheirShareAfterTheModelsCorrection) {
  Op load{"ld.shared.f32",
          {.warps = 10,
           .lanes = 320,
           .lanes_on = 320,
           .requests = 10,
           .wavefronts = 80,
           .ideal_wavefronts = 10,
           .bytes = 1280}};
  EmulatedLaunch launch = Launch({load});
  launch.time.shared_load_wavefronts = 40;
  const KernelProfile k = FromEmulation({launch}, {}, Spec(), {}).kernels[0];
  EXPECT_DOUBLE_EQ(*k.Value(metric::kSharedLoadWavefronts), 40);
  EXPECT_DOUBLE_EQ(*k.Value(metric::kSharedLoadConflicts), 35);
}

TEST(FromEmulation, AsynchronousCopiesAreLoadsForTheCacheButNoLoadInstructions) {
  // As Nsight Compute counted a kernel with LDGSTS alone on the H200.
  Op copy{"cp.async.ca.shared.global",
          {.warps = 10,
           .lanes = 320,
           .lanes_on = 320,
           .requests = 10,
           .sectors = 160,
           .lines = 40,
           .l1_hit_sectors = 40,
           .wavefronts = 80,
           .ideal_wavefronts = 40,
           .bytes = 5120}};
  const KernelProfile k = FromEmulation({Launch({copy})}, {}, Spec(), {}).kernels[0];
  EXPECT_EQ(k.Value(metric::kAsyncCopies), 10);
  EXPECT_EQ(k.Value(metric::kLoadRequests), 10);
  EXPECT_EQ(k.Value(metric::kLoadSectors), 160);
  EXPECT_EQ(k.Value(metric::kGlobalLoads), 0);
  EXPECT_EQ(k.Value(metric::kLoadBytes), 0);
  EXPECT_EQ(k.Value(metric::kSharedStoreWavefronts), 0);
  EXPECT_EQ(k.Value(metric::kMemory128b), 10);
  EXPECT_DOUBLE_EQ(*k.Value(metric::kL1HitPct), 25);
  EXPECT_DOUBLE_EQ(*k.Value(metric::kL1Wavefronts), 40 + 80);
}

TEST(FromEmulation, TaskNeedsGiveTheFloor) {
  DeviceInfo device;
  device.id = "emulator:h200";
  const Profile profile =
      FromEmulation({Launch({})}, device, Spec(),
                    {.flops = 1e6, .compulsory_bytes = 8e6, .widest_float_bytes = 4});
  EXPECT_EQ(profile.device, "emulator:h200");
  EXPECT_DOUBLE_EQ(profile.task.at("floor_us").value, 2);  // 8e6 B at 4e12 B/s
  EXPECT_EQ(profile.task.at("widest_float_bytes").value, 4);
  EXPECT_TRUE(FromEmulation({Launch({})}, {}, Spec(), {}).task.empty());
}

TEST(FromEmulation, EveryNameIsNsightComputesOrCarriesAnOwnPrefix) {
  std::ifstream in(std::string(KP_SOURCE_DIR) + "/tests/data/metrics/base_names.txt");
  std::set<std::string> known;
  for (std::string line; std::getline(in, line);) {
    known.insert(line);
  }
  ASSERT_GT(known.size(), 50U);
  const Profile profile = FromEmulation({Launch({StridedLoad(), Store()})}, {}, Spec(), {});
  std::vector<std::string> names = profile.kernels[0].missing;
  for (const auto& [name, value] : profile.kernels[0].metrics) {
    names.push_back(name);
  }
  for (const LineMetrics& line : profile.kernels[0].lines) {
    for (const auto& [name, value] : line.metrics) {
      names.push_back(name);
    }
  }
  for (const std::string& name : names) {
    const bool own =
        name.starts_with("model.") || name.starts_with("ptxas.") || name.starts_with("ptx.");
    EXPECT_TRUE(own || known.contains(name.substr(0, name.find('.')))) << name;
  }
  // Counted and missing exclude each other.
  for (const std::string& name : profile.kernels[0].missing) {
    EXPECT_FALSE(profile.kernels[0].metrics.contains(name)) << name;
  }
}

TEST(HardwareOf, DerivesRates) {
  const Hardware hardware = HardwareOf(Spec());
  EXPECT_EQ(hardware.sm_count, 132U);
  EXPECT_DOUBLE_EQ(hardware.fp32_flops_per_s, 2.0 * 128 * 132 * 2e9);
}

}  // namespace
}  // namespace kernelpro
