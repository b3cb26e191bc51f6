// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "catalogue.h"
#include "named.h"
#include "profile/metric_sets.h"

namespace kernelpro {
namespace {

using metric_sets::Arch;
using metric_sets::How;
using metric_sets::Pack;
using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::array<Arch, 3> kArchs = {Arch::kSm80, Arch::kSm90, Arch::kSm100};
const std::filesystem::path kSource = KP_SOURCE_DIR;

std::uint8_t Bit(Arch arch) {
  return static_cast<std::uint8_t>(1U << static_cast<unsigned>(arch));
}

/// Names that Nsight Compute makes itself: they stand in no chip's catalogue, and must all be among
/// those of the sets.
bool ToolsOwn(std::string_view name) {
  return std::ranges::any_of(metric_sets::Groups(), [&](const metric_sets::Group& group) {
    return (group.how == How::kTool || group.how == How::kSampled) &&
           std::ranges::any_of(group.entries,
                               [&](const metric_sets::Entry& entry) { return entry.name == name; });
  });
}

/// More of ncu's own, which readers, rules and collect.sh know and the sets do not ask for.
const std::set<std::string_view> kForeign = {
    "launch__block_dim_x",
    "launch__block_dim_y",
    "launch__block_dim_z",
    "launch__grid_dim_x",
    "launch__grid_dim_y",
    "launch__grid_dim_z",
    "launch__cluster_max_active",
    "launch__func_cache_config",
    "launch__occupancy_per_block_size",
    "launch__persisting_l2_cache_size",
    "launch__shared_mem_config_size",
    "launch__shared_mem_per_block_driver",
    "launch__stack_size",
    "launch__thread_count",
    "device__attribute_max_warps_per_multiprocessor",
    "device__attribute_multiprocessor_count",
    "sass__inst_executed_register_spilling_mem_local_op_read",
    "sass__inst_executed_register_spilling_mem_local_op_write",
    "smsp__maximum_warps_avg_per_active_cycle"};

/// Catalogues of all three chips, or a skip that says why not.
class Chips : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const Arch arch : kArchs) {
      std::string why;
      catalogues_[arch] = Catalogue::Open(std::string(metric_sets::ChipOf(arch)), &why);
      if (catalogues_[arch] == nullptr) {
        GTEST_SKIP() << "metric names are not checked against " << metric_sets::ChipOf(arch) << ": "
                     << why;
      }
    }
  }

  /// Those of `names` that no chip knows, with their places.
  [[nodiscard]] std::vector<std::string> UnknownEverywhere(const std::vector<Named>& names) const {
    std::vector<std::string> unknown;
    std::map<std::string, bool> known;
    for (const Named& named : names) {
      const auto [found, is_new] = known.try_emplace(named.name, false);
      if (is_new) {
        found->second = ToolsOwn(named.name) || kForeign.contains(named.name) ||
                        std::ranges::any_of(kArchs, [&](Arch arch) {
                          return catalogues_.at(arch)->Knows(named.name);
                        });
      }
      if (!found->second) {
        unknown.push_back(named.where + ": " + named.name);
      }
    }
    return unknown;
  }

  std::map<Arch, std::unique_ptr<Catalogue>> catalogues_;
};

TEST_F(Chips, KnowEveryMetricOfTheSets) {
  for (const metric_sets::Group& group : metric_sets::Groups()) {
    for (const metric_sets::Entry& entry : group.entries) {
      for (const Arch arch : kArchs) {
        const bool known = catalogues_.at(arch)->Knows(std::string(entry.name));
        if (group.how == How::kTool || group.how == How::kSampled) {
          EXPECT_FALSE(known) << entry.name << " is a counter: group \"" << group.name
                              << "\" says that it is Nsight Compute's own";
        } else if ((entry.archs & Bit(arch)) != 0) {
          EXPECT_TRUE(known) << metric_sets::ChipOf(arch) << " has no " << entry.name
                             << " (group \"" << group.name << "\" of metric_sets.cc)";
        }
      }
    }
  }
}

TEST_F(Chips, KnowEveryNameOfTheHeader) {
  const Result<std::string> text = ReadFile(kSource / "src/profile/metric_names.h");
  ASSERT_TRUE(text.ok()) << text.error().message;
  const std::vector<Named> names = NamesIn(*text, "src/profile/metric_names.h");
  ASSERT_GT(names.size(), 60U);
  for (const Named& named : names) {
    EXPECT_TRUE(ToolsOwn(named.name) || catalogues_.at(Arch::kSm90)->Knows(named.name))
        << named.where << ": GH100 has no " << named.name;
  }
}

TEST_F(Chips, KnowEveryNameOfRulesAndTools) {
  std::vector<Named> names = NamesBeneath(kSource / "rules", ".toml");
  for (const char* extension : {".cc", ".h"}) {
    const std::vector<Named> more = NamesBeneath(kSource / "src/diagnose", extension);
    names.insert(names.end(), more.begin(), more.end());
  }
  ASSERT_THAT(names, Not(IsEmpty()));
  EXPECT_THAT(UnknownEverywhere(names), IsEmpty());
}

/// What collect.sh of that folder asks for on an H200.
TEST_F(Chips, KnowTheNamesThatTheExpertsMatrixWasCollectedWith) {
  const Result<std::string> text = ReadFile(kSource / "tests/gpu/experts/metrics.txt");
  ASSERT_TRUE(text.ok()) << text.error().message;
  for (const std::string_view line : Lines(*text)) {
    if (!line.empty() && !line.starts_with('#')) {
      EXPECT_TRUE(ToolsOwn(line) || kForeign.contains(line) ||
                  catalogues_.at(Arch::kSm90)->Knows(std::string(line)))
          << "tests/gpu/experts/metrics.txt: GH100 has no " << line;
    }
  }
}

TEST_F(Chips, RefuseWrongNames) {
  for (const Arch arch : kArchs) {
    const Catalogue& catalogue = *catalogues_.at(arch);
    EXPECT_TRUE(catalogue.Knows("smsp__inst_executed.sum"));
    for (const char* wrong :
         {"sm__inst_executed_pipe_fp32.sum", "smsp__inst_executed.total",
          "smsp__inst_executed.sum.x",
          "smsp__warp_issue_stalled_memory_dependency_per_warp_active.pct", "", "made__up.sum"}) {
      EXPECT_FALSE(catalogue.Knows(wrong)) << wrong;
    }
  }
  EXPECT_FALSE(catalogues_.at(Arch::kSm100)->Knows("sm__inst_executed_pipe_tensor_op_gmma.sum"));
  // As they would stand in a rule.
  const std::vector<Named> planted = NamesIn(
      "needs = [\"smsp__inst_executed.sum\", \"lts__t_sectors_imagined.sum\"]", "rule.toml");
  EXPECT_THAT(UnknownEverywhere(planted),
              ::testing::ElementsAre("rule.toml:1: lts__t_sectors_imagined.sum"));
}

TEST_F(Chips, NeedAsManyPassesAsIsSaid) {
  const std::map<Pack, std::array<int, 3>> said = {
      {Pack::kFirst, {4, 3, 3}},   {Pack::kMemory, {4, 4, 4}},   {Pack::kLatency, {4, 4, 4}},
      {Pack::kCompute, {3, 4, 4}}, {Pack::kParallel, {2, 1, 1}}, {Pack::kAtomics, {2, 1, 1}},
      {Pack::kTma, {1, 2, 2}},     {Pack::kStalls, {7, 7, 6}}};
  for (const auto& [pack, passes] : said) {
    for (std::size_t i = 0; i < kArchs.size(); ++i) {
      const std::vector<Pack> packs = {pack};
      EXPECT_EQ(catalogues_.at(kArchs[i])->Passes(Metrics(packs, kArchs[i], How::kCounter)),
                passes[i])
          << Name(pack) << " on " << metric_sets::ChipOf(kArchs[i]);
    }
  }
}

/// `ncu --set full` needs 22/26/23 passes of hardware counters on these chips.
TEST_F(Chips, NeedHalfThePassesOfTheFullSetForAKernelThatIsNotBusy) {
  const std::array<int, 3> full = {22, 26, 23};
  const std::vector<Pack> first = {Pack::kFirst};
  // An idle GPU: every pack that no counter rules out.
  const std::vector<Pack> next = metric_sets::PacksAfter(KernelProfile{});
  const std::vector<Pack> every = metric_sets::EveryPack();
  for (std::size_t i = 0; i < kArchs.size(); ++i) {
    const Catalogue& catalogue = *catalogues_.at(kArchs[i]);
    const int targeted = catalogue.Passes(Metrics(first, kArchs[i], How::kCounter)) +
                         catalogue.Passes(Metrics(next, kArchs[i], How::kCounter));
    EXPECT_LE(2 * targeted, full[i]) << metric_sets::ChipOf(kArchs[i]);
    const int all = catalogue.Passes(Metrics(every, kArchs[i], How::kCounter));
    EXPECT_GT(all, 0);
    EXPECT_LE(all, 14) << metric_sets::ChipOf(kArchs[i]);
  }
}

/// Without CUPTI too: the committed list has every base name.
TEST(MetricNames, StandInTheCommittedList) {
  std::ifstream in(kSource / "tests/data/metrics/base_names.txt");
  std::set<std::string> known;
  for (std::string line; std::getline(in, line);) {
    known.insert(line);
  }
  ASSERT_GT(known.size(), 150U);
  for (const metric_sets::Group& group : metric_sets::Groups()) {
    for (const metric_sets::Entry& entry : group.entries) {
      if (!entry.name.starts_with("group:")) {
        EXPECT_THAT(known, Contains(std::string(entry.name.substr(0, entry.name.find('.')))));
      }
    }
  }
  EXPECT_THAT(known, Not(Contains("sm__inst_executed_pipe_fp32")));
}

TEST(MetricNames, AreFoundInTextAndProseIsNot) {
  const std::vector<Named> names = NamesIn(
      "a = \"x\"\nneeds = [\"gpu__time.sum\", \"a__b.sum|c__d\"]\n"
      "say = \"call __syncthreads() or a__b twice\"\n# \"q__r\"\nb = \"__ldg\" // \"q__r\"\n c = "
      "\"sass.loop.ldg\" d = "
      "\"e__\"\n",
      "r.toml");
  std::vector<std::string> found;
  for (const Named& named : names) {
    found.push_back(named.where + " " + named.name);
  }
  EXPECT_THAT(found, ::testing::ElementsAre("r.toml:2 gpu__time.sum", "r.toml:2 a__b.sum",
                                            "r.toml:2 c__d"));
}

}  // namespace
}  // namespace kernelpro
