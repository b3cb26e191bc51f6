// SPDX-License-Identifier: Apache-2.0
#include "profile/collect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "profile/metric_names.h"

namespace kernelpro {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using When = EvidenceTier::When;
using Depth = CollectOptions::Depth;

CollectOptions Options(const std::string& mode, std::vector<std::string> more = {}) {
  CollectOptions options;
  options.run.ncu = std::filesystem::path(KP_SOURCE_DIR) / "tests/data/ncu/fake_ncu.sh";
  options.run.argv = {"/bin/true"};
  options.run.environment = {{"PATH=/usr/bin:/bin", "FAKE_NCU=" + mode}};
  options.run.environment->insert(options.run.environment->end(), more.begin(), more.end());
  options.run.limit = std::chrono::seconds(60);
  return options;
}

EvidenceTier Tier(std::string name, When when, const std::string& metric, double value,
                  Provenance provenance = Provenance::kCounted) {
  return {name, when, [=](const std::stop_token&) -> Result<Profile> {
            Profile profile;
            profile.source = name;
            KernelProfile kernel;
            kernel.name = "ns::scale<4>";
            kernel.mangled = "_ZN2ns5scaleILi4EEEvPfi";
            kernel.metrics[metric] = {value, "", provenance};
            profile.kernels.push_back(kernel);
            return profile;
          }};
}

EvidenceTier Broken(std::string name, When when, ErrorCode code) {
  return {name, when,
          [=](const std::stop_token&) -> Result<Profile> { return Fail(code, name + " broke"); }};
}

TEST(CollectProfile, TwoRunsBecomeOneKernel) {
  const Result<Collection> collected = CollectProfile(Options("ok"), {});
  ASSERT_TRUE(collected.ok()) << collected.error().message;
  ASSERT_THAT(collected->profile.kernels, SizeIs(1));
  const KernelProfile& kernel = collected->profile.kernels[0];
  EXPECT_EQ(kernel.Value(metric::kDramPct), 85.5);              // the first run
  EXPECT_TRUE(kernel.Value("lts__t_sectors_srcunit_tex.sum"));  // the second
  EXPECT_TRUE(kernel.Value("smsp__sass_inst_executed.sum"));    // patched
  EXPECT_THAT(kernel.hot_spots, SizeIs(2));                     // sampled
  EXPECT_EQ(kernel.metrics.at(std::string(metric::kDramPct)).provenance, Provenance::kMeasured);
  EXPECT_EQ(collected->profile.device, "Fake GPU");
  EXPECT_THAT(collected->profile.notes, ElementsAre(HasSubstr("two runs")));
  ASSERT_THAT(collected->passes, SizeIs(2));
  EXPECT_EQ(collected->passes[0].packs, "first");
  EXPECT_THAT(collected->passes[1].packs, AllOf(HasSubstr("memory"), HasSubstr("sampling")));
  EXPECT_THAT(collected->passes[1].command, Not(Contains("--set")));
}

TEST(CollectProfile, EverythingIsOneRunWhereTheGpuIsKnown) {
  CollectOptions options = Options("ok");
  options.depth = Depth::kEverything;
  options.compute_capability = 90;
  Result<Collection> collected = CollectProfile(options, {});
  ASSERT_TRUE(collected.ok()) << collected.error().message;
  EXPECT_THAT(collected->passes, SizeIs(1));
  EXPECT_THAT(collected->profile.notes, IsEmpty());
  EXPECT_TRUE(collected->profile.kernels.at(0).Value(
      "smsp__average_warps_issue_stalled_gmma_per_issue_active.ratio"));
  options.depth = Depth::kFirst;
  options.sampling = false;
  collected = CollectProfile(options, {});
  ASSERT_TRUE(collected.ok());
  EXPECT_THAT(collected->passes, SizeIs(1));
  EXPECT_FALSE(collected->profile.kernels.at(0).Value("smsp__sass_inst_executed.sum"));
}

TEST(CollectProfile, PermissionDeniedGoesOnWithWhatElseThereIs) {
  CollectOptions options = Options("permission");
  options.tiers = {Tier("the disassembly", When::kBefore, "sass.ldg", 7),
                   Broken("activity trace", When::kAlways, ErrorCode::kUnavailable),
                   Tier("emulation", When::kInstead, "x.pct", 1, Provenance::kModelled)};
  const Result<Collection> collected = CollectProfile(options, {});
  ASSERT_TRUE(collected.ok()) << collected.error().message;
  const Profile& profile = collected->profile;
  ASSERT_THAT(profile.kernels, SizeIs(1));
  EXPECT_EQ(profile.kernels[0].Value("sass.ldg"), 7);
  EXPECT_EQ(profile.kernels[0].Value("x.pct"), 1);
  EXPECT_FALSE(profile.kernels[0].Value(metric::kDramPct));
  ASSERT_THAT(profile.notes, SizeIs(2));
  EXPECT_THAT(profile.notes[0], AllOf(HasSubstr("ERR_NVGPUCTRPERM"), HasSubstr("NVreg_Restrict"),
                                      HasSubstr("rests on the disassembly and emulation instead")));
  EXPECT_THAT(profile.notes[1], HasSubstr("No activity trace: activity trace broke."));
  EXPECT_THAT(collected->passes, SizeIs(1));  // not tried again without sampling
  EXPECT_THAT(collected->passes[0].error, HasSubstr("ERR_NVGPUCTRPERM"));
}

TEST(CollectProfile, NoNcuGarbageAndAHangAreNotesToo) {
  for (const std::string mode : {"garbage", "hang", "driver", "absent"}) {
    CollectOptions options = Options(mode);
    options.run.limit = std::chrono::seconds(2);
    if (mode == "absent") {
      options.run.ncu = "/nowhere/ncu";
    }
    options.tiers = {Tier("the disassembly", When::kBefore, "sass.ldg", 7)};
    const Result<Collection> collected = CollectProfile(options, {});
    ASSERT_TRUE(collected.ok()) << mode << ": " << collected.error().message;
    EXPECT_THAT(collected->profile.notes, Contains(HasSubstr("No hardware counters"))) << mode;
    EXPECT_EQ(collected->profile.kernels.at(0).Value("sass.ldg"), 7) << mode;
  }
}

TEST(CollectProfile, NothingAtAllIsAnError) {
  CollectOptions options = Options("permission");
  options.tiers = {Broken("the disassembly", When::kBefore, ErrorCode::kNotFound)};
  const Result<Collection> collected = CollectProfile(options, {});
  ASSERT_FALSE(collected.ok());
  options.depth = Depth::kNone;
  options.tiers.clear();
  EXPECT_EQ(CollectProfile(options, {}).error().code, ErrorCode::kInvalidArgument);
}

TEST(CollectProfile, SamplingThatFailsCostsNoCounters) {
  const Result<Collection> collected = CollectProfile(Options("no_sampling"), {});
  ASSERT_TRUE(collected.ok()) << collected.error().message;
  EXPECT_TRUE(collected->profile.kernels.at(0).Value("smsp__sass_inst_executed.sum"));
  EXPECT_THAT(collected->profile.kernels.at(0).hot_spots, IsEmpty());
  EXPECT_THAT(collected->profile.notes, Contains(HasSubstr("were not sampled")));
  EXPECT_THAT(collected->passes, SizeIs(3));
}

TEST(CollectProfile, EmulationStandsBackBehindCounters) {
  CollectOptions options = Options("ok");
  options.tiers = {Tier("emulation", When::kInstead, "x.pct", 1, Provenance::kModelled),
                   Tier("the disassembly", When::kBefore, "sass.instructions", 100)};
  const Result<Collection> collected = CollectProfile(options, {});
  ASSERT_TRUE(collected.ok()) << collected.error().message;
  EXPECT_FALSE(collected->profile.kernels.at(0).Value("x.pct"));
  EXPECT_EQ(collected->profile.kernels.at(0).Value("sass.instructions"), 100);
  // The disassembly has no atomics, so none were asked for.
  EXPECT_THAT(collected->passes.at(1).packs, Not(HasSubstr("atomics")));
}

TEST(CollectProfile, StoppedIsStopped) {
  std::stop_source source;
  source.request_stop();
  const Result<Collection> collected = CollectProfile(Options("hang"), source.get_token());
  ASSERT_FALSE(collected.ok());
  EXPECT_EQ(collected.error().code, ErrorCode::kCancelled);
  CollectOptions options = Options("ok");
  options.tiers = {Broken("x", When::kBefore, ErrorCode::kCancelled)};
  EXPECT_EQ(CollectProfile(options, {}).error().code, ErrorCode::kCancelled);
}

TEST(CollectProfile, LaunchFiguresAreComputedWhereNcuGaveNone) {
  CollectOptions options = Options("ok");
  options.depth = Depth::kNone;
  auto spec = model::LoadSpec("h200");
  ASSERT_TRUE(spec.ok());
  options.spec = *spec;
  options.tiers = {
      {"the compiler's log", When::kBefore, [](const std::stop_token&) -> Result<Profile> {
         Profile profile;
         KernelProfile kernel;
         kernel.name = kernel.mangled = "k";
         kernel.block[0] = 128;
         kernel.grid[0] = 1000;
         kernel.metrics["ptxas.registers"] = {32, "", Provenance::kCounted};
         profile.kernels.push_back(kernel);
         return profile;
       }}};
  const Result<Collection> collected = CollectProfile(options, {});
  ASSERT_TRUE(collected.ok());
  EXPECT_EQ(collected->profile.kernels.at(0).Value(metric::kWarpsMaximumPct), 100);
}

}  // namespace
}  // namespace kernelpro
