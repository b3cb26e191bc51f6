// SPDX-License-Identifier: Apache-2.0
// flags: -gencode arch=compute_90a,code=sm_90a
// A validation pair about the older path to the tensor cores.
#include <cuda_pipeline.h>
#include <mma.h>

#include "pairs.h"
#include "wgmma.h"

// C (m x n, fp32) = A (m x k) * B^T (B is n x k), bf16: the good kernel's ring is filled by TMA,
// two warpgroups multiply a tile of 128 x 256.
constexpr int kStages = 4, kStep = 64, kTileM = 128, kTileN = 256;
constexpr int kBytesA = kTileM * kStep * 2, kBytesB = kTileN * kStep * 2;
constexpr int kRingBytes = kStages * (kBytesA + kBytesB) + 1024;

INLINE void Product(const CUtensorMap* ma, const CUtensorMap* mb, float* c, int n, int depth) {
  extern __shared__ uint8_t raw[];
  uint8_t* as = raw + (1024 - SharedAddress(raw) % 1024) % 1024;
  uint8_t* bs = as + kStages * kBytesA;
  __shared__ __align__(8) uint64_t full[kStages], empty[kStages];
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      BarrierInit(&full[s], 1);
      BarrierInit(&empty[s], 2);
    }
    BarrierFence();
  }
  __syncthreads();
  const int group = threadIdx.x / 128, steps = depth / kStep;
  // groups of 8 tile rows, so that neighbouring blocks share operands in L2
  const int tiles_n = n / kTileN, in_group = 8 * tiles_n;
  const int tm = blockIdx.x / in_group * 8 + blockIdx.x % 8, tn = blockIdx.x % in_group / 8;
  if (group == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0) {
      for (int i = 0; i < steps; ++i) {
        const int s = i % kStages;
        if (i >= kStages) {
          BarrierWait(&empty[s], (i / kStages - 1) & 1);
        }
        BarrierExpect(&full[s], kBytesA + kBytesB);
        TmaLoad(as + s * kBytesA, ma, &full[s], i * kStep, tm * kTileM);
        TmaLoad(bs + s * kBytesB, mb, &full[s], i * kStep, tn * kTileN);
      }
    }
    return;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  float d[128];
#pragma unroll
  for (int i = 0; i < 128; ++i) {
    d[i] = 0;
  }
#pragma unroll 1
  for (int i = 0; i < steps; ++i) {
    const int s = i % kStages;
    BarrierWait(&full[s], (i / kStages) & 1);
    MmaFence();
#pragma unroll
    for (int k = 0; k < kStep / 16; ++k) {
      MmaShared256(d, Descriptor(as + s * kBytesA + (group - 1) * 8192 + k * 32),
                   Descriptor(bs + s * kBytesB + k * 32));
    }
    MmaCommit();
    MmaWait<1>();
    const int done = i - 1;
    if (done >= 0 && threadIdx.x % 128 == 0) {
      BarrierArrive(&empty[done % kStages]);
    }
  }
  MmaWait<0>();
  const int warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
  const int row = tm * kTileM + (group - 1) * 64 + warp * 16 + lane / 4;
#pragma unroll
  for (int j = 0; j < 32; ++j) {
    float* p = c + size_t(row) * n + tn * kTileN + j * 8 + lane % 4 * 2;
    *reinterpret_cast<float2*>(p) = make_float2(d[j * 4], d[j * 4 + 1]);
    *reinterpret_cast<float2*>(p + size_t(8) * n) = make_float2(d[j * 4 + 2], d[j * 4 + 3]);
  }
}

KERNEL __launch_bounds__(384, 1)
    attnproj__good(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
                   float* c, int n, int depth) {
  Product(&a, &b, c, n, depth);
}

namespace wmma = nvcuda::wmma;
using Bf16 = __nv_bfloat16;
constexpr int kPitch = 40, kTile = 128 * kPitch, kRing = 4;
constexpr int kWmmaBytes = kRing * 2 * kTile * 2;

/// 128 rows of 32 elements of A and of B, 16 bytes a copy.
__device__ void Fetch(const Bf16* a, const Bf16* b, Bf16* tile, int k) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int i = threadIdx.x + r * 256, row = i / 4, col = i % 4 * 8;
    __pipeline_memcpy_async(tile + row * kPitch + col, a + size_t(row) * k + col, 16);
    __pipeline_memcpy_async(tile + kTile + row * kPitch + col, b + size_t(row) * k + col, 16);
  }
}

KERNEL __launch_bounds__(256, 2)
    attnproj__bad(const Bf16* __restrict__ a, const Bf16* __restrict__ b, float* __restrict__ c,
                  int n, int k) {
  extern __shared__ __align__(128) Bf16 ring[];
  const int tiles_n = n / 128, in_group = 8 * tiles_n;
  const int tm = blockIdx.x / in_group * 8 + blockIdx.x % 8, tn = blockIdx.x % in_group / 8;
  const Bf16 *from_a = a + size_t(tm) * 128 * k, *from_b = b + size_t(tn) * 128 * k;
  const int warp = threadIdx.x / 32, row = warp / 2 * 32, col = warp % 2 * 64, steps = k / 32;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[2][4];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    wmma::fill_fragment(sum[i / 4][i % 4], 0.0f);
  }
  for (int s = 0; s < kRing - 1; ++s) {
    Fetch(from_a + s * 32, from_b + s * 32, ring + s * 2 * kTile, k);
    __pipeline_commit();
  }
  for (int s = 0; s < steps; ++s) {
    __pipeline_wait_prior(kRing - 2);
    __syncthreads();
    const int next = s + kRing - 1;
    if (next < steps) {
      Fetch(from_a + next * 32, from_b + next * 32, ring + next % kRing * 2 * kTile, k);
    }
    __pipeline_commit();
    const Bf16* as = ring + s % kRing * 2 * kTile;
    const Bf16* bs = as + kTile;
#pragma unroll
    for (int p = 0; p < 32; p += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, Bf16, wmma::row_major> x[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        wmma::load_matrix_sync(x[i], as + (row + i * 16) * kPitch + p, kPitch);
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        wmma::fragment<wmma::matrix_b, 16, 16, 16, Bf16, wmma::col_major> y;
        wmma::load_matrix_sync(y, bs + (col + j * 16) * kPitch + p, kPitch);
        wmma::mma_sync(sum[0][j], x[0], y, sum[0][j]);
        wmma::mma_sync(sum[1][j], x[1], y, sum[1][j]);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    wmma::store_matrix_sync(
        c + size_t(tm * 128 + row + i / 4 * 16) * n + tn * 128 + col + i % 4 * 16,
        sum[i / 4][i % 4], n, wmma::mem_row_major);
  }
}

int main(int argc, char** argv) {
  const int m = 8192, n = 3072, k = 2048;
  Bf16* a = suite::Buffer<Bf16>(size_t(m) * k, suite::Fill::kBf16, 1);
  Bf16* b = suite::Buffer<Bf16>(size_t(n) * k, suite::Fill::kBf16, 2);
  float* c = suite::Buffer<float>(size_t(m) * n, suite::Fill::kZero);
  const CUtensorMap ma = MatrixMap(a, m, k, kTileM), mb = MatrixMap(b, n, k, kTileN);
  CHECK(cudaFuncSetAttribute(attnproj__good, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             kRingBytes));
  CHECK(
      cudaFuncSetAttribute(attnproj__bad, cudaFuncAttributeMaxDynamicSharedMemorySize, kWmmaBytes));
  pairs::Add(
      "attnproj", [=] { attnproj__bad<<<m / 128 * (n / 128), 256, kWmmaBytes>>>(a, b, c, n, k); },
      [=] { attnproj__good<<<m / kTileM*(n / kTileN), 384, kRingBytes>>>(ma, mb, c, n, k); }, c,
      size_t(m) * n);
  return pairs::Main(argc, argv);
}
