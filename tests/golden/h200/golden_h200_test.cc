// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "compile_suite.h"
#include "emulator/model/model.h"
#include "measurements.h"
#include "suite.h"

namespace kernelpro::golden {
namespace {

TEST(AssemblerLog, RegistersSharedMemoryAndSpills) {
  const std::map<std::string, model::KernelResources> all = ParseAssemblerLog(
      "ptxas info    : Compiling entry function 'a' for 'sm_90'\n"
      "ptxas info    : Function properties for a\n"
      "    24 bytes stack frame, 20 bytes spill stores, 16 bytes spill loads\n"
      "ptxas info    : Used 32 registers, used 1 barriers, 1296 bytes smem, 360 bytes cmem[0]\n"
      "ptxas info    : Compiling entry function 'b' for 'sm_90'\n"
      "ptxas info    : Used 17 registers, used 0 barriers\n");
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all.at("a").registers_per_thread, 32U);
  EXPECT_EQ(all.at("a").static_shared_bytes, 1296U);
  EXPECT_EQ(all.at("a").local_bytes_per_thread, 24U);
  EXPECT_EQ(all.at("a").spill_store_bytes, 20U);
  EXPECT_EQ(all.at("a").spill_load_bytes, 16U);
  EXPECT_EQ(all.at("b").registers_per_thread, 17U);
  EXPECT_EQ(all.at("b").static_shared_bytes, 0U);
}

/// The bars are below what the model reached when it was built (Spearman 0.986, all within 2x, 97 %
/// of the sector counts), so that they catch a broken counter and not a rounding. One kernel that
/// goes eight times wrong breaks the geometric factor.
TEST(GoldenH200, ModelledTimesRankLikeTheMeasuredOnes) {
  const std::filesystem::path folder = std::filesystem::path(KP_SOURCE_DIR) / "tests/data/h200";
  const Result<std::vector<Variant>> variants = ReadMeasurements(folder);
  ASSERT_TRUE(variants.ok()) << variants.error().message;
  ASSERT_EQ(variants->size(), 51U);
  const Result<CompiledSuite> suite = CompileSuite(folder / "suite.cu");
  ASSERT_TRUE(suite.ok()) << suite.error().message;
  const Result<model::GpuSpec> spec = model::LoadSpec("h200");
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  const Result<std::vector<Row>> rows = RunSuite(*suite, *variants, *spec);
  ASSERT_TRUE(rows.ok()) << rows.error().message;
  for (const Row& row : *rows) {
    fmt::print("{}\n", FormatRow(row));
  }
  const Accuracy accuracy = Judge(*rows);
  fmt::print(
      "Spearman {:.3f}, within 2x {:.1f} %, within 1.5x {:.1f} %, factor {:.2f}, MAPE {:.1f} %, "
      "median {:.1f} %, sectors right {} of {}\n",
      accuracy.spearman, accuracy.within_2x * 100, accuracy.within_1_5x * 100,
      accuracy.geometric_factor, accuracy.mape * 100, accuracy.median_error * 100,
      accuracy.sector_pairs_right, accuracy.sector_pairs);
  EXPECT_GE(accuracy.spearman, 0.95);
  EXPECT_GE(accuracy.within_2x, 0.90);
  EXPECT_GE(accuracy.sector_pairs_right, 0.95 * accuracy.sector_pairs);
  EXPECT_EQ(accuracy.sector_pairs, 91);
  EXPECT_LE(accuracy.geometric_factor, 1.18);
  for (const Row& row : *rows) {
    EXPECT_NEAR(row.load_wavefronts.Ratio(), 1, 0.10) << row.name;
    EXPECT_NEAR(row.store_wavefronts.Ratio(), 1, 0.10) << row.name;
  }
}

}  // namespace
}  // namespace kernelpro::golden
