// SPDX-License-Identifier: Apache-2.0
#include "profile/ncu_csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>

#include "base/file.h"

namespace kernelpro {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

std::filesystem::path Data(const std::string& name) {
  return std::filesystem::path(KP_SOURCE_DIR) / "tests/data" / name;
}

Profile Read(const std::string& name) {
  auto profile = ReadNcuCsv(Data("profiles/" + name));
  EXPECT_TRUE(profile.ok()) << (profile.ok() ? "" : profile.error().message);
  return profile.ok() ? *profile : Profile{};
}

TEST(NcuCsv, LongFormFromWindowsWithNoise) {
  const Profile profile = Read("long_windows.csv");
  ASSERT_EQ(profile.kernels.size(), 2U);
  const KernelProfile& first = profile.kernels[0];
  EXPECT_EQ(first.name, "unnamed>::scale<32>");
  EXPECT_DOUBLE_EQ(first.time_us, 10195.552);
  EXPECT_EQ(first.time_provenance, Provenance::kMeasured);
  EXPECT_EQ(first.block[0] * first.block[1], 1024U);
  EXPECT_EQ(first.grid[0] * first.grid[1], 4096U);
  EXPECT_EQ(first.Value("sm__throughput.avg.pct_of_peak_sustained_elapsed"), 88.9);
  EXPECT_FALSE(first.Value("smsp__no_such_metric.sum").has_value());
  EXPECT_THAT(first.missing, Contains("smsp__no_such_metric.sum"));
  const KernelProfile& second = profile.kernels[1];
  EXPECT_EQ(second.Value("dram__bytes_read.sum"), 1.08e6);
  EXPECT_EQ(second.metrics.at("dram__bytes_read.sum").unit, "byte");
  EXPECT_NEAR(second.time_share, 4447.0 / 10199999.0, 1e-9);
}

TEST(NcuCsv, WideFormTakesUnitsFromTheRowWithoutId) {
  const Profile profile = Read("wide_units.csv");
  ASSERT_EQ(profile.kernels.size(), 2U);
  EXPECT_EQ(profile.device, "Some GPU");
  EXPECT_EQ(profile.kernels[0].name, "f<a, b<c>>");
  EXPECT_DOUBLE_EQ(profile.kernels[0].time_us, 9.92);
  EXPECT_EQ(profile.kernels[0].Value("smsp__inst_executed.sum"), 1024);
  EXPECT_FALSE(profile.kernels[0].Value("launch__func_cache_config").has_value());
  EXPECT_FALSE(profile.kernels[1].Value("smsp__inst_executed.sum").has_value());
  EXPECT_THAT(profile.kernels[1].missing, Contains("smsp__inst_executed.sum"));
}

TEST(NcuCsv, DetailsPageWithRulesAndRaggedRows) {
  const Profile profile = Read("details_rules.csv");
  ASSERT_EQ(profile.kernels.size(), 2U);
  const KernelProfile& kernel = profile.kernels[0];
  EXPECT_DOUBLE_EQ(kernel.time_us, 56.06);
  EXPECT_DOUBLE_EQ(profile.kernels[1].time_us, 30860);
  EXPECT_EQ(kernel.Value("sm__cycles_elapsed.max"), 63779);
  EXPECT_EQ(kernel.Value("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"),
            23.97);
  EXPECT_DOUBLE_EQ(*kernel.Value("dram__bytes.sum.per_second"), 488.17e9);
  EXPECT_EQ(kernel.Value("GPU Speed Of Light Throughput: Odd Name"), 7);
}

TEST(NcuCsv, OldFormAndInvertedLocale) {
  const Profile old = Read("old_2020.csv");
  ASSERT_EQ(old.kernels.size(), 1U);
  EXPECT_DOUBLE_EQ(old.kernels[0].time_us, 8.992);
  EXPECT_EQ(old.kernels[0].name, "flux");
  EXPECT_EQ(old.kernels[0].metrics.at("sm__cycles_elapsed.avg.per_second").unit, "hz");
  const Profile inverted = Read("inverted_locale.csv");
  ASSERT_EQ(inverted.kernels.size(), 1U);
  EXPECT_DOUBLE_EQ(inverted.kernels[0].time_us, 10195.552);
  EXPECT_DOUBLE_EQ(*inverted.kernels[0].Value("a__b.pct"), 88.9);
}

TEST(NcuCsv, ErrorsSayWhatToDo) {
  const auto ambiguous = ReadNcuCsv(Data("profiles/ambiguous.csv"));
  ASSERT_FALSE(ambiguous.ok());
  EXPECT_EQ(ambiguous.error().code, ErrorCode::kParse);
  EXPECT_THAT(ambiguous.error().message, HasSubstr("LC_ALL=C"));
  const auto permission = ReadNcuCsv(Data("profiles/permission.txt"));
  ASSERT_FALSE(permission.ok());
  EXPECT_EQ(permission.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(permission.error().message, HasSubstr("NVreg_RestrictProfilingToAdminUsers"));
  const auto failed = ReadNcuCsv(Data("profiles/application_error.txt"));
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, ErrorCode::kToolFailed);
  EXPECT_THAT(failed.error().message, HasSubstr("application_error.txt:3"));
  const auto none = ReadNcuCsv(Data("profiles/no_kernels.txt"));
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(ParseNcuCsv("\"ID\",\"A\"\n\"0\",\"b\"\n", "x").ok());
  EXPECT_FALSE(ParseNcuCsv("", "x").ok());
}

TEST(NcuCsv, WordsAreTextsAndRulesAreCounted) {
  const Profile wide = Read("wide_units.csv");
  ASSERT_EQ(wide.kernels.size(), 2U);
  EXPECT_EQ(wide.kernels[0].texts.at("launch__func_cache_config"), "CachePreferNone");
  EXPECT_FALSE(wide.kernels[0].texts.contains("ncu.rules"));
  const Profile details = Read("details_rules.csv");
  ASSERT_EQ(details.kernels.size(), 2U);
  EXPECT_EQ(details.kernels[0].texts.at("ncu.rules"), "1");
  EXPECT_FALSE(details.kernels[1].texts.contains("ncu.rules"));
}

constexpr std::string_view kLongHeader =
    "\"ID\",\"Process ID\",\"Kernel Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n";

Profile Parse(const std::string& text) {
  auto profile = ParseNcuCsv(text, "x.csv");
  EXPECT_TRUE(profile.ok()) << (profile.ok() ? "" : profile.error().message);
  return profile.ok() ? *profile : Profile{};
}

TEST(NcuCsv, LaunchesThatInterleaveAndMetricsInAnyOrder) {
  const Profile profile = Parse(std::string(kLongHeader) +
                                "\"0\",\"7\",\"f()\",\"z__a.sum\",\"byte\",\"1\"\n"
                                "\"1\",\"7\",\"g()\",\"z__a.sum\",\"Kbyte\",\"2.5\"\n"
                                "\"0\",\"7\",\"f()\",\"a__b.sum\",\"\",\"3\"\n"
                                "\"1\",\"7\",\"g()\",\"m__c.sum\",\"inst\",\"4\"\n"
                                "\"1\",\"7\",\"g()\",\"a__b.sum\",\"\",\"5\"\n"
                                "\"1\",\"7\",\"g()\",\"a__b.sum\",\"\",\"6\"\n");
  ASSERT_EQ(profile.kernels.size(), 2U);
  EXPECT_EQ(profile.kernels[0].metrics.size(), 2U);
  EXPECT_EQ(profile.kernels[0].Value("z__a.sum"), 1);
  EXPECT_EQ(profile.kernels[0].Value("a__b.sum"), 3);
  EXPECT_EQ(profile.kernels[1].metrics.size(), 3U);
  EXPECT_EQ(profile.kernels[1].Value("z__a.sum"), 2500);
  EXPECT_EQ(profile.kernels[1].Value("m__c.sum"), 4);
  EXPECT_EQ(profile.kernels[1].Value("a__b.sum"), 6);
}

/// Two processes in one table, and two runs in one log, number their launches alike.
TEST(NcuCsv, EqualIdsOfProcessesAndTablesAreDifferentLaunches) {
  const std::string row = ",\"f()\",\"gpu__time_duration.sum\",\"us\",";
  const Profile processes = Parse(std::string(kLongHeader) + "\"0\",\"7\"" + row +
                                  "\"1\"\n\"0\",\"8\"" + row + "\"2\"\n");
  ASSERT_EQ(processes.kernels.size(), 2U);
  EXPECT_EQ(processes.kernels[1].time_us, 2);
  const Profile tables = Parse(std::string(kLongHeader) + "\"0\",\"7\"" + row +
                               "\"1\"\n==PROF== Disconnected\n\"ID\",\"Process ID\",\"Kernel "
                               "Name\",\"gpu__time_duration.sum\"\n"
                               "\"\",\"\",\"\",\"ms\"\n\"0\",\"7\",\"g()\",\"2\"\n");
  ASSERT_EQ(tables.kernels.size(), 2U);
  EXPECT_EQ(tables.kernels[0].time_us, 1);
  EXPECT_EQ(tables.kernels[1].name, "g");
  EXPECT_EQ(tables.kernels[1].time_us, 2000);
}

TEST(NcuCsv, UnitsBehindValuesAreRefused) {
  const auto sorted = ParseNcuCsv(
      "\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\"\n\"0\",\"f()\",\"2\"\n\"\",\"\",\"ms\"\n",
      "x.csv");
  ASSERT_FALSE(sorted.ok());
  EXPECT_EQ(sorted.error().code, ErrorCode::kParse);
  EXPECT_THAT(sorted.error().message, HasSubstr("x.csv:3"));
}

TEST(NcuCsv, NoMetricIsInfiniteOrFromAnotherProgramsRow) {
  const Profile profile = Parse(std::string(kLongHeader) +
                                "\"0\",\"7\",\"f()\",\"a__b.sum\",\"\",\"-inf\"\n"
                                "\"0\",\"7\",\"f()\",\"c__d.sum\",\"Gbyte\",\"1e308\"\n"
                                "\"hello\",\"7\",\"f()\",\"e__f.sum\",\"\",\"1\"\n"
                                "\"0\",\"7\",\"f()\",\"g__h.sum\",\"\",\"1\"\n");
  ASSERT_EQ(profile.kernels.size(), 1U);
  EXPECT_EQ(profile.kernels[0].metrics.size(), 1U);
  EXPECT_THAT(profile.kernels[0].missing, Contains("a__b.sum"));
}

TEST(NcuCsv, MergedLaunchesAddSumsAndAverageRatios) {
  const Profile merged = MergeLaunches(Read("wide_units.csv"));
  ASSERT_EQ(merged.kernels.size(), 1U);
  EXPECT_DOUBLE_EQ(merged.kernels[0].time_us, 30);
  // 40 registers for 9.92 us and 56 for 20.08 us.
  EXPECT_NEAR(*merged.kernels[0].Value("launch__registers_per_thread"),
              (40 * 9.92 + 56 * 20.08) / 30, 1e-9);
  EXPECT_EQ(merged.kernels[0].Value("smsp__inst_executed.sum"), 1024);
}

/// Every counter of the CSV equals the one that another program read from it.
TEST(NcuCsv, AgreesWithAnIndependentReaderOnTheH200File) {
  auto profile = ReadNcuCsv(Data("h200/ncu.csv"));
  ASSERT_TRUE(profile.ok());
  std::ifstream in(Data("h200/ncu.json"));
  const nlohmann::json expected = nlohmann::json::parse(in);
  ASSERT_EQ(profile->kernels.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    for (const auto& [name, value] : expected[i].items()) {
      if (name != "name") {
        EXPECT_EQ(profile->kernels[i].Value(name), value.get<double>()) << i << " " << name;
      }
    }
  }
}

/// Profiles that other people made, when the folder is at hand (they are not ours to distribute).
class FieldSample : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("KERNELPRO_FIELD_PROFILES");  // NOLINT(concurrency-mt-unsafe)
    if (folder == nullptr) {
      GTEST_SKIP() << "KERNELPRO_FIELD_PROFILES is not set";
    }
    folder_ = folder;
  }

  Profile ReadField(const std::string& name) {
    auto profile = ReadNcuCsv(folder_ / name);
    EXPECT_TRUE(profile.ok()) << (profile.ok() ? "" : profile.error().message);
    return profile.ok() ? *profile : Profile{};
  }

  std::filesystem::path folder_;
};

TEST_F(FieldSample, LongBaseUnits) {
  const Profile p = ReadField("01_long_base_units_rtx40_9kernels.csv");
  ASSERT_EQ(p.kernels.size(), 9U);
  EXPECT_DOUBLE_EQ(p.kernels[0].time_us, 814.048);
  EXPECT_DOUBLE_EQ(p.kernels[1].time_us, 581.056);
  EXPECT_DOUBLE_EQ(p.kernels[2].time_us, 536.736);
  EXPECT_EQ(p.kernels[0].Value("branch_inst_executed"), 32505856);
  std::size_t rows = 0;
  for (const KernelProfile& kernel : p.kernels) {
    rows += kernel.metrics.size() + kernel.missing.size() + kernel.texts.size();
  }
  EXPECT_EQ(rows, 171U);
}

TEST_F(FieldSample, WindowsBom) {
  const Profile p = ReadField("03_long_win_bom_crlf_rtx5070.csv");
  ASSERT_FALSE(p.kernels.empty());
  EXPECT_DOUBLE_EQ(p.kernels[0].time_us, 10195.552);
}

TEST_F(FieldSample, DetailsWithRules) {
  const Profile p = ReadField("05_details_rules_a100.csv");
  ASSERT_EQ(p.kernels.size(), 6U);
  EXPECT_DOUBLE_EQ(p.kernels[0].time_us, 56.06);
  EXPECT_DOUBLE_EQ(p.kernels[5].time_us, 30860);
  EXPECT_EQ(p.kernels[0].Value("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"),
            23.97);
  EXPECT_DOUBLE_EQ(*p.kernels[0].Value("dram__bytes.sum.per_second"), 488.17e9);
  int rules = 0;
  for (const KernelProfile& kernel : p.kernels) {
    rules += std::stoi(kernel.texts.at("ncu.rules"));
  }
  EXPECT_EQ(rules, 61);
}

TEST_F(FieldSample, WideUnitsRow) {
  const Profile p = ReadField("07_raw_wide_units_row_b200.csv");
  ASSERT_EQ(p.kernels.size(), 16U);
  EXPECT_DOUBLE_EQ(p.kernels[0].time_us, 9.92);
  EXPECT_DOUBLE_EQ(p.kernels[1].time_us, 23.872);
  EXPECT_FALSE(p.kernels[0].Value("dram__bytes_read.sum").has_value());
  EXPECT_EQ(p.device, "NVIDIA B200");
  EXPECT_EQ(p.kernels[0].texts.at("launch__func_cache_config"), "CachePreferNone");
  std::set<double> registers;
  for (const KernelProfile& kernel : p.kernels) {
    registers.insert(*kernel.Value("launch__registers_per_thread"));
  }
  EXPECT_EQ(registers, (std::set<double>{40, 56}));
  EXPECT_EQ(MergeLaunches(p).kernels.size(), 2U);
}

TEST_F(FieldSample, LogsWithoutATable) {
  EXPECT_EQ(ReadNcuCsv(folder_ / "08_no_table_error_only_b200.csv").error().code,
            ErrorCode::kToolFailed);
  EXPECT_FALSE(ReadNcuCsv(folder_ / "09_child_processes_no_kernels_b200.csv").ok());
  EXPECT_FALSE(ReadNcuCsv(folder_ / "17_log_only_prof_lines.txt").ok());
  EXPECT_EQ(ReadNcuCsv(folder_ / "18_err_nvgpuctrperm.txt").error().code, ErrorCode::kUnavailable);
}

TEST_F(FieldSample, Of2020) {
  const Profile p = ReadField("33_long_2020_kernel_time_excerpt.csv");
  ASSERT_FALSE(p.kernels.empty());
  EXPECT_DOUBLE_EQ(p.kernels[0].time_us, 8.992);
}

TEST_F(FieldSample, NothingInTheFolderCrashes) {
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    if (entry.is_regular_file()) {
      const auto profile = ReadNcuCsv(entry.path());
      if (!profile.ok()) {
        EXPECT_THAT(profile.error().message, HasSubstr(entry.path().filename().string()));
      }
    }
  }
}

}  // namespace
}  // namespace kernelpro
