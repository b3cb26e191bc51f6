// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numeric>
#include <vector>

#include "emulator/simt/engine_test_util.h"

namespace kernelpro::simt {
namespace {

std::vector<float> Floats(std::size_t count, std::uint32_t seed) {
  std::vector<float> values(count);
  for (float& v : values) {
    seed = seed * 1664525U + 1013904223U;
    v = static_cast<float>(seed >> 8U) / 8388608.0F - 1.0F;
  }
  return values;
}

std::vector<int> Integers(std::size_t count, std::uint32_t seed, int below) {
  std::vector<int> values(count);
  for (int& v : values) {
    seed = seed * 1664525U + 1013904223U;
    v = static_cast<int>(seed >> 8U) % below;
  }
  return values;
}

TEST(Execution, VectorAddWithPartialLastBlock) {
  Gpu gpu("basic");
  const std::vector<float> a = Floats(1000, 1);
  const std::vector<float> b = Floats(1000, 2);
  const auto da = gpu.Upload(a, "a");
  const auto db = gpu.Upload(b, "b");
  const auto dc = gpu.Allocate<float>(1000, "c");
  const LaunchReport report =
      gpu.Run("vector_add", {.grid = {8}, .block = {128}}, da, db, dc, 1000);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  for (std::size_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(dc[i], a[i] + b[i]) << i;
  }
}

std::vector<float> Product(const std::vector<float>& a, const std::vector<float>& b,
                           std::size_t n) {
  std::vector<float> c(n * n);
  for (std::size_t y = 0; y < n; ++y) {
    for (std::size_t x = 0; x < n; ++x) {
      float sum = 0;
      for (std::size_t k = 0; k < n; ++k) {
        sum = std::fmaf(a[y * n + k], b[k * n + x], sum);
      }
      c[y * n + x] = sum;
    }
  }
  return c;
}

class Matmul : public testing::TestWithParam<const char*> {};

TEST_P(Matmul, EqualsTheLoopNest) {
  Gpu gpu("basic");
  constexpr std::size_t kN = 48;
  const std::vector<float> a = Floats(kN * kN, 3);
  const std::vector<float> b = Floats(kN * kN, 4);
  const auto da = gpu.Upload(a, "a");
  const auto db = gpu.Upload(b, "b");
  const auto dc = gpu.Allocate<float>(kN * kN, "c");
  const LaunchReport report =
      gpu.Run(GetParam(), {.grid = {3, 3}, .block = {16, 16}, .mode = Mode::kCheck}, da, db, dc,
              static_cast<int>(kN));
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  const std::vector<float> expected = Product(a, b, kN);
  for (std::size_t i = 0; i < kN * kN; ++i) {
    ASSERT_EQ(dc[i], expected[i]) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, Matmul, testing::Values("matmul_naive", "matmul_tiled"));

TEST(Execution, ReductionWithShuffleTail) {
  Gpu gpu("basic");
  const std::vector<int> in = Integers(1000, 5, 1000);
  const auto din = gpu.Upload(in, "in");
  const auto out = gpu.Allocate<int>(4, "out");
  const LaunchReport report =
      gpu.Run("block_sum", {.grid = {4}, .block = {256}, .mode = Mode::kCheck}, din, out, 1000);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  for (std::size_t b = 0; b < 4; ++b) {
    const std::size_t end = std::min<std::size_t>(1000, (b + 1) * 256);
    EXPECT_EQ(out[b], std::accumulate(in.begin() + static_cast<long>(b) * 256,
                                      in.begin() + static_cast<long>(end), 0));
  }
}

TEST(Execution, ReductionWithSyncwarpTail) {
  Gpu gpu("basic");
  const std::vector<int> in = Integers(128, 6, 1000);
  const auto din = gpu.Upload(in, "in");
  const auto out = gpu.Allocate<int>(2, "out");
  const LaunchReport report =
      gpu.Run("block_sum_syncwarp", {.grid = {2}, .block = {64}, .mode = Mode::kCheck}, din, out);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  EXPECT_EQ(out[0], std::accumulate(in.begin(), in.begin() + 64, 0));
  EXPECT_EQ(out[1], std::accumulate(in.begin() + 64, in.end(), 0));
}

TEST(Execution, DynamicAndStaticSharedMemory) {
  Gpu gpu("basic");
  constexpr std::size_t kColumns = 100;
  const std::vector<float> in = Floats(3 * kColumns, 7);
  const auto din = gpu.Upload(in, "in");
  const auto out = gpu.Allocate<float>(3 * kColumns, "out");
  const LaunchReport report = gpu.Run("softmax_rows",
                                      {.grid = {3},
                                       .block = {64},
                                       .dynamic_shared = kColumns * sizeof(float),
                                       .mode = Mode::kCheck},
                                      din, out, static_cast<int>(kColumns));
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  for (std::size_t r = 0; r < 3; ++r) {
    float m = in[r * kColumns];
    for (std::size_t c = 1; c < kColumns; ++c) {
      m = std::fmax(m, in[r * kColumns + c]);
    }
    float s = 0;
    for (std::size_t c = 0; c < kColumns; ++c) {
      s += in[r * kColumns + c] - m;
    }
    for (std::size_t c = 0; c < kColumns; ++c) {
      ASSERT_EQ(out[r * kColumns + c], (in[r * kColumns + c] - m) + s);
    }
  }
}

class SpinLock : public testing::TestWithParam<const char*> {};

TEST_P(SpinLock, WithinAWarpDoesNotDeadlock) {
  Gpu gpu("basic");
  const auto lock = gpu.Allocate<int>(1, "lock");
  const auto value = gpu.Allocate<int>(1, "value");
  const LaunchReport report = gpu.Run(GetParam(), {.grid = {2}, .block = {64}}, lock, value);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  EXPECT_EQ(value[0], 2 * 64);
  EXPECT_EQ(lock[0], 0);
}

INSTANTIATE_TEST_SUITE_P(Kernels, SpinLock, testing::Values("spin_lock", "spin_lock_tight"));

TEST(Execution, BlocksThatWaitForLaterBlocks) {
  Gpu gpu("basic");
  const auto flags = gpu.Allocate<int>(8, "flags");
  const LaunchReport report = gpu.Run("chain", {.grid = {8}, .block = {32}}, flags);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(flags[static_cast<std::size_t>(i)], 8 - i);
  }
}

TEST(Execution, DivergentLoops) {
  Gpu gpu("basic");
  std::vector<int> in(100);
  std::iota(in.begin(), in.end(), 1);
  const auto din = gpu.Upload(in, "in");
  const auto steps = gpu.Allocate<int>(100, "steps");
  const LaunchReport report = gpu.Run("collatz", {.grid = {4}, .block = {32}}, din, steps, 100);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  for (std::size_t i = 0; i < 100; ++i) {
    int v = in[i];
    int s = 0;
    for (; v != 1; ++s) {
      v = v % 2 != 0 ? 3 * v + 1 : v / 2;
    }
    ASSERT_EQ(steps[i], s) << i;
  }
}

TEST(Execution, RecursiveCalls) {
  Gpu gpu("basic");
  const auto out = gpu.Allocate<int>(64, "out");
  const LaunchReport report = gpu.Run("recursion", {.grid = {1}, .block = {64}}, out);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  const int fibonacci[] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89};
  for (std::size_t i = 0; i < 64; ++i) {
    ASSERT_EQ(out[i], fibonacci[i % 12]) << i;
  }
}

struct alignas(8) Pair {
  float x = 0, y = 0;
};

TEST(Execution, CallsWithStructsByDivergentLanes) {
  Gpu gpu("basic");
  std::vector<Pair> in(32);
  for (std::size_t i = 0; i < 32; ++i) {
    in[i] = Pair{static_cast<float>(i), 100.0F + static_cast<float>(i)};
  }
  const auto din = gpu.Upload(in, "in");
  const auto table = gpu.Upload(std::vector<float>{2.0F, 3.0F}, "table");
  const auto out = gpu.Allocate<Pair>(32, "out");
  const LaunchReport report = gpu.Run("call_struct", {.grid = {1}, .block = {32}}, din, table, out);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  for (std::size_t i = 0; i < 32; ++i) {
    const Pair e = i % 3 != 0 ? Pair{in[i].y * 2.0F, -in[i].x * 3.0F} : in[i];
    EXPECT_EQ(out[i].x, e.x) << i;
    EXPECT_EQ(out[i].y, e.y) << i;
  }
}

TEST(Execution, SwitchOverManyCases) {
  Gpu gpu("basic");
  const std::vector<int> in = Integers(64, 8, 9);
  const auto din = gpu.Upload(in, "in");
  const auto out = gpu.Upload(std::vector<int>(64, 7), "out");
  const LaunchReport report = gpu.Run("switch_cases", {.grid = {2}, .block = {32}}, din, out, 64);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  const int expected[] = {17, 67, 12, 1, 21, -64, 4096, 99, 99};
  for (std::size_t i = 0; i < 64; ++i) {
    ASSERT_EQ(out[i], expected[in[i]]) << i << " case " << in[i];
  }
}

TEST(Execution, LocalArrays) {
  Gpu gpu("basic");
  const std::vector<int> in = Integers(32 * 16, 9, 1000);
  const auto din = gpu.Upload(in, "in");
  const auto out = gpu.Allocate<int>(32, "out");
  const LaunchReport report = gpu.Run("local_array", {.grid = {1}, .block = {32}}, din, out, 40);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  for (std::size_t i = 0; i < 32; ++i) {
    std::vector<int> a(in.begin() + static_cast<long>(i) * 16,
                       in.begin() + static_cast<long>(i) * 16 + 16);
    unsigned s = 0;  // Wraps, as the GPU's integers do.
    for (std::size_t k = 0; k < 40; ++k) {
      const std::size_t j = (i + k * 7) % 16;
      s += static_cast<unsigned>(a[j]) * static_cast<unsigned>(k + 1);
      a[(j + 3) % 16] = static_cast<int>(s);
    }
    ASSERT_EQ(out[i], static_cast<int>(s)) << i;
  }
}

TEST(Execution, ModuleVariables) {
  Gpu gpu("basic");
  const auto out = gpu.Allocate<int>(8, "out");
  const LaunchReport report = gpu.Run("module_variables", {.grid = {1}, .block = {8}}, out);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  const int table[] = {3, 1, 4, 1, 5, 9, 2, 6};
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(out[i], table[i] + 40);
  }
  const std::uint64_t counter = gpu.program().AddressOf("counter");
  ASSERT_NE(counter, 0U);
  int value = 0;
  std::memcpy(&value, gpu.memory().View(counter, 4).value().data(), 4);
  EXPECT_EQ(value, 41);
}

struct Big {
  int n = 0;
  float values[6] = {};
  double scale = 0;
};

TEST(Execution, StructParameterIndexedAtRunTime) {
  Gpu gpu("basic");
  const auto out = gpu.Allocate<double>(32, "out");
  const Big big{.n = 5, .values = {1, 2, 3, 4, 5, 6}, .scale = 0.5};
  const LaunchReport report = gpu.Run("by_value", {.grid = {1}, .block = {32}}, big, out);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  for (std::size_t i = 0; i < 32; ++i) {
    EXPECT_EQ(out[i], static_cast<double>(big.values[i % 5]) * 0.5) << i;
  }
}

TEST(Execution, LoadsOfEveryWidth) {
  Gpu gpu("basic");
  std::vector<signed char> c8(32);
  std::vector<unsigned short> u16(32);
  std::vector<float> f4(128);
  std::vector<double> d2(64);
  for (std::size_t i = 0; i < 32; ++i) {
    c8[i] = static_cast<signed char>(static_cast<int>(i) * 8 - 128);
    u16[i] = static_cast<unsigned short>(i * 2047);
    for (std::size_t k = 0; k < 4; ++k) {
      f4[i * 4 + k] = static_cast<float>(i * 10 + k);
    }
    d2[i * 2] = static_cast<double>(i) * 3;
    d2[i * 2 + 1] = static_cast<double>(i);
  }
  const auto a = gpu.Upload(c8, "c8");
  const auto b = gpu.Upload(u16, "u16");
  const auto c = gpu.Upload(f4, "f4");
  const auto d = gpu.Upload(d2, "d2");
  const auto out = gpu.Allocate<long long>(32, "out");
  const LaunchReport report = gpu.Run("widths", {.grid = {1}, .block = {32}}, a, b, c, d, out);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  for (std::size_t i = 0; i < 32; ++i) {
    const auto n = static_cast<long long>(i);
    EXPECT_EQ(out[i], c8[i] * 1000LL + u16[i] + (40 * n + 6) + 2 * n) << i;
  }
}

TEST(Execution, StoresOfEveryWidth) {
  Gpu gpu("basic");
  const auto c8 = gpu.Allocate<signed char>(32, "c8");
  const auto s16 = gpu.Allocate<short>(32, "s16");
  const auto f4 = gpu.Allocate<float>(128, "f4");
  const LaunchReport report = gpu.Run("store_widths", {.grid = {1}, .block = {32}}, c8, s16, f4, 5);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  for (std::size_t i = 0; i < 32; ++i) {
    const int n = static_cast<int>(i);
    EXPECT_EQ(c8[i], n + 5);
    EXPECT_EQ(s16[i], 5 - n);
    EXPECT_EQ(f4[i * 4], static_cast<float>(n));
    EXPECT_EQ(f4[i * 4 + 1], 5.0F);
    EXPECT_EQ(f4[i * 4 + 2], static_cast<float>(n + 5));
    EXPECT_EQ(f4[i * 4 + 3], static_cast<float>(n - 5));
  }
}

TEST(Execution, DevicePrintf) {
  Gpu gpu("basic");
  const LaunchReport report = gpu.Run("printing", {.grid = {1}, .block = {32}}, 3);
  EXPECT_TRUE(report.faults.empty()) << Faults(report);
  EXPECT_EQ(
      report.printed,
      "thread 0 of block:  4.50 ff 3000000000 z%\nthread 1 of block:  4.50 ff 3000000000 z%\n");
}

TEST(Execution, SameLaunchSameReport) {
  const auto once = [] {
    Gpu gpu("basic");
    const auto in = gpu.Upload(Integers(1000, 5, 1000), "in");
    const auto out = gpu.Allocate<int>(4, "out");
    const LaunchReport report = gpu.Run("block_sum", {.grid = {4}, .block = {256}}, in, out, 1000);
    std::vector<std::uint64_t> all{report.barriers, report.ctas_executed};
    for (const InstructionCounters& n : report.instructions) {
      all.insert(all.end(), {n.warps, n.lanes, n.lanes_on, n.sectors, n.wavefronts, n.divergent});
    }
    return all;
  };
  const auto first = once();
  EXPECT_GT(first.size(), 10U);
  EXPECT_EQ(first, once());
}

TEST(Execution, RefusesWhatCudaRefuses) {
  Gpu gpu("basic");
  const auto a = gpu.Allocate<float>(1, "a");
  EXPECT_EQ(gpu.TryLaunch("no_such_kernel", {.grid = {1}, .block = {1}}).error().code,
            ErrorCode::kNotFound);
  EXPECT_EQ(gpu.TryLaunch("vector_add", {.grid = {1}, .block = {2048}}, a, a, a, 1).error().code,
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(gpu.TryLaunch("vector_add", {.grid = {0}, .block = {32}}, a, a, a, 1).error().code,
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(gpu.TryLaunch("vector_add", {.grid = {1}, .block = {32}}, a, a).error().code,
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(gpu.TryLaunch("vector_add", {.grid = {1}, .block = {32}, .dynamic_shared = 256U << 10U},
                          a, a, a, 1)
                .error()
                .code,
            ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace kernelpro::simt
