// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <string_view>

#include "base/file.h"
#include "profile/nsys.h"
#include "profile/nsys_table.h"

namespace kernelpro {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

Profile Parse(std::string_view text) {
  auto profile = ParseNsysStats(text, "stats.txt");
  EXPECT_TRUE(profile.ok()) << (profile.ok() ? "" : profile.error().message);
  return profile.ok() ? *profile : Profile{};
}

constexpr std::string_view kStats = R"(1/8] [====20%     ] r.nsys-rep[1/8] [====100%] r.nsys-rep
[3/8] Executing 'nvtx_sum' stats report

 Time (%)  Total Time (ns)  Instances    Avg (ns)    Style      Range
 --------  ---------------  ---------  ------------  -------  ---------
    100.0      101,592,786          1  101592786.0  PushPop  :forward

[4/8] Executing 'osrt_sum' stats report

 Time (%)  Total Time (ns)  Num Calls     Name
 --------  ---------------  ---------  ------------
     92.0    3,041,609,958        153  poll
      8.0          609,958          3  cuserid

[5/8] Executing 'cuda_api_sum' stats report

 Time (%)  Total Time (ns)  Num Calls               Name
 --------  ---------------  ---------  ------------------------------
     44.5      131,534,650      1,369  cudaLaunchKernel
     24.1       71,160,609          6  cudaDeviceSynchronize
      1.9        5,699,797        320  cudaStreamSynchronize_v3020
      1.3        3,878,417         25  cudaMalloc
      1.3        3,878,417          7  cudaGraphLaunch_v10000

[6/8] Executing 'cuda_gpu_kern_sum' stats report

 Time (%)  Total Time (ns)  Instances  Avg (ns)   Med (ns)   Min (ns)  Max (ns)  StdDev (ns)          Name
 --------  ---------------  ---------  ---------  ---------  --------  --------  -----------  -------------------
     75.0        3,000,000          4  750,000.0  740,000.0   700,000   800,000     10,000.0  void ns::f<float, (bool)1>(T1, T2)
killed a straggler
     25.0        1,000,000        100   10,000.0   10,000.0    10,000    10,000          0.0  ampere_sgemm_128x64_tn_with_a_name_that_is_too_lo…

[7/8] Executing 'cuda_gpu_mem_time_sum' stats report

 Time (%)  Total Time (ns)  Count  Avg (ns)           Operation
 --------  ---------------  -----  --------  ----------------------------
     99.9       20,538,311    320  64,182.2  [CUDA memcpy Host-to-Device]
      0.1           12,064      9   1,340.4  [CUDA memset]

[8/8] Executing 'cuda_gpu_mem_size_sum' stats report

 Total (MB)  Count  Avg (MB)           Operation
 ----------  -----  --------  ----------------------------
    102.441    320     0.320  [CUDA memcpy Host-to-Device]
      0.023      9     0.003  [CUDA memset]

Generated:
)";

TEST(NsysStats, TextOfNewNames) {
  const Profile profile = Parse(kStats);
  ASSERT_EQ(profile.kernels.size(), 2U) << "neither ranges nor the program's words are kernels";
  const KernelProfile& f = profile.kernels[0];
  EXPECT_EQ(f.name, "ns::f<float, (bool)1>");
  EXPECT_DOUBLE_EQ(f.time_us, 3000);
  EXPECT_EQ(f.time_provenance, Provenance::kMeasured);
  EXPECT_DOUBLE_EQ(f.time_share, 0.75);
  EXPECT_EQ(f.Value("timeline.instances"), 4);
  EXPECT_EQ(f.Value("timeline.kernel_average_ns"), 750000);
  EXPECT_EQ(f.Value("timeline.kernel_median_ns"), 740000);
  EXPECT_EQ(f.Value("timeline.kernel_min_ns"), 700000);
  EXPECT_EQ(f.Value("timeline.kernel_max_ns"), 800000);
  EXPECT_EQ(f.metrics.at("timeline.kernel_max_ns").unit, "ns");
  EXPECT_TRUE(profile.timeline.empty());
  EXPECT_EQ(profile.system.at("timeline.kernels").value, 104);
  EXPECT_EQ(profile.system.at("timeline.syncs").value, 326);
  EXPECT_EQ(profile.system.at("timeline.allocations").value, 25);
  EXPECT_EQ(profile.system.at("timeline.graph_launches").value, 7);
  EXPECT_EQ(profile.system.at("timeline.copies").value, 320) << "a memset is no copy";
  EXPECT_DOUBLE_EQ(profile.system.at("timeline.copy_bytes").value, 102.441e6);
  EXPECT_THAT(profile.notes, Contains(HasSubstr("cut long kernel names")));
}

TEST(NsysStats, OldNamesAndOtherUnits) {
  const Profile profile = Parse(
      "Running [/opt/nvidia/nsight-systems/2021.3.2/host-linux-x64/reports/gpukernsum.py "
      "r.sqlite]... \n"
      "\n"
      " Time(%)  Total Time (us)  Instances  Average  Minimum  Maximum  StdDev  Name\n"
      " -------  ---------------  ---------  -------  -------  -------  ------  ----\n"
      "   100.0             12.5          2      6.2      6.0      6.5     0.1  add(int*)\n");
  ASSERT_EQ(profile.kernels.size(), 1U);
  EXPECT_DOUBLE_EQ(profile.kernels[0].time_us, 12.5);
  EXPECT_EQ(profile.kernels[0].Value("timeline.instances"), 2);
}

TEST(NsysStats, Of2020) {
  const Profile profile = Parse(
      "Generating CUDA Kernel Statistics...\nCUDA Kernel Statistics (nanoseconds)\n\n"
      "Time(%)      Total Time   Instances         Average  Name\n"
      "-------  --------------  ----------  --------------  --------------\n"
      "  100.0       160407572           2      80203786.0  add(float*)\n\n"
      "CUDA Memory Operation Statistics (nanoseconds)\n\n"
      "Time(%)      Total Time  Operations  Name\n"
      "-------  --------------  ----------  ------------------\n"
      "   70.0          706572           3  [CUDA memcpy HtoD]\n\n"
      "CUDA Memory Operation Statistics (KiB)\n\n"
      "              Total      Operations  Name\n"
      "-------------------  --------------  ------------------\n"
      "           1024.000               3  [CUDA memcpy HtoD]\n");
  ASSERT_EQ(profile.kernels.size(), 1U);
  EXPECT_EQ(profile.kernels[0].Value("gpu__time_duration.sum"), 160407572);
  EXPECT_EQ(profile.kernels[0].Value("timeline.kernel_average_ns"), 80203786);
  EXPECT_EQ(profile.system.at("timeline.copies").value, 3);
  EXPECT_FALSE(profile.system.contains("timeline.copy_bytes")) << "the column has no unit";
}

TEST(NsysStats, TraceOfCallsWithoutThreadNames) {
  const Profile profile = Parse(
      " Start (ns)  Duration (ns)  CorrId  GrdX  GrdY  GrdZ  BlkX  BlkY  BlkZ  Strm  Name\n"
      " ----------  -------------  ------  ----  ----  ----  ----  ----  ----  ----  ------\n"
      "      1,000            500      17    64     1     1   128     1     1     7  f(int)\n"
      "\n"
      " Start (ns)  Duration (ns)  Name              Result  CorrID  Thread Name\n"
      " ----------  -------------  ----------------  ------  ------  -----------\n"
      "        900             60  cudaLaunchKernel       0      17             \n");
  ASSERT_EQ(profile.timeline.size(), 2U);
  EXPECT_EQ(profile.timeline[0].kind, TimelineEvent::Kind::kLaunch);
  EXPECT_EQ(profile.timeline[1].start_ns, 1000);
  ASSERT_EQ(profile.kernels.size(), 1U);
  EXPECT_EQ(profile.kernels[0].block[0], 128U);
}

TEST(NsysStats, SummaryByShapeIsNotCountedTwice) {
  const std::string by_shape =
      "\n"
      "Time (%),Total Time (ns),Instances,GridXYZ,BlockXYZ,Name\n"
      "60.0,600,1,\"  16    2    1\",\" 256    1    1\",\"f(int, int)\"\n"
      "40.0,400,1,\"   8    1    1\",\" 256    1    1\",\"f(int, int)\"\n";
  const std::string summary =
      "Time (%),Total Time (ns),Instances,Name\n100.0,1000,2,\"f(int, int)\"\n";
  const Profile alone = Parse(by_shape);
  ASSERT_EQ(alone.kernels.size(), 2U);
  EXPECT_EQ(alone.kernels[0].grid[0], 16U);
  EXPECT_EQ(alone.kernels[0].grid[1], 2U);
  EXPECT_EQ(alone.kernels[0].block[0], 256U);
  const Profile both = Parse(summary + by_shape);
  ASSERT_EQ(both.kernels.size(), 1U);
  EXPECT_DOUBLE_EQ(both.kernels[0].time_us, 1);
  EXPECT_EQ(both.kernels[0].name, "f");
}

TEST(NsysStats, TraceGivesLaunchesAndTimeline) {
  const Profile profile = Parse(
      "noise, with, commas\n"
      "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem "
      "(MB),Bytes (MB),Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name\n"
      "2000,500,17,64,2,1,128,1,1,32,0.000,0.000,,,,,NVIDIA H200 (0),1,,7,\"void f<a, b>(int)\"\n"
      "1000,300,16,,,,,,,,,,1.049,3495.2,Pageable,Device,NVIDIA H200 (0),1,,7,[CUDA memcpy "
      "Host-to-Device]\n"
      "2600,100,18,,,,,,,,,,4.000,1.0,Device,,NVIDIA H200 (0),1,,7,[CUDA memset]\n"
      "\n"
      "Start (ns),Duration (ns),Name,Result,CorrID,Pid,Tid\n"
      "900,60,cudaMemcpyAsync_v3020,0,16,5,5\n"
      "1900,20,cudaLaunchKernel_v7000,0,17,5,5\n");
  ASSERT_EQ(profile.kernels.size(), 1U);
  const KernelProfile& kernel = profile.kernels[0];
  EXPECT_EQ(kernel.name, "f<a, b>");
  EXPECT_EQ(kernel.grid[0], 64U);
  EXPECT_EQ(kernel.grid[1], 2U);
  EXPECT_EQ(kernel.block[0], 128U);
  EXPECT_EQ(kernel.Value("launch__registers_per_thread"), 32);
  EXPECT_EQ(kernel.Value("gpu__time_duration.sum"), 500);
  EXPECT_EQ(profile.device, "NVIDIA H200 (0)");
  ASSERT_EQ(profile.timeline.size(), 5U);
  EXPECT_EQ(profile.timeline[0].kind, TimelineEvent::Kind::kApi);
  EXPECT_EQ(profile.timeline[0].name, "cudaMemcpyAsync");
  EXPECT_EQ(profile.timeline[1].kind, TimelineEvent::Kind::kCopy);
  EXPECT_EQ(profile.timeline[1].name, "HtoD pageable");
  EXPECT_TRUE(profile.timeline[1].pageable);
  EXPECT_EQ(profile.timeline[1].bytes, 1049000U);
  EXPECT_EQ(profile.timeline[1].start_ns, 1000);
  EXPECT_EQ(profile.timeline[1].end_ns, 1300);
  EXPECT_EQ(profile.timeline[2].kind, TimelineEvent::Kind::kLaunch);
  EXPECT_EQ(profile.timeline[2].correlation, 17U);
  EXPECT_EQ(profile.timeline[3].kind, TimelineEvent::Kind::kKernel);
  EXPECT_EQ(profile.timeline[3].stream, 7U);
  EXPECT_EQ(profile.timeline[4].kind, TimelineEvent::Kind::kSet);
}

TEST(NsysStats, InvertedLocaleAndMixedNumbers) {
  EXPECT_DOUBLE_EQ(Parse("Time (%);x\n\n"
                         " Time (%)  Total Time (ns)  Instances  Name\n"
                         " --------  ---------------  ---------  ----\n"
                         "     75,0        3.000.000          4  f\n"
                         "     25,0        1.000.000          4  g\n")
                       .kernels.at(0)
                       .time_us,
                   3000);
  const auto mixed = ParseNsysStats(
      " Time (%)  Total Time (ns)  Instances  Name\n"
      " --------  ---------------  ---------  ----\n"
      "     75,0        3.000.000          4  f\n"
      "     25.0        1,000,000          4  g\n",
      "x");
  ASSERT_FALSE(mixed.ok());
  EXPECT_EQ(mixed.error().code, ErrorCode::kParse);
}

TEST(NsysStats, ThreeDecimalsBesideLongNumbers) {
  const std::string titles = "Start (ns),Duration (ns),GrdX,Bytes (MB),Name\n";
  const Profile profile =
      Parse(titles + "123456,500,1,,f\n234567,500,,1.049,[CUDA memcpy Host-to-Device]\n");
  ASSERT_EQ(profile.timeline.size(), 2U);
  EXPECT_EQ(profile.timeline[1].bytes, 1049000U);
  EXPECT_FALSE(ParseNsysStats(titles + "1,500,1,,f\n2,500,,1.049,[CUDA memcpy HtoD]\n", "x").ok())
      << "one or a thousand?";
}

TEST(NsysStats, NoKernelsSaysWhy) {
  const auto skipped =
      ParseNsysStats("SKIPPED: r.sqlite does not contain CUDA kernel data.\n", "x");
  ASSERT_FALSE(skipped.ok());
  EXPECT_EQ(skipped.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(skipped.error().message, HasSubstr("does not contain CUDA kernel data"));
  const auto nothing = ParseNsysStats("", "x");
  ASSERT_FALSE(nothing.ok());
  EXPECT_THAT(nothing.error().message, HasSubstr("nsys stats --report"));
  EXPECT_FALSE(ParseNsysStats("[3/8] Executing 'mpi_event_sum' stats report\n\n"
                              " Time (%)  Total Time (ns)  Instances  Name\n"
                              " --------  ---------------  ---------  --------\n"
                              "    100.0              500          4  MPI_Wait\n",
                              "x")
                   .ok())
      << "another report with the same columns";
}

TEST(NsysFile, OtherFilesAreNamed) {
  auto folder = TemporaryFolder::Create("kp-nsys");
  ASSERT_TRUE(folder.ok());
  const auto told = [&](const std::string& name, std::string_view bytes) {
    std::ofstream(folder->path() / name, std::ios::binary) << bytes;
    return ReadNsys(folder->path() / name);
  };
  EXPECT_TRUE(told("a.txt", kStats).ok());
  const auto report = told("a.nsys-rep", std::string_view("\1\0", 2));
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(report.error().message, HasSubstr("nsys export --type sqlite"));
  const auto sanitizer = told("b.txt", "========= COMPUTE-SANITIZER\n");
  ASSERT_FALSE(sanitizer.ok());
  EXPECT_THAT(sanitizer.error().message, HasSubstr("compute-sanitizer log"));
  EXPECT_EQ(told("c.txt", "").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(ReadNsys(folder->path() / "absent").error().code, ErrorCode::kNotFound);
}

TEST(NsysTables, LinesOfOtherProgramsAreNoRows) {
  const auto tables = FindNsysTables(
      " Time (%)  Total Time (ns)  Instances  Name\n"
      " --------  ---------------  ---------  ----\n"
      "a sentence that goes over the columns\n"
      "\n"
      "    100.0              500          4  late\n");
  ASSERT_EQ(tables.size(), 1U);
  EXPECT_TRUE(tables[0].rows.empty());
  EXPECT_EQ(tables[0].line, 1U);
}

}  // namespace
}  // namespace kernelpro
