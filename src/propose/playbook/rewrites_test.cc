// SPDX-License-Identifier: Apache-2.0
//
// Every rewrite on a small source: the text before and after, and a case that it declines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "propose/playbook/testing/fixture.h"

namespace kernelpro::playbook {
namespace {

using playbook::Ask;  // The overload below would hide it.
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Proposals Ask(const std::string& source, std::vector<Finding> findings = {}) {
  return Ask(SharedPlaybook(), SmallTask(), source, std::move(findings));
}

std::string Result(const Proposals& answer, std::string_view action) {
  const Proposal* proposal = Find(answer, action);
  return proposal == nullptr ? "(not offered: " + WhyNot(answer, action) + ")"
                             : proposal->candidate.source;
}

constexpr std::string_view kRowLaunch =
    "  K<<<(m + 255) / 256, 256, 0, stream>>>(args->a, args->c, m, n);";

TEST(WarpPerRow, GoldenSumOfEveryRow) {
  const auto answer = Ask(Program(R"(__global__ void K(const float* a, float* c, int m, int n) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= m) return;
  float sum = 0.0f;
  for (int i = 0; i < n; ++i) {
    sum += a[row * n + i];
  }
  c[row] = sum;
}
)",
                                  kRowLaunch),
                          {MakeFinding("mem.coalesce_ld", 0.8, 0.9)});
  EXPECT_EQ(Result(answer, "warp_per_row(K)"),
            Program(R"(__global__ void K(const float* a, float* c, int m, int n) {
  const int lane = threadIdx.x % 32;
  const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  if (row >= m) return;
  float sum = 0.0f;
  for (int i = lane; i < n; i += 32) {
    sum += a[row * n + i];
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    const float sum_other = __shfl_xor_sync(0xffffffffu, sum, offset);
    sum += sum_other;
  }
  if (lane == 0) {
    c[row] = sum;
  }
}
)",
                    "  K<<<((m + 255) / 256) * 32, 256, 0, stream>>>(args->a, args->c, m, n);"));
  const Proposal* proposal = Find(answer, "warp_per_row(K)");
  ASSERT_NE(proposal, nullptr);
  EXPECT_EQ(proposal->finding, "mem.coalesce_ld");
  EXPECT_THAT(proposal->reason, HasSubstr("32.0 sectors per request"));
  EXPECT_THAT(proposal->reason, HasSubstr("line 7"));
  // 0.3 + 0.3 * 0.8 + 0.4 * 0.9
  EXPECT_NEAR(proposal->prior, 0.9, 1e-9);
}

std::string RowProgram(std::string_view body) {
  return Program(
      "__global__ void K(const float* a, float* c, int m, int n) {\n"
      "  const int row = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  if (row >= m) return;\n" +
          std::string(body) + "}\n",
      kRowLaunch);
}

TEST(WarpPerRow, ComparisonsMapsAndReadBack) {
  const std::string result = Result(Ask(RowProgram(R"(  float best = a[row * n];
  for (int i = 1; i < n; ++i) {
    if (a[row * n + i] > best) best = a[row * n + i];
  }
  for (int i = 0; i < n; i++) c[row * n + i] = a[row * n + i] - best;
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += c[row * n + i];
)")),
                                    "warp_per_row(K)");
  EXPECT_THAT(result, HasSubstr("int i = 1 + lane; i < n; i += 32"));
  EXPECT_THAT(result, HasSubstr("best = best_other > best ? best_other : best;"));
  EXPECT_THAT(result, HasSubstr("a[row * n + i] - best;\n  __syncwarp();"));
}

TEST(WarpPerRow, DeclinesWithTheReason) {
  EXPECT_THAT(WhyNot(Ask(RowProgram(R"(  float prev = 0.0f;
  for (int i = 0; i < n; ++i) {
    c[row * n + i] = a[row * n + i] - prev;
    prev = a[row * n + i];
  }
)")),
                     "warp_per_row"),
              HasSubstr("the loop at line 7 carries a dependence through `prev`"));
  EXPECT_THAT(WhyNot(Ask(RowProgram(R"(  for (int i = 1; i < n; ++i) {
    c[row * n + i] = c[row * n + i - 1] + a[row * n + i];
  }
)")),
                     "warp_per_row"),
              HasSubstr("carries a dependence through `c`"));
  EXPECT_THAT(WhyNot(Ask("__device__ float Touch(float* p);\n" + RowProgram(R"(  float sum = 0.0f;
  for (int i = 0; i < n; ++i) sum += a[row * n + i];
  const float t = Touch(c + row);
  c[row] = sum + t;
)")),
                     "warp_per_row"),
              HasSubstr("`Touch` at line 9 gets a pointer and may write through it"));
  EXPECT_THAT(WhyNot(Ask(RowProgram(R"(  float sum = 1.0f;
  for (int i = 0; i < n; ++i) sum += a[row * n + i];
  c[row] = sum;
)")),
                     "warp_per_row"),
              HasSubstr("`sum` does not provably start at zero"));
  EXPECT_THAT(WhyNot(Ask(RowProgram(R"(  float sum = 0.0f;
  for (int i = 0; i < n; ++i) {
    if (a[row * n + i] < 0) break;
    sum += a[row * n + i];
  }
  c[row] = sum;
)")),
                     "warp_per_row"),
              HasSubstr("may be left early"));
  const std::string odd = Program(
      "__global__ void K(const float* a, float* c, int m, int n) {\n"
      "  const int row = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  if (row >= m) return;\n  float sum = 0.0f;\n"
      "  for (int i = 0; i < n; ++i) sum += a[row * n + i];\n  c[row] = sum;\n}\n",
      "  K<<<(m + 99) / 100, 100, 0, stream>>>(args->a, args->c, m, n);");
  EXPECT_THAT(WhyNot(Ask(odd), "warp_per_row"), HasSubstr("constant multiple of 32"));
}

std::string CopyProgram(std::string_view index, std::string_view launch) {
  return Program(
      "__global__ void K(const float* a, float* c, int m, int n) {\n"
      "  const int x = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  const int y = blockIdx.y * blockDim.y + threadIdx.y;\n"
      "  if (x >= n || y >= m) return;\n  " +
          std::string(index) + "\n}\n",
      launch);
}

constexpr std::string_view kSquareLaunch =
    "  const dim3 block(16, 16);\n"
    "  const dim3 grid((n + block.x - 1) / block.x, (m + block.y - 1) / block.y);\n"
    "  K<<<grid, block, 0, stream>>>(args->a, args->c, m, n);";

TEST(TileThroughShared, GoldenTranspose) {
  EXPECT_EQ(Result(Ask(CopyProgram("c[x * m + y] = 2.0f * a[y * n + x];", kSquareLaunch)),
                   "tile_through_shared(K)"),
            Program(R"(constexpr int kTileSize = 32;
constexpr int kTileRows = 8;

__global__ void K(const float* a, float* c, int m, int n) {
  __shared__ float tile[kTileSize][kTileSize + 1];  // one more: a column must not lie in one bank
  const int tile_x = blockIdx.x * kTileSize;
  const int tile_y = blockIdx.y * kTileSize;
  for (int j = threadIdx.y; j < kTileSize; j += kTileRows) {
    const int x = tile_x + threadIdx.x;
    const int y = tile_y + j;
    if (!(x >= n || y >= m)) {
      tile[j][threadIdx.x] = 2.0f * a[y * n + x];
    }
  }
  __syncthreads();
  for (int j = threadIdx.y; j < kTileSize; j += kTileRows) {
    const int x = tile_x + j;
    const int y = tile_y + threadIdx.x;
    if (!(x >= n || y >= m)) {
      c[x * m + y] = tile[threadIdx.x][j];
    }
  }
}
)",
                    "  const dim3 block(kTileSize, kTileRows);\n"
                    "  const dim3 grid((n + kTileSize - 1) / kTileSize, "
                    "(m + kTileSize - 1) / kTileSize);\n"
                    "  K<<<grid, block, 0, stream>>>(args->a, args->c, m, n);"));
}

TEST(TileThroughShared, StridedLoadIsTransposedOnTheWayIn) {
  const std::string result = Result(Ask(CopyProgram("c[y * n + x] = a[x * m + y];", kSquareLaunch)),
                                    "tile_through_shared(K)");
  EXPECT_THAT(result, HasSubstr("const int x = tile_x + j;\n    const int y = tile_y + "
                                "threadIdx.x;\n    if (!(x >= n || y >= m)) {\n      "
                                "tile[j][threadIdx.x] = a[x * m + y];"));
}

TEST(TileThroughShared, LoadedLocalsStayBehindTheGuard) {
  const std::string source = Program(R"(__global__ void K(const float* a, float* c, int m, int n) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < n && y < m) {
    const int to = x * m + y;
    const float v = a[y * n + x];
    c[to] = v;
  }
}
)",
                                     kSquareLaunch);
  const std::string result = Result(Ask(source), "tile_through_shared(K)");
  EXPECT_THAT(result, HasSubstr("if (x < n && y < m) {\n      const float v = a[y * n + x];\n"
                                "      tile[j][threadIdx.x] = v;\n    }"));
  EXPECT_THAT(result, HasSubstr("if (x < n && y < m) {\n      const int to = x * m + y;\n"
                                "      c[to] = tile[threadIdx.x][j];\n    }"));
}

TEST(TileThroughShared, Declines) {
  EXPECT_THAT(WhyNot(Ask(CopyProgram("c[x * m + y] = a[y * n + x] * threadIdx.x;", kSquareLaunch)),
                     "tile_through_shared"),
              HasSubstr("threadIdx.x is used at line 7 beyond the indices `x` and `y`"));
  EXPECT_THAT(WhyNot(Ask(CopyProgram("c[y * n + x] = a[y * n + x];", kSquareLaunch)),
                     "tile_through_shared"),
              HasSubstr("already run along the same thread dimension"));
  EXPECT_THAT(WhyNot(Ask(CopyProgram("c[x * m + y] += a[y * n + x];", kSquareLaunch)),
                     "tile_through_shared"),
              HasSubstr("line 7 is more than one guarded store"));
}

TEST(SwapThreadRoles, GoldenKernelAndLaunch) {
  const std::string before = Program(R"(__global__ void K(const float* a, float* c, int m, int n) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  const int col = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < m && col < n) c[row * n + col] = a[row * n + col];
}
)",
                                     "  const dim3 block(32, 8);\n"
                                     "  const dim3 grid((m + block.x - 1) / block.x, "
                                     "(n + block.y - 1) / block.y);\n"
                                     "  K<<<grid, block, 0, stream>>>(args->a, args->c, m, n);");
  EXPECT_EQ(Result(Ask(before), "swap_thread_roles(K)"),
            Program(R"(__global__ void K(const float* a, float* c, int m, int n) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < m && col < n) c[row * n + col] = a[row * n + col];
}
)",
                    "  const dim3 block(8, 32);\n"
                    "  const dim3 grid((n + block.x - 1) / block.x, "
                    "(m + block.y - 1) / block.y);\n"
                    "  K<<<grid, block, 0, stream>>>(args->a, args->c, m, n);"));
  EXPECT_THAT(
      WhyNot(Ask(CopyProgram("c[y * n + x] = a[y * n + x];", kSquareLaunch)), "swap_thread_roles"),
      HasSubstr("would not lie closer"));
}

std::string BlockProgram(std::string_view body) {
  return Program(
      "constexpr int kThreads = 256;\n\n"
      "__global__ void K(const float* a, float* c, int n) {\n"
      "  __shared__ float sh[kThreads];\n  const int t = threadIdx.x;\n" +
          std::string(body) + "}\n",
      "  K<<<m, kThreads, 0, stream>>>(args->a, args->c, n);");
}

constexpr std::string_view kTree = R"(  sh[t] = t < n ? a[blockIdx.x * n + t] : 0.0f;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (t < s) {
      sh[t] += sh[t + s];
    }
    __syncthreads();
  }
)";

TEST(ShuffleReduction, GoldenTree) {
  EXPECT_EQ(Result(Ask(BlockProgram(std::string(kTree) + "  if (t == 0) c[blockIdx.x] = sh[0];\n")),
                   "shuffle_reduction(K)"),
            BlockProgram(R"(  {
    float sh_value = t < n ? a[blockIdx.x * n + t] : 0.0f;
    for (int offset = 16; offset > 0; offset /= 2) {
      sh_value += __shfl_xor_sync(0xffffffffu, sh_value, offset);
    }
    if (t % 32 == 0) {
      sh[t / 32] = sh_value;
    }
    __syncthreads();
    if (t < 32) {
      sh_value = t < blockDim.x / 32 ? sh[t] : 0;
      for (int offset = 16; offset > 0; offset /= 2) {
        sh_value += __shfl_xor_sync(0xffffffffu, sh_value, offset);
      }
      if (t == 0) {
        sh[0] = sh_value;
      }
    }
    __syncthreads();
  }
  if (t == 0) c[blockIdx.x] = sh[0];
)"));
}

TEST(ShuffleReduction, InterleavedFormsAndMaximum) {
  const std::string modulo = Result(Ask(BlockProgram(R"(  sh[t] = a[t];
  __syncthreads();
  for (int s = 1; s < kThreads; s *= 2) {
    if (t % (2 * s) == 0) sh[t] = fmaxf(sh[t], sh[t + s]);
    __syncthreads();
  }
  c[t] = sh[0];
)")),
                                    "shuffle_reduction(K)");
  EXPECT_THAT(modulo, HasSubstr("sh_value = fmaxf(sh_value, __shfl_xor_sync(0xffffffffu"));
  EXPECT_THAT(modulo, HasSubstr("sh[t < blockDim.x / 32 ? t : 0]"));
  const std::string strided = Result(Ask(BlockProgram(R"(  sh[t] = a[t];
  __syncthreads();
  for (unsigned s = 1; s < blockDim.x; s <<= 1) {
    const int i = 2 * s * t;
    if (i < blockDim.x) { sh[i] += sh[i + s]; }
    __syncthreads();
  }
  c[t] = sh[0];
)")),
                                     "shuffle_reduction(K)");
  EXPECT_THAT(strided, HasSubstr("float sh_value = a[t];"));
}

TEST(ShuffleReduction, Declines) {
  EXPECT_THAT(
      WhyNot(Ask(BlockProgram(std::string(kTree) + "  c[t] = sh[t];\n")), "shuffle_reduction"),
      HasSubstr("`sh[t]` at line 16 reads or writes something else than the result"));
  const std::string scan = BlockProgram(R"(  sh[t] = a[t];
  __syncthreads();
  for (int s = 1; s < kThreads; s *= 2) {
    const float v = t >= s ? sh[t - s] : 0.0f;
    __syncthreads();
    sh[t] += v;
    __syncthreads();
  }
  c[t] = sh[t];
)");
  EXPECT_THAT(WhyNot(Ask(scan), "shuffle_reduction"), HasSubstr("no loop is a tree reduction"));
}

TEST(DeferReduction, GoldenRounds) {
  const std::string before = BlockProgram(R"(  float total = 0.0f;
  for (int base = 0; base < n; base += kThreads) {
    sh[t] = base + t < n ? a[blockIdx.x * n + base + t] : 0.0f;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
      if (t < s) sh[t] += sh[t + s];
      __syncthreads();
    }
    if (t == 0) total += sh[0];
    __syncthreads();
  }
  if (t == 0) c[blockIdx.x] = total;
)");
  EXPECT_THAT(Result(Ask(before), "defer_reduction(K)"), HasSubstr(R"(  float total = 0.0f;
  float partial = 0;
  for (int base = 0; base < n; base += kThreads) {
    partial += base + t < n ? a[blockIdx.x * n + base + t] : 0.0f;
  }
  sh[t] = partial;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (t < s) sh[t] += sh[t + s];
    __syncthreads();
  }
  if (t == 0) total += sh[0];
  __syncthreads();
)"));
}

TEST(DeferReduction, DeclinesWhenARoundNeedsTheTotal) {
  EXPECT_THAT(WhyNot(Ask(BlockProgram(R"(  float total = 0.0f;
  for (int base = 0; base < n; base += kThreads) {
    sh[t] = a[base + t] - total;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
      if (t < s) sh[t] += sh[t + s];
      __syncthreads();
    }
    total += sh[0];
    __syncthreads();
  }
  if (t == 0) c[blockIdx.x] = total;
)")),
                     "defer_reduction"),
              HasSubstr("depends on the total so far"));
}

std::string TileProgram(std::string_view declaration, std::string_view use) {
  return Program("constexpr int kT = 32;\n__global__ void K(const float* a, float* c) {\n  " +
                     std::string(declaration) +
                     "\n  tile[threadIdx.y][threadIdx.x] = a[threadIdx.y * kT + threadIdx.x];\n"
                     "  __syncthreads();\n  " +
                     std::string(use) + "\n}\n",
                 "  K<<<1, dim3(kT, kT), 0, stream>>>(args->a, args->c);");
}

TEST(PadShared, GoldenAndDeclines) {
  const std::string use = "c[threadIdx.y * kT + threadIdx.x] = tile[threadIdx.x][threadIdx.y];";
  EXPECT_EQ(Result(Ask(TileProgram("__shared__ float tile[kT][kT];", use)), "pad_shared(tile,+1)"),
            TileProgram("__shared__ float tile[kT][kT + 1];", use));
  EXPECT_THAT(WhyNot(Ask(TileProgram("__shared__ float tile[kT][kT + 1];", use)), "pad_shared"),
              HasSubstr("already spread over the banks"));
  EXPECT_THAT(WhyNot(Ask(TileProgram("__shared__ float tile[kT][kT];",
                                     "c[threadIdx.x] = (&tile[0][0])[threadIdx.x * kT];")),
                     "pad_shared"),
              HasSubstr("by address"));
}

TEST(FloatLiterals, GoldenAndDeclines) {
  const std::string before = Program(R"(__global__ void K(const float* a, float* c) {
  double d = a[0];
  c[0] = 1.0 / sqrt(d + 1e-5);
}
)",
                                     "  K<<<1, 32, 0, stream>>>(args->a, args->c);");
  const auto answer = Ask(before, {MakeFinding("cmp.fp64", 0.5, 0.5)});
  EXPECT_THAT(Result(answer, "float_literals(all)"),
              HasSubstr("  float d = a[0];\n  c[0] = 1.0f / sqrtf(d + 1e-5f);"));
  EXPECT_THAT(Result(answer, "float_literals(literals)"),
              HasSubstr("  double d = a[0];\n  c[0] = 1.0f / sqrtf(d + 1e-5f);"));
  const std::string squares = Program(
      "__global__ void K(const float* a, float* c) { c[0] = pow(a[0] - 1.0, 2.0) + pow(a[1], 3); "
      "}\n",
      "  K<<<1, 32, 0, stream>>>(args->a, args->c);");
  EXPECT_THAT(Result(Ask(squares, {MakeFinding("cmp.fp64", 0.5, 0.5)}), "float_literals(all)"),
              AllOf(HasSubstr("__device__ inline float Square(float value)"),
                    HasSubstr("c[0] = Square(a[0] - 1.0f) + powf(a[1], 3);")));
  Task strict = SmallTask();
  strict.policy.lowest_precision = "fp64";
  EXPECT_THAT(WhyNot(Ask(SharedPlaybook(), strict, before), "float_literals"),
              HasSubstr("asks for double precision"));
  EXPECT_THAT(WhyNot(Ask(Program("__global__ void K(float* c) { c[0] = c[0] * 1e300; }\n",
                                 "  K<<<1, 32, 0, stream>>>(args->c);")),
                     "float_literals"),
              HasSubstr("1e300 at line 3 does not fit into a float"));
}

constexpr std::string_view kStrideLoop = R"(__global__ void K(const float* a, float* c, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    c[blockIdx.x * n + i] = a[blockIdx.x * n + i] + i;
  }
}
)";
constexpr std::string_view kStrideLaunch = "  K<<<m, 128, 0, stream>>>(args->a, args->c, n);";

TEST(VectorAccess, GoldenMap) {
  EXPECT_EQ(Result(Ask(Program(kStrideLoop, kStrideLaunch)), "vector_access(K)"),
            Program(R"(__global__ void K(const float* a, float* c, int n) {
  if (n % 4 == 0 &&
      reinterpret_cast<unsigned long long>(&c[blockIdx.x * n + 0]) % 16 == 0 &&
      reinterpret_cast<unsigned long long>(&a[blockIdx.x * n + 0]) % 16 == 0) {
    for (int i = 4 * threadIdx.x; i < n; i += 4 * blockDim.x) {
      alignas(16) float c_vector[4];
      alignas(16) float a_vector[4];
      *reinterpret_cast<float4*>(a_vector) =
          *reinterpret_cast<const float4*>(&a[blockIdx.x * n + i]);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        c_vector[j] = a_vector[j] + (i + j);
      }
      *reinterpret_cast<float4*>(&c[blockIdx.x * n + i]) =
          *reinterpret_cast<const float4*>(c_vector);
    }
  } else {
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
      c[blockIdx.x * n + i] = a[blockIdx.x * n + i] + i;
    }
  }
}
)",
                    kStrideLaunch));
}

TEST(VectorAccess, Declines) {
  const auto once = Ask(Program(kStrideLoop, kStrideLaunch));
  const Proposal* first = Find(once, "vector_access(K)");
  ASSERT_NE(first, nullptr);
  EXPECT_THAT(WhyNot(Ask(first->candidate.source), "vector_access"),
              HasSubstr("has a vector path already"));
  std::string late(kStrideLoop);
  late.replace(late.find("int i = threadIdx.x"), 19, "int i = 1 + threadIdx.x");
  EXPECT_THAT(WhyNot(Ask(Program(late, kStrideLaunch)), "vector_access"),
              HasSubstr("does not provably visit every element from zero once"));
  std::string half(kStrideLoop);
  half.replace(half.find("i += blockDim.x"), 15, "i += 2 * blockDim.x");
  EXPECT_THAT(WhyNot(Ask(Program(half, kStrideLaunch)), "vector_access"),
              HasSubstr("does not provably visit every element from zero once"));
  std::string assembly(kStrideLoop);
  assembly.replace(assembly.find("c[block"), 0, "asm volatile(\"\"); ");
  EXPECT_THAT(WhyNot(Ask(Program(assembly, kStrideLaunch)), "vector_access"),
              HasSubstr("calls asm"));
  std::string guarded(kStrideLoop);
  guarded.replace(guarded.find("c[block"), 0, "if (a[i] > 0) ");
  EXPECT_THAT(WhyNot(Ask(Program(guarded, kStrideLaunch)), "vector_access"),
              HasSubstr("does not happen in every iteration"));
}

constexpr std::string_view kElement = R"(__global__ void K(const float* a, float* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    c[i] = a[i] * 2.0f;
  }
}
)";

TEST(GridStride, GoldenAndDeclines) {
  EXPECT_EQ(Result(Ask(Program(kElement,
                               "  K<<<(n + 127) / 128, 128, 0, stream>>>(args->a, "
                               "args->c, n);")),
                   "grid_stride(K)"),
            Program(R"(constexpr int kMaxBlocks = 1056;

__global__ void K(const float* a, float* c, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    c[i] = a[i] * 2.0f;
  }
}
)",
                    "  K<<<((n + 127) / 128) < kMaxBlocks ? ((n + 127) / 128) : kMaxBlocks, 128, "
                    "0, stream>>>(args->a, args->c, n);"));
  std::string other(kElement);
  other.replace(other.find("2.0f"), 4, "threadIdx.x");
  EXPECT_THAT(WhyNot(Ask(Program(other,
                                 "  K<<<(n + 127) / 128, 128, 0, stream>>>(args->a, "
                                 "args->c, n);")),
                     "grid_stride"),
              HasSubstr("threadIdx.x is used at line 6"));
}

TEST(RestrictPointers, GoldenAndDeclines) {
  EXPECT_THAT(Result(Ask(Program(kElement,
                                 "  K<<<(n + 127) / 128, 128, 0, stream>>>(args->a, "
                                 "args->c, n);")),
                     "restrict_pointers(K)"),
              HasSubstr("void K(const float* __restrict__ a, float* __restrict__ c, int n)"));
  EXPECT_THAT(WhyNot(Ask(Program(kElement,
                                 "  K<<<(n + 127) / 128, 128, 0, stream>>>(args->c, "
                                 "args->c, n);")),
                     "restrict_pointers"),
              HasSubstr("passes one buffer twice"));
  EXPECT_THAT(WhyNot(Ask(Program(kElement,
                                 "  K<<<(n + 127) / 128, 128, 0, stream>>>(args->c + 1, "
                                 "args->c, n);")),
                     "restrict_pointers"),
              HasSubstr("it may overlap another argument"));
}

constexpr std::string_view kProductLaunch =
    "  const dim3 block(16, 16);\n  const dim3 grid((m + 15) / 16, (n + 15) / 16);\n"
    "  K<<<grid, block, 0, stream>>>(args->a, args->b, args->c, m, n, k);";

std::string ProductProgram(std::string_view start, std::string_view step) {
  return Program(
      "__global__ void K(const float* a, const float* b, float* c, int m, int n, int k) {\n"
      "  const int row = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  const int col = blockIdx.y * blockDim.y + threadIdx.y;\n"
      "  if (row >= m || col >= n) return;\n  float sum = " +
          std::string(start) + ";\n  for (int i = 0; i < k; ++i) {\n    " + std::string(step) +
          "\n  }\n  c[row * n + col] = 0.5f * sum;\n}\n",
      kProductLaunch);
}

TEST(TileMatmul, KeepsTheUsersIndicesAndEpilogue) {
  const std::string result = Result(
      Ask(ProductProgram("0.0f", "sum += a[row * k + i] * b[i * n + col];")), "tile_matmul(K)");
  EXPECT_THAT(result, HasSubstr("i < k ? a[row * k + i] : float(0);"));
  EXPECT_THAT(result, HasSubstr("i < k ? b[i * n + col] : float(0);"));
  EXPECT_THAT(result, HasSubstr("c[row * n + col] = 0.5f * sum;"));
  EXPECT_THAT(result, HasSubstr("const dim3 block(kTileThreads);"));
  EXPECT_THAT(result,
              HasSubstr("const dim3 grid((n + kTileN - 1) / kTileN, (m + kTileM - 1) / kTileM);"));
}

TEST(TileMatmul, Declines) {
  EXPECT_THAT(
      WhyNot(Ask(ProductProgram("1.0f", "sum += a[row * k + i] * b[i * n + col];")), "tile_matmul"),
      HasSubstr("is not one sum of products from zero"));
  EXPECT_THAT(WhyNot(Ask(ProductProgram("0.0f", "sum += fabsf(a[row * k + i] - b[i * n + col]);")),
                     "tile_matmul"),
              HasSubstr("does not add the product of two tensor elements"));
  EXPECT_THAT(
      WhyNot(Ask(ProductProgram("0.0f", "sum += a[row * k + i] * b[i * n + row];")), "tile_matmul"),
      HasSubstr("do not belong to one index each"));
}

TEST(Unroll, GoldenAndDeclines) {
  const std::string result =
      Result(Ask(ProductProgram("0.0f", "sum += a[row * k + i] * b[i * n + col];")), "unroll(K,8)");
  EXPECT_THAT(result, HasSubstr("#pragma unroll 8\n  for (int i = 0; i < k; ++i) {"));
  EXPECT_THAT(WhyNot(Ask(result), "unroll"), HasSubstr("without a pragma"));
}

TEST(FastMath, GoldenAndDeclines) {
  const std::string before =
      Program("__global__ void K(const float* a, float* c) { c[0] = expf(a[0] / a[1]) / a[2]; }\n",
              "  K<<<1, 32, 0, stream>>>(args->a, args->c);");
  EXPECT_THAT(Result(Ask(before), "fast_math_intrinsics(K)"),
              HasSubstr("c[0] = __fdividef(__expf(__fdividef(a[0], a[1])), a[2]);"));
  Task exact = SmallTask();
  exact.tolerance.relative = 1e-7;
  EXPECT_THAT(WhyNot(Ask(SharedPlaybook(), exact, before), "fast_math_intrinsics"),
              HasSubstr("relative tolerance 1e-07 is below 1e-05"));
}

TEST(TuneConstant, SingleValuesPairsAndLimits) {
  const std::string before = Program(R"(constexpr int kX = 32;
#define BLOCK_Y 16
constexpr int kWarpSize = 32;
constexpr int kOdd = 24;
__global__ void K(const float* a, float* c) {
  __shared__ float sh[kX * kOdd + kWarpSize];
  sh[threadIdx.x] = a[threadIdx.x];
  c[threadIdx.x] = sh[threadIdx.x];
}
)",
                                     "  K<<<1, dim3(kX, BLOCK_Y), 0, stream>>>(args->a, args->c);");
  const auto answer = Ask(before);
  EXPECT_THAT(Result(answer, "tune_constant(kX=64)"), HasSubstr("constexpr int kX = 64;"));
  EXPECT_THAT(Result(answer, "tune_constant(BLOCK_Y=8)"), HasSubstr("#define BLOCK_Y 8\n"));
  const std::string pair = Result(answer, "tune_constant(kX=64,BLOCK_Y=8)");
  EXPECT_THAT(pair, HasSubstr("kX = 64;"));
  EXPECT_THAT(pair, HasSubstr("BLOCK_Y 8\n"));
  EXPECT_EQ(Find(answer, "tune_constant(kWarpSize"), nullptr);
  EXPECT_EQ(Find(answer, "tune_constant(kOdd"), nullptr);

  std::string full = before;
  full.replace(full.find("kX = 32"), 7, "kX = 64");
  EXPECT_THAT(WhyNot(Ask(full), "tune_constant(kX=128)"), HasSubstr("2048 threads"));
}

TEST(TuneConstant, SharedMemoryLimit) {
  const std::string before = Program(R"(constexpr int kTile = 64;
__global__ void K(const float* a, float* c) {
  __shared__ float sh[kTile][kTile];
  sh[threadIdx.x][0] = a[threadIdx.x];
  c[threadIdx.x] = sh[threadIdx.x][0];
}
)",
                                     "  K<<<1, 64, 0, stream>>>(args->a, args->c);");
  // 128 * 128 * 4 bytes
  EXPECT_THAT(WhyNot(Ask(before), "tune_constant(kTile=128)"), HasSubstr("65536 bytes"));
  EXPECT_THAT(Result(Ask(before), "tune_constant(kTile=32)"), HasSubstr("kTile = 32"));
}

}  // namespace
}  // namespace kernelpro::playbook
