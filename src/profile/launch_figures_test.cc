// SPDX-License-Identifier: Apache-2.0
#include "profile/launch_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "profile/metric_names.h"

namespace kernelpro {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

model::GpuSpec Spec() {
  auto spec = model::LoadSpec("h200");
  EXPECT_TRUE(spec.ok());
  return spec.ok() ? *spec : model::GpuSpec{};
}

Profile One(double registers, std::uint32_t block, std::uint32_t grid) {
  Profile profile;
  KernelProfile kernel;
  kernel.name = "k";
  kernel.block[0] = block;
  kernel.grid[0] = grid;
  kernel.metrics["ptxas.registers"] = {registers, "register/thread", Provenance::kCounted};
  profile.kernels.push_back(kernel);
  return profile;
}

TEST(LaunchFigures, FollowFromRegistersAndShape) {
  Profile profile = One(64, 256, 132 * 8);
  profile.kernels[0].missing = {std::string(metric::kWaves), "x"};
  profile.kernels[0].metrics[std::string(metric::kSharedDynamic)] = {0, "byte"};
  EXPECT_EQ(AddLaunchFigures(Spec(), profile), 1U);
  const KernelProfile& kernel = profile.kernels[0];
  // 65,536 registers / (64 * 256) = 4 blocks of 8 warps on an SM that holds 64: half.
  EXPECT_EQ(kernel.Value(metric::kLimitRegisters), 4);
  EXPECT_EQ(kernel.Value(metric::kWarpsMaximumPct), 50);
  EXPECT_DOUBLE_EQ(kernel.Value(metric::kWaves).value_or(0), 2);
  EXPECT_EQ(kernel.metrics.at(std::string(metric::kWaves)).provenance, Provenance::kCounted);
  EXPECT_THAT(kernel.missing, ::testing::ElementsAre("x"));
  EXPECT_THAT(profile.notes, IsEmpty());
}

TEST(LaunchFigures, NeverReplaceWhatIsThere) {
  Profile profile = One(64, 256, 132 * 8);
  profile.kernels[0].metrics[std::string(metric::kWaves)] = {7, "", Provenance::kMeasured};
  AddLaunchFigures(Spec(), profile);
  EXPECT_EQ(profile.kernels[0].Value(metric::kWaves), 7);
  EXPECT_THAT(profile.notes, ::testing::ElementsAre(HasSubstr("dynamic shared memory")));
}

TEST(LaunchFigures, NothingIsMadeOfNothing) {
  for (Profile profile : {One(0, 256, 100), One(300, 256, 100), One(64, 1, 1), One(64, 4096, 10),
                          One(std::numeric_limits<double>::quiet_NaN(), 256, 10), Profile()}) {
    EXPECT_EQ(AddLaunchFigures(Spec(), profile), 0U);
    EXPECT_THAT(profile.notes, IsEmpty());
  }
}

}  // namespace
}  // namespace kernelpro
