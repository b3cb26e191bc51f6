// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "profile/metric_names.h"
#include "profile/metric_sets.h"

namespace kernelpro::metric_sets {
namespace {

using ::testing::Contains;
using ::testing::IsSubsetOf;
using ::testing::Not;

KernelProfile Kernel(std::initializer_list<std::pair<std::string_view, double>> values) {
  KernelProfile kernel;
  for (const auto& [name, value] : values) {
    kernel.metrics[std::string(name)] = {value, "", Provenance::kMeasured};
  }
  return kernel;
}

TEST(MetricSets, ArchIsTheNearestOlderOne) {
  EXPECT_EQ(ArchOf(75), Arch::kSm80);
  EXPECT_EQ(ArchOf(89), Arch::kSm80);
  EXPECT_EQ(ArchOf(90), Arch::kSm90);
  EXPECT_EQ(ArchOf(100), Arch::kSm100);
  EXPECT_EQ(ArchOf(120), Arch::kSm100);
}

TEST(MetricSets, TrapsAreNotAskedFor) {
  const std::vector<Pack> every = EveryPack();
  const std::vector<std::string> sm90 = Metrics(every, Arch::kSm90);
  const std::vector<std::string> sm100 = Metrics(every, Arch::kSm100);
  const std::string gmma = "sm__inst_executed_pipe_tensor_op_gmma.sum";
  EXPECT_THAT(sm90, Contains(gmma));
  EXPECT_THAT(sm100, Not(Contains(gmma)));
  EXPECT_THAT(Metrics(every, Arch::kSm80), Not(Contains(gmma)));
  EXPECT_THAT(sm100, Contains("syslts__t_sectors_aperture_sysmem.sum"));
  EXPECT_THAT(sm90, Not(Contains("syslts__t_sectors_aperture_sysmem.sum")));
  EXPECT_EQ(std::set<std::string>(sm90.begin(), sm90.end()).size(), sm90.size());
}

TEST(MetricSets, AUnionAsksOnceAndAPackIsAPartOfAll) {
  const std::vector<Pack> both = {Pack::kMemory, Pack::kAtomics};
  const std::vector<std::string> names = Metrics(both, Arch::kSm90);
  EXPECT_EQ(std::ranges::count(names, metric::kDuration), 1);
  EXPECT_THAT(names, IsSubsetOf(Metrics(EveryPack(), Arch::kSm90)));
  EXPECT_THAT(Metrics(both, Arch::kSm90, How::kSampled), ::testing::IsEmpty());
}

TEST(PacksAfter, FollowTheClass) {
  // A copy at the memory's roof.
  std::vector<Pack> packs = PacksAfter(Kernel({{metric::kDramPct, 90},
                                               {metric::kIssueActive, 0.2},
                                               {metric::kWaves, 60},
                                               {metric::kCyclesActive, 99},
                                               {metric::kCyclesActiveMax, 100},
                                               {metric::kCyclesElapsed, 101}}));
  EXPECT_THAT(packs, Contains(Pack::kMemory));
  EXPECT_THAT(packs, Not(Contains(Pack::kCompute)));
  EXPECT_THAT(packs, Not(Contains(Pack::kParallel)));
  EXPECT_THAT(packs, Not(Contains(Pack::kLatency)));
  // Arithmetic that keeps the issue slots busy.
  packs = PacksAfter(
      Kernel({{metric::kFmaPct, 92}, {metric::kIssueActive, 0.95}, {metric::kWaves, 60}}));
  EXPECT_THAT(packs, Contains(Pack::kCompute));
  EXPECT_THAT(packs, Not(Contains(Pack::kMemory)));
  // Nothing is busy, on a part of the GPU.
  packs = PacksAfter(
      Kernel({{metric::kDramPct, 10}, {metric::kIssueActive, 0.1}, {metric::kWaves, 0.5}}));
  for (const Pack pack : {Pack::kMemory, Pack::kLatency, Pack::kParallel, Pack::kSass}) {
    EXPECT_THAT(packs, Contains(pack)) << Name(pack);
  }
}

TEST(PacksAfter, AtomicsAreRuledOutByADisassemblyWithoutThem) {
  EXPECT_THAT(PacksAfter(Kernel({})), Contains(Pack::kAtomics));
  EXPECT_THAT(PacksAfter(Kernel({{"sass.instructions", 100}})), Not(Contains(Pack::kAtomics)));
  EXPECT_THAT(PacksAfter(Kernel({{"sass.instructions", 100}, {"sass.red", 1}})),
              Contains(Pack::kAtomics));
  EXPECT_THAT(PacksAfter(Kernel({{"sass.instructions", 100}, {"sass.tma", 2}})),
              Contains(Pack::kTma));
}

}  // namespace
}  // namespace kernelpro::metric_sets
