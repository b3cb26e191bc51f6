// SPDX-License-Identifier: Apache-2.0
#include "profile/ncu_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace kernelpro {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

Profile Parse(std::string_view text) {
  auto profile = ParseNcuText(text, "log.txt");
  EXPECT_TRUE(profile.ok()) << (profile.ok() ? "" : profile.error().message);
  return profile.ok() ? *profile : Profile{};
}

constexpr std::string_view kOf2025 = R"(==PROF== Connected to process 7 (/bin/app)
Ergebnis für n — 12,5 Äpfel
==PROF== Profiling "scale" - 0: 0%
==WARNING== Backing up device memory in system memory.
....50%....100% - 9 passes
==PROF== Disconnected from process 7
[7] app@127.0.0.1
  void ns::scale<(int)4, ns::Op<float>>(float *, int (*)(int)) (512, 2, 1)x(32, 8, 1), Context 1, Stream 7, Device 0, CC 9.0
    Section: GPU Speed Of Light Throughput
    ----------------------- ----------- ------------
    Metric Name             Metric Unit Metric Value
    ----------------------- ----------- ------------
    SM Frequency                    Ghz         1.50
    Elapsed Cycles                cycle       12,717
    Memory Throughput                 %        43.57
    Duration                         us         5.92
    L2 Cache Throughput               %      (!) nan
    ----------------------- ----------- ------------

    OPT   Est. Speedup: 50%
          Section: a rule may say anything.
    ----- ------------ --------------
    Metric Name  Metric Value Guidance
    ----- ------------ --------------
    Duration      1     lower is better
    ----- ------------ --------------

    Section: Memory Workload Analysis
    --------------------------------------- ----------- ------------
    Metric Name                             Metric Unit Metric Value
    --------------------------------------- ----------- ------------
    Memory Throughput                           Gbyte/s        84.19
a line of the program
    L2 Compression Ratio                                           0
    Odd Figure                                        %          7.5
    --------------------------------------- ----------- ------------

    Section: Launch Statistics
    -------------------------------- --------------- ---------------
    Metric Name                          Metric Unit    Metric Value
    -------------------------------- --------------- ---------------
    Function Cache Configuration                     CachePreferNone
    Registers Per Thread             register/thread             111
    Static Shared Memory Per Block       Kbyte/block           32.77
    -------------------------------- --------------- ---------------

  tail(int) (1, 1, 1)x(64, 1, 1), Context 1, Stream 7, Device 0, CC 9.0
    Section: GPU Speed Of Light Throughput
    ----------------------- ----------- ------------
    Metric Name             Metric Unit Metric Value
    ----------------------- ----------- ------------
    Duration                         ms         1.00
    ----------------------- ----------- ------------
)";

TEST(NcuText, TablesOfTwoLaunches) {
  const Profile profile = Parse(kOf2025);
  ASSERT_EQ(profile.kernels.size(), 2U);
  EXPECT_EQ(profile.device, "GPU of compute capability 9.0");
  const KernelProfile& first = profile.kernels[0];
  EXPECT_EQ(first.name, "ns::scale<(int)4, ns::Op<float>>");
  EXPECT_THAT(first.mangled, HasSubstr("int (*)(int)"));
  EXPECT_EQ(first.grid[0], 512U);
  EXPECT_EQ(first.grid[1], 2U);
  EXPECT_EQ(first.block[0], 32U);
  EXPECT_EQ(first.block[1], 8U);
  EXPECT_DOUBLE_EQ(first.time_us, 5.92);
  EXPECT_EQ(first.time_provenance, Provenance::kMeasured);
  EXPECT_EQ(first.Value("sm__cycles_elapsed.max"), 12717);
  EXPECT_EQ(first.metrics.at("sm__cycles_elapsed.avg.per_second").unit, "hz");
  EXPECT_DOUBLE_EQ(*first.Value("sm__cycles_elapsed.avg.per_second"), 1.5e9);
  EXPECT_EQ(first.Value("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"), 43.57);
  EXPECT_DOUBLE_EQ(*first.Value("dram__bytes.sum.per_second"), 84.19e9);
  EXPECT_EQ(first.Value("Memory Workload Analysis: Odd Figure"), 7.5);
  EXPECT_EQ(first.Value("Memory Workload Analysis: L2 Compression Ratio"), 0)
      << "behind the program's line";
  EXPECT_EQ(first.Value("launch__registers_per_thread"), 111);
  EXPECT_DOUBLE_EQ(*first.Value("launch__shared_mem_per_block_static"), 32770);
  EXPECT_EQ(first.texts.at("launch__func_cache_config"), "CachePreferNone");
  EXPECT_THAT(first.missing, Contains("lts__throughput.avg.pct_of_peak_sustained_elapsed"));
  EXPECT_FALSE(first.Value("lts__throughput.avg.pct_of_peak_sustained_elapsed").has_value());
  EXPECT_DOUBLE_EQ(profile.kernels[1].time_us, 1000);
  EXPECT_NEAR(profile.kernels[1].time_share, 1000 / 1005.92, 1e-12);
}

TEST(NcuText, Of2020HasNoTitlesAndADateForTheGrid) {
  const Profile profile = Parse(
      "[3] app@127.0.0.1\n"
      "  add(float const*, int), 2020-Jul-20 10:22:33, Context 1, Stream 7\n"
      "    Section: GPU Speed Of Light\n"
      "    -------------------- --------------- ------------------\n"
      "    Memory Frequency       cycle/nsecond               1.14\n"
      "    SOL FB                             %              41.49\n"
      "    Elapsed Cycles                 cycle              5,063\n"
      "    Duration                     usecond               4.67\n"
      "    -------------------- --------------- ------------------\n"
      "    WRN   This kernel grid is too small.\n"
      "    Section: Launch Statistics\n"
      "    -------------------- --------------- ------------------\n"
      "    Block Size                                          256\n"
      "    Grid Size                                         1,200\n"
      "    -------------------- --------------- ------------------\n");
  ASSERT_EQ(profile.kernels.size(), 1U);
  const KernelProfile& kernel = profile.kernels[0];
  EXPECT_EQ(kernel.name, "add");
  EXPECT_DOUBLE_EQ(kernel.time_us, 4.67);
  EXPECT_EQ(kernel.Value("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"), 41.49);
  EXPECT_DOUBLE_EQ(*kernel.Value("dram__cycles_elapsed.avg.per_second"), 1.14e9);
  EXPECT_EQ(kernel.grid[0], 1200U);
  EXPECT_EQ(kernel.block[0], 256U);
}

std::string Metrics(std::string_view rows) {
  return "  k(int) (1, 1, 1)x(32, 1, 1), Context 1, Stream 7, Device 0, CC 8.9\n"
         "    Section: Command line profiler metrics\n"
         "    ------------------ ----------- ------------\n"
         "    Metric Name        Metric Unit Metric Value\n"
         "    ------------------ ----------- ------------\n" +
         std::string(rows) + "    ------------------ ----------- ------------\n";
}

TEST(NcuText, TheSameMetricInOtherUnits) {
  const Profile profile = Parse(Metrics("    dram__bytes.sum          Mbyte         1.08\n"
                                        "    words that go across the columns 7\n"
                                        "    a__b.pct                     %      100.00\n") +
                                Metrics("    dram__bytes.sum          Gbyte        89.98\n"
                                        "    sm__x.sum                 inst          n/a\n"));
  ASSERT_EQ(profile.kernels.size(), 2U);
  EXPECT_DOUBLE_EQ(*profile.kernels[0].Value("dram__bytes.sum"), 1.08e6);
  EXPECT_EQ(profile.kernels[0].metrics.size(), 2U) << "the program's words are no row";
  EXPECT_DOUBLE_EQ(*profile.kernels[1].Value("dram__bytes.sum"), 89.98e9);
  EXPECT_EQ(profile.kernels[1].metrics.at("dram__bytes.sum").unit, "byte");
  EXPECT_THAT(profile.kernels[1].missing, Contains("sm__x.sum"));
}

TEST(NcuText, NumbersThatMayMeanTwoThingsAreRefused) {
  EXPECT_EQ(Parse(Metrics("    sm__x.sum                 inst       12,288\n"))
                .kernels[0]
                .Value("sm__x.sum"),
            12288)
      << "two decimals or none: a lone comma groups";
  const auto point =
      ParseNcuText(Metrics("    sm__x.sum                 inst       12.288\n"), "x");
  ASSERT_FALSE(point.ok());
  EXPECT_EQ(point.error().code, ErrorCode::kParse);
  EXPECT_THAT(point.error().message, HasSubstr("LC_ALL=C"));
  EXPECT_DOUBLE_EQ(*Parse(Metrics("    sm__x.sum                 inst       12.288\n"
                                  "    a__b.pct                     %        99,77\n"))
                        .kernels[0]
                        .Value("sm__x.sum"),
                   12288);
  EXPECT_FALSE(ParseNcuText(Metrics("    a__b.pct                     %        99,77\n"
                                    "    a__c.pct                     %        99.77\n"),
                            "x")
                   .ok());
}

TEST(NcuText, LogsWithoutAProfileSayWhy) {
  const auto report = ParseNcuText(
      "==PROF== Connected to process 1\n==PROF== Report: /home/x/gemm.ncu-rep\n", "ncu.log");
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(report.error().message, HasSubstr("gemm.ncu-rep"));
  EXPECT_THAT(report.error().message, HasSubstr("--import"));
  const auto permission = ParseNcuText("==ERROR== ERR_NVGPUCTRPERM - The user ...\n", "x");
  ASSERT_FALSE(permission.ok());
  EXPECT_EQ(permission.error().code, ErrorCode::kUnavailable);
  const auto failed = ParseNcuText("a\n==ERROR== The application returned 1\n", "x");
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, ErrorCode::kToolFailed);
  EXPECT_THAT(failed.error().message, HasSubstr("x:2"));
  EXPECT_FALSE(ParseNcuText("", "x").ok());
  EXPECT_FALSE(
      ParseNcuText("  k (1, 1, 1)x(1, 1, 1), Context 1, Stream 7, Device 0, CC 8.0\n", "x").ok())
      << "a heading alone is no profile";
}

TEST(NcuText, ErrorsBesideALaunchAreTold) {
  const Profile profile = Parse("==ERROR== Failed to profile \"k2\" in process 1\n" +
                                Metrics("    a__b.pct                     %         0.50\n"));
  EXPECT_EQ(profile.kernels.size(), 1U);
  EXPECT_THAT(profile.notes, Contains(HasSubstr("log.txt:1: ncu said: Failed to profile")));
}

TEST(NcuText, TheNoteSaysThatValuesAreRounded) {
  EXPECT_THAT(Parse(kOf2025).notes, Contains(HasSubstr("two decimals")));
  EXPECT_THAT(Parse(kOf2025).kernels[0].missing, Not(Contains("gpu__time_duration.sum")));
}

}  // namespace
}  // namespace kernelpro
