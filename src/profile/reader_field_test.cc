// SPDX-License-Identifier: Apache-2.0
// Files that other people made, when the folder is at hand (they are not ours to distribute). What
// is expected was read from them by eye and by another program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <string>

#include "base/file.h"
#include "profile/file_kind.h"
#include "profile/ncu_file.h"
#include "profile/ncu_text.h"
#include "profile/nsys.h"
#include "profile/ptxas_log.h"

namespace kernelpro {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class ReaderField : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("KERNELPRO_FIELD_PROFILES");  // NOLINT(concurrency-mt-unsafe)
    if (folder == nullptr || !std::filesystem::exists(folder)) {
      GTEST_SKIP() << "skipped: KERNELPRO_FIELD_PROFILES names no folder of field samples";
    }
    folder_ = folder;
  }

  template <class Reader>
  Profile Read(Reader reader, const std::string& name) {
    auto profile = reader(folder_ / name);
    EXPECT_TRUE(profile.ok()) << (profile.ok() ? "" : profile.error().message);
    return profile.ok() ? *profile : Profile{};
  }

  Profile Ncu(const std::string& name) {
    return Read([](const auto& path) { return ReadNcu(path, {}, {}); }, name);
  }

  FileKind KindOf(const std::string& name) {
    const auto bytes = ReadFile(folder_ / name);
    EXPECT_TRUE(bytes.ok());
    return bytes.ok() ? SniffFile(*bytes, name) : FileKind::kEmpty;
  }

  std::filesystem::path folder_;
};

TEST_F(ReaderField, NcuTextOf2023) {
  const Profile p = Ncu("10_text_details_2023.txt");
  ASSERT_EQ(p.kernels.size(), 2U);
  EXPECT_EQ(p.device, "GPU of compute capability 8.9");
  const KernelProfile& first = p.kernels[0];
  EXPECT_THAT(first.name, HasSubstr("distribution_elementwise_grid_stride_kernel<float, (int)4"));
  EXPECT_GT(first.mangled.size(), 1300U);
  EXPECT_EQ(first.grid[0], 768U);
  EXPECT_EQ(first.block[0], 256U);
  EXPECT_DOUBLE_EQ(first.time_us, 5.92);
  EXPECT_EQ(first.Value("sm__cycles_elapsed.max"), 12717);
  EXPECT_EQ(first.Value("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"), 0);
  EXPECT_EQ(first.texts.at("launch__func_cache_config"), "CachePreferNone");
  const KernelProfile& square = p.kernels[1];
  EXPECT_EQ(square.name, "square_kernel_0d1d234");
  EXPECT_DOUBLE_EQ(square.time_us, 11.55);
  EXPECT_EQ(square.grid[0], 1823U);
  EXPECT_EQ(square.block[0], 128U);
  EXPECT_EQ(square.Value("launch__grid_size"), 1823);
  EXPECT_EQ(square.Value("launch__registers_per_thread"), 20);
  EXPECT_EQ(square.Value("sm__warps_active.avg.pct_of_peak_sustained_active"), 73.20);
}

TEST_F(ReaderField, NcuTextOfSm120) {
  const Profile p = Ncu("13_text_sm120.txt");
  ASSERT_EQ(p.kernels.size(), 1U);
  const KernelProfile& k = p.kernels[0];
  EXPECT_EQ(k.name, "unnamed>::gemm_mma_opt_kernel");
  EXPECT_EQ(k.grid[0], 32U);
  EXPECT_EQ(k.grid[1], 32U);
  EXPECT_DOUBLE_EQ(k.time_us, 2950);
  EXPECT_EQ(k.Value("sm__cycles_elapsed.max"), 6798128);
  EXPECT_EQ(k.Value("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"), 30.22);
  EXPECT_DOUBLE_EQ(*k.Value("dram__bytes.sum.per_second"), 84.19e9);
  EXPECT_EQ(k.Value("launch__registers_per_thread"), 111);
  EXPECT_EQ(k.Value("sm__maximum_warps_per_active_cycle_pct"), 33.33);
  EXPECT_EQ(k.Value("sm__warps_active.avg.pct_of_peak_sustained_active"), 32.78);
  EXPECT_EQ(k.Value("lts__t_sector_hit_rate.pct"), 92.17);
}

TEST_F(ReaderField, NcuTextWithCommandLineMetrics) {
  const Profile p = Ncu("14_text_cmdline_metrics_windows.txt");
  ASSERT_EQ(p.kernels.size(), 18U);
  constexpr auto kBytes = "l1tex__t_bytes_pipe_lsu_mem_global_op_ld.sum";
  EXPECT_EQ(p.kernels[0].name, "kernel_phase1_global");
  EXPECT_DOUBLE_EQ(*p.kernels[0].Value(kBytes), 1.08e6);
  EXPECT_DOUBLE_EQ(*p.kernels[1].Value(kBytes), 363.36e3);
  EXPECT_DOUBLE_EQ(*p.kernels[2].Value(kBytes), 89.98e9);
  EXPECT_EQ(p.kernels[2].grid[0], 2097152U);
  EXPECT_DOUBLE_EQ(*p.kernels[17].Value(kBytes), 16.14e9);
  for (const KernelProfile& kernel : p.kernels) {
    EXPECT_EQ(kernel.metrics.size(), 4U);
    EXPECT_EQ(kernel.metrics.at(kBytes).unit, "byte");
  }
}

TEST_F(ReaderField, NcuLogsWithoutAProfile) {
  for (const auto& [name, code, words] :
       {std::tuple{"16_text_make_and_app_noise_a100.txt", ErrorCode::kNotFound,
                   "profileSUSYNODE.out.ncu-rep"},
        {"17_log_only_prof_lines.txt", ErrorCode::kNotFound, "ncu_analysis.ncu-rep"},
        {"18_err_nvgpuctrperm.txt", ErrorCode::kUnavailable,
         "NVreg_RestrictProfilingToAdminUsers"}}) {
    for (const auto& profile : {ReadNcu(folder_ / name, {}, {}), ReadNcuText(folder_ / name)}) {
      ASSERT_FALSE(profile.ok()) << name;
      EXPECT_EQ(profile.error().code, code) << name;
      EXPECT_THAT(profile.error().message, HasSubstr(words));
    }
  }
}

TEST_F(ReaderField, NcuFileReadsTheCsvSamplesToo) {
  EXPECT_EQ(Ncu("01_long_base_units_rtx40_9kernels.csv").kernels.size(), 9U);
  EXPECT_EQ(Ncu("05_details_rules_a100.csv").kernels.size(), 6U);
  EXPECT_EQ(Ncu("07_raw_wide_units_row_b200.csv").kernels.size(), 16U);
}

TEST_F(ReaderField, NsysStatsOf2023) {
  const Profile p = Read(ReadNsys, "21_nsys_stats_2023_kern_sum.txt");
  ASSERT_EQ(p.kernels.size(), 1U);
  EXPECT_EQ(p.kernels[0].name, "nussinov_gpu");
  EXPECT_EQ(p.kernels[0].Value("gpu__time_duration.sum"), 119221222);
  EXPECT_EQ(p.kernels[0].Value("timeline.instances"), 1);
  EXPECT_EQ(p.system.at("timeline.copies").value, 5);
  EXPECT_DOUBLE_EQ(p.system.at("timeline.copy_bytes").value, 12.658e6);
  EXPECT_EQ(p.system.at("timeline.allocations").value, 10) << "cudaMalloc 5, cudaFree 5";
  EXPECT_EQ(p.system.at("timeline.syncs").value, 1);
}

TEST_F(ReaderField, NsysStatsOf2024WithSkippedReports) {
  const Profile p = Read(ReadNsys, "22_nsys_stats_2024_skipped.txt");
  ASSERT_EQ(p.kernels.size(), 23U);
  EXPECT_EQ(p.kernels[0].name, "ampere_sgemm_128x64_tn");
  EXPECT_EQ(p.kernels[0].Value("gpu__time_duration.sum"), 2991054425);
  EXPECT_EQ(p.kernels[0].Value("timeline.instances"), 900);
  EXPECT_EQ(p.kernels[0].Value("timeline.kernel_median_ns"), 1448436);
  EXPECT_EQ(p.kernels[0].Value("timeline.kernel_max_ns"), 7121681);
  EXPECT_NEAR(p.kernels[0].time_share, 0.883, 0.0005) << "nsys prints 88.3 %";
  EXPECT_EQ(p.system.at("timeline.syncs").value, 3 + 292);
  EXPECT_THAT(p.notes, Contains(HasSubstr("cut long kernel names")));
}

TEST_F(ReaderField, NsysStatsWithSeparators) {
  const Profile p = Read(ReadNsys, "32_nsys_output_progress_spam.txt");
  ASSERT_EQ(p.kernels.size(), 13U);
  EXPECT_THAT(p.kernels[0].name, HasSubstr("cudnn::bn_fw_inf_1C11_kernel_NCHW"));
  EXPECT_EQ(p.kernels[0].Value("gpu__time_duration.sum"), 36917512);
  EXPECT_EQ(p.kernels[0].Value("timeline.instances"), 424);
  EXPECT_EQ(p.kernels[12].Value("timeline.instances"), 8);
}

TEST_F(ReaderField, PtxasWithDeviceFunctions) {
  const Profile p = Read(ReadPtxasLog, "23_ptxas_sm89.txt");
  ASSERT_EQ(p.kernels.size(), 17U);
  const KernelProfile& first = p.kernels[0];
  EXPECT_EQ(first.mangled, "nvkernel__Z35openmp_target_parallel_for_collapsePKdPdiiddb_F1L160_9");
  EXPECT_EQ(first.Value("ptxas.registers"), 38);
  EXPECT_EQ(first.Value("ptxas.barriers"), 1);
  EXPECT_EQ(first.Value("ptxas.stack_bytes"), 112);
  EXPECT_EQ(first.texts.at("build.arch"), "sm_89");
  EXPECT_EQ(p.system.at("build.arch").value, 89);
  for (const KernelProfile& kernel : p.kernels) {
    EXPECT_EQ(kernel.Value("ptxas.spill_store_bytes"), 0) << kernel.mangled;
  }
  EXPECT_THAT(p.notes, Contains(HasSubstr("3 device function(s)")));
}

TEST_F(ReaderField, PtxasOfNvfuser) {
  const Profile p = Read(ReadPtxasLog, "29_nvfuser_log_with_ptxas.txt");
  ASSERT_EQ(p.kernels.size(), 1U);
  EXPECT_EQ(p.kernels[0].name, "CudaCodeGen::kernel1");
  EXPECT_EQ(p.kernels[0].Value("ptxas.registers"), 32);
  EXPECT_EQ(p.kernels[0].Value("ptxas.shared_bytes"), 16);
  EXPECT_EQ(p.kernels[0].Value("ptxas.spill_store_bytes"), 0);
  EXPECT_EQ(p.kernels[0].texts.at("build.arch"), "sm_80");
}

TEST_F(ReaderField, ResourceUsage) {
  const Profile p = Read(ReadPtxasLog, "35_cuobjdump_res_usage_sm70.txt");
  ASSERT_EQ(p.kernels.size(), 1U);
  EXPECT_EQ(p.kernels[0].name, "sample");
  EXPECT_EQ(p.kernels[0].Value("ptxas.registers"), 26);
  EXPECT_EQ(p.kernels[0].Value("ptxas.stack_bytes"), 0);
}

TEST_F(ReaderField, FilesOfOtherKindsAreNamed) {
  EXPECT_EQ(KindOf("37_compute_sanitizer_clean.txt"), FileKind::kSanitizerLog);
  EXPECT_EQ(KindOf("25_cuobjdump_sass_sm86.txt"), FileKind::kDisassembly);
  EXPECT_EQ(KindOf("26_sass_sm70.txt"), FileKind::kDisassembly);
  EXPECT_EQ(KindOf("28_sass_v100_hmma.txt"), FileKind::kDisassembly);
  EXPECT_EQ(KindOf("30_turingas_style.sass"), FileKind::kText);
  EXPECT_EQ(KindOf("35_cuobjdump_res_usage_sm70.txt"), FileKind::kResourceUse);
  EXPECT_EQ(KindOf("23_ptxas_sm89.txt"), FileKind::kPtxasLog);
  const auto sanitizer = ReadNcu(folder_ / "37_compute_sanitizer_clean.txt", {}, {});
  ASSERT_FALSE(sanitizer.ok());
  EXPECT_THAT(sanitizer.error().message, HasSubstr("this is a compute-sanitizer log"));
}

TEST_F(ReaderField, EveryReaderStandsEveryFile) {
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    if (!entry.is_regular_file()) {
      continue;
    }
    for (const auto& profile : {ReadNcu(entry.path(), {}, {}), ReadNcuText(entry.path()),
                                ReadNsys(entry.path()), ReadPtxasLog(entry.path())}) {
      if (!profile.ok()) {
        EXPECT_THAT(profile.error().message, HasSubstr(entry.path().filename().string()));
      }
    }
  }
}

}  // namespace
}  // namespace kernelpro
