// SPDX-License-Identifier: Apache-2.0
#include "emulator/model/cubin.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "base/rng.h"

namespace kernelpro::model {
namespace {

/// The cubin of `source`, through nvcc.
std::string Compile(std::string_view source, std::string_view arch = "sm_90") {
  Result<TemporaryFolder> folder = TemporaryFolder::Create("kp-cubin");
  EXPECT_TRUE(folder.ok());
  const auto in = folder->path() / "k.cu";
  const auto out = folder->path() / "k.cubin";
  EXPECT_TRUE(WriteFileAtomically(in, source).ok());
  const std::string command =
      fmt::format("nvcc -cubin -arch={} -o '{}' '{}'", arch, out.string(), in.string());
  EXPECT_EQ(std::system(command.c_str()), 0);  // NOLINT(concurrency-mt-unsafe)
  Result<std::string> bytes = ReadFile(out);
  EXPECT_TRUE(bytes.ok());
  return bytes.ok() ? *bytes : std::string();
}

constexpr std::string_view kTwoKernels = R"(
extern "C" __global__ void polynomial(float* x, float a, float b) {
  float v = x[threadIdx.x];
  v = fmaf(v, a, b); v = fmaf(v, a, b); v = fmaf(v, a, b); v = fmaf(v, a, b); v = fmaf(v, a, b);
  x[threadIdx.x] = v;
}
extern "C" __global__ void half_way(float* x) {
  __shared__ float tile[256];
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = tile[255 - threadIdx.x] * 0.1;  // 0.1 is a double
}
)";

const SassHistogram& Find(const std::vector<SassHistogram>& all, std::string_view kernel) {
  const auto found = std::ranges::find(all, kernel, &SassHistogram::kernel);
  EXPECT_NE(found, all.end());
  return *found;
}

TEST(Cubin, CountsWhatTheAssemblerEmitted) {
  const Result<std::vector<SassHistogram>> all = ReadCubin(Compile(kTwoKernels));
  ASSERT_TRUE(all.ok()) << all.error().message;
  ASSERT_EQ(all->size(), 2U);
  const SassHistogram& fma = Find(*all, "polynomial");
  EXPECT_EQ(fma.Count("FFMA"), 5U);
  EXPECT_EQ(fma.Count("LDG"), 1U);
  EXPECT_EQ(fma.Count("STG"), 1U);
  EXPECT_EQ(fma.Count("DMUL"), 0U);
  EXPECT_EQ(fma.Count("EXIT"), 1U);
  EXPECT_EQ(fma.Count("NOP"), 0U) << "padding is no code";
}

TEST(Cubin, ShowsAnAccidentalDouble) {
  const Result<std::vector<SassHistogram>> all = ReadCubin(Compile(kTwoKernels));
  ASSERT_TRUE(all.ok());
  const SassHistogram& half = Find(*all, "half_way");
  EXPECT_EQ(half.Count("DMUL"), 1U);
  EXPECT_EQ(half.Count("F2F"), 2U) << "float to double and back";
  EXPECT_EQ(half.Count("LDS"), 1U);
  EXPECT_EQ(half.Count("STS"), 1U);
  EXPECT_EQ(half.Count("BAR"), 1U);
}

TEST(Cubin, TotalIsTheSumOfTheHistogram) {
  const Result<std::vector<SassHistogram>> all = ReadCubin(Compile(kTwoKernels, "sm_80"));
  ASSERT_TRUE(all.ok());
  for (const SassHistogram& kernel : *all) {
    std::uint64_t sum = 0;
    for (const auto& [id, count] : kernel.by_id) {
      sum += count;
    }
    EXPECT_EQ(sum, kernel.instructions);
    EXPECT_GT(sum, 0U);
  }
}

TEST(Cubin, NamesIgnoreTheOperandForm) {
  for (const std::uint16_t id : std::initializer_list<std::uint16_t>{0x223, 0x423, 0x823, 0xc23}) {
    EXPECT_EQ(SassName(id), "FFMA");
  }
  EXPECT_EQ(SassName(0x984), "LDS");
  EXPECT_EQ(SassName(0x945), "BSSY");
  EXPECT_EQ(SassName(0x0ff), "");
}

TEST(Cubin, OtherFilesAreRefused) {
  for (const std::string_view bytes : {std::string_view(""),
                                       std::string_view("\x7f"
                                                        "ELF"),
                                       std::string_view(".version 8.0")}) {
    const auto result = ReadCubin(bytes);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, ErrorCode::kParse);
  }
}

TEST(Cubin, SurvivesTruncationAndDamage) {
  const std::string good = Compile(kTwoKernels);
  // The section table stands near the end, only program headers follow it.
  for (std::size_t size = 0; size < good.size(); size += 7) {
    const bool ok = ReadCubin(std::string_view(good).substr(0, size)).ok();
    EXPECT_FALSE(ok && size < good.size() - 1024) << size;
  }
  Rng rng(7);
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string bad = good;
    for (int i = 0; i < 4; ++i) {
      // Half of the damage goes into the header and the section table, where it hurts.
      const std::size_t span = round % 2 == 0 ? 64 : bad.size();
      bad[rng.Below(span)] = static_cast<char>(rng.Below(256));
    }
    refused += ReadCubin(bad).ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace kernelpro::model
