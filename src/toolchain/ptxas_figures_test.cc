// SPDX-License-Identifier: Apache-2.0
#include "toolchain/ptxas_figures.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace kernelpro {
namespace {

constexpr std::string_view kLog = R"(ptxas info    : 24 bytes gmem
[3/7] ninja: building k.cu.o
ptxas info    : Compiling entry function '_Z2k3Pdi' for 'sm_90'
ptxas info    : Function properties for _Z2k3Pdi
    2840 bytes stack frame, 5304 bytes spill stores, 6512 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 2856 bytes cumulative stack size, 4096 bytes smem, 400 bytes cmem[0], 8 bytes cmem[2]
ptxas info    : Compile time = 94.694 ms
ptxas info    : Function properties for _Z3bigPfi
    16 bytes stack frame, 12 bytes spill stores, 20 bytes spill loads
ptxas info    : Compiling entry function '_Z2k2Pfi' for 'sm_90'
ptxas info    : Function properties for _Z2k2Pfi
ptxas         .     256 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 40 registers, used 0 barriers
)";

TEST(PtxasFigures, BelongToTheKernelNamedAbove) {
  const auto kernels = ParsePtxasFigures(kLog);
  ASSERT_EQ(kernels.size(), 2U) << "a device function is no kernel";
  const KernelFigures& k3 = kernels.at("_Z2k3Pdi");
  EXPECT_EQ(k3.registers, 32U);
  EXPECT_EQ(k3.barriers, 1U);
  EXPECT_EQ(k3.stack_bytes, 2856U) << "with what it calls";
  EXPECT_EQ(k3.spill_store_bytes, 5304U);
  EXPECT_EQ(k3.spill_load_bytes, 6512U) << "not those of the function after it";
  EXPECT_EQ(k3.shared_bytes, 4096U);
  EXPECT_EQ(k3.constant_bytes, 408U);
  const KernelFigures& k2 = kernels.at("_Z2k2Pfi");
  EXPECT_EQ(k2.registers, 40U);
  EXPECT_EQ(k2.stack_bytes, 256U);
  EXPECT_EQ(k2.spill_store_bytes, 0U);
  EXPECT_EQ(k2.shared_bytes, 0U);
}

TEST(PtxasFigures, OldFormWithSums) {
  const auto kernels = ParsePtxasFigures(
      "ptxas info    : Compiling entry function 'k' for 'sm_20'\n"
      "ptxas info    : Used 22 registers, 16+8 bytes smem, 120 bytes cmem[0]\n");
  EXPECT_EQ(kernels.at("k").shared_bytes, 24U);
  EXPECT_EQ(kernels.at("k").registers, 22U);
}

TEST(PtxasFigures, NothingIsMadeUp) {
  EXPECT_TRUE(ParsePtxasFigures("").empty());
  EXPECT_TRUE(ParsePtxasFigures("ptxas info    : Used 22 registers\n").empty())
      << "of which kernel?";
  EXPECT_TRUE(ParsePtxasFigures("    8 bytes stack frame, 1 bytes spill stores\n").empty());
  const auto kernels = ParsePtxasFigures(
      "Compiling entry function 'k' for 'sm_90'\nptxas info : Used many registers, -3 barriers\n");
  EXPECT_EQ(kernels.at("k").registers, 0U);
}

TEST(PtxasFigures, RoundTripWithNoise) {
  EXPECT_TRUE(rc::check("kernels printed as ptxas does", [] {
    const int count = *rc::gen::inRange(0, 8);
    std::string log;
    std::vector<std::uint32_t> registers;
    std::vector<std::uint64_t> spills;
    for (int i = 0; i < count; ++i) {
      registers.push_back(static_cast<std::uint32_t>(*rc::gen::inRange(1, 256)));
      spills.push_back(static_cast<std::uint64_t>(*rc::gen::inRange(0, 10'000)));
      log += fmt::format("ptxas info    : Compiling entry function 'k{}' for 'sm_90'\n", i);
      if (*rc::gen::arbitrary<bool>()) {
        log += "warning: something else\n";
      }
      log += fmt::format(
          "ptxas info    : Function properties for k{}\n"
          "    0 bytes stack frame, {} bytes spill stores, 0 bytes spill loads\n"
          "ptxas info    : Used {} registers, used 0 barriers\n",
          i, spills.back(), registers.back());
    }
    const auto kernels = ParsePtxasFigures(log);
    RC_ASSERT(kernels.size() == registers.size());
    for (std::size_t i = 0; i < registers.size(); ++i) {
      RC_ASSERT(kernels.at(fmt::format("k{}", i)).registers == registers[i]);
      RC_ASSERT(kernels.at(fmt::format("k{}", i)).spill_store_bytes == spills[i]);
    }
  }));
}

/// A log that other people's compilers printed; given by the environment, never in the repository.
std::string FieldSample(std::string_view name) {
  const char* folder = std::getenv("KP_FIELD_SAMPLES");  // NOLINT(concurrency-mt-unsafe)
  if (folder == nullptr) {
    return {};
  }
  const auto text = ReadFile(std::filesystem::path(folder) / name);
  return text.ok() ? *text : std::string();
}

TEST(PtxasFigures, FieldSampleWithDeviceFunctions) {
  const std::string log = FieldSample("23_ptxas_sm89.txt");
  if (log.empty()) {
    GTEST_SKIP() << "set KP_FIELD_SAMPLES to the folder that holds 23_ptxas_sm89.txt";
  }
  const auto kernels = ParsePtxasFigures(log);
  EXPECT_EQ(kernels.size(), 17U);
  const KernelFigures& first =
      kernels.at("nvkernel__Z35openmp_target_parallel_for_collapsePKdPdiiddb_F1L160_9");
  EXPECT_EQ(first.registers, 38U);
  EXPECT_EQ(first.barriers, 1U);
  EXPECT_EQ(first.stack_bytes, 112U);
  EXPECT_EQ(first.constant_bytes, 448U) << "416 and 32";
  std::uint64_t spills = 0;
  for (const auto& [name, figures] : kernels) {
    spills += figures.spill_store_bytes;
  }
  EXPECT_EQ(spills, 0U) << "all spills of that log belong to device functions";
}

TEST(PtxasFigures, FieldSampleWithDots) {
  const std::string log = FieldSample("29_nvfuser_log_with_ptxas.txt");
  if (log.empty()) {
    GTEST_SKIP() << "set KP_FIELD_SAMPLES to the folder that holds 29_nvfuser_log_with_ptxas.txt";
  }
  const auto kernels = ParsePtxasFigures(log);
  const KernelFigures& figures = kernels.at("_ZN11CudaCodeGen7kernel1ENS_6TensorIfLi3EEES1_S1_");
  EXPECT_EQ(figures.registers, 32U);
  EXPECT_EQ(figures.shared_bytes, 16U);
  EXPECT_EQ(figures.constant_bytes, 456U);
}

}  // namespace
}  // namespace kernelpro
