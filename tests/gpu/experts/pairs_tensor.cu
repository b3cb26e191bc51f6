// SPDX-License-Identifier: Apache-2.0
// Pairs about matrix products in bf16: no tensor cores, tensor cores without operand reuse, and
// a staged tile copied without overlap.
#include <cuda_pipeline.h>
#include <mma.h>

#include "pairs.h"

using Bf16 = __nv_bfloat16;
namespace wmma = nvcuda::wmma;
using FragA = wmma::fragment<wmma::matrix_a, 16, 16, 16, Bf16, wmma::row_major>;
using FragB = wmma::fragment<wmma::matrix_b, 16, 16, 16, Bf16, wmma::row_major>;
using FragC = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

constexpr int kPitchA = 40, kPitchB = 136;

/// A tile of 128 x 32 of A and of 32 x 128 of B, 16 bytes a copy.
__device__ void CopyTiles(const Bf16* a, const Bf16* b, Bf16* as, Bf16* bs, int k, int n, int kk,
                          bool async) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int i = threadIdx.x + r * 256;
    Bf16* to_a = as + i / 4 * kPitchA + i % 4 * 8;
    Bf16* to_b = bs + i / 16 * kPitchB + i % 16 * 8;
    const Bf16* from_a = a + size_t(blockIdx.y * 128 + i / 4) * k + kk + i % 4 * 8;
    const Bf16* from_b = b + size_t(kk + i / 16) * n + blockIdx.x * 128 + i % 16 * 8;
    if (async) {
      __pipeline_memcpy_async(to_a, from_a, 16);
      __pipeline_memcpy_async(to_b, from_b, 16);
    } else {
      *reinterpret_cast<uint4*>(to_a) = *reinterpret_cast<const uint4*>(from_a);
      *reinterpret_cast<uint4*>(to_b) = *reinterpret_cast<const uint4*>(from_b);
    }
  }
}

/// One warp multiplies 32 x 64 of the block's 128 x 128.
__device__ void Multiply(const Bf16* as, const Bf16* bs, FragC (&c)[2][4]) {
  const int warp = threadIdx.x / 32, row = warp / 2 * 32, col = warp % 2 * 64;
#pragma unroll
  for (int p = 0; p < 32; p += 16) {
    FragA a[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      wmma::load_matrix_sync(a[i], as + (row + i * 16) * kPitchA + p, kPitchA);
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      FragB b;
      wmma::load_matrix_sync(b, bs + p * kPitchB + col + j * 16, kPitchB);
      wmma::mma_sync(c[0][j], a[0], b, c[0][j]);
      wmma::mma_sync(c[1][j], a[1], b, c[1][j]);
    }
  }
}

__device__ void Clear(FragC (&c)[2][4]) {
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    wmma::fill_fragment(c[i / 4][i % 4], 0.0f);
  }
}

__device__ void Store(float* out, int n, FragC (&c)[2][4]) {
  const int warp = threadIdx.x / 32, row = warp / 2 * 32, col = warp % 2 * 64;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    float* to = out + size_t(blockIdx.y * 128 + row + i / 4 * 16) * n + blockIdx.x * 128 + col +
                i % 4 * 16;
    wmma::store_matrix_sync(to, c[i / 4][i % 4], n, wmma::mem_row_major);
  }
}

__device__ void Pipelined(const Bf16* a, const Bf16* b, float* out, int k, int n) {
  __shared__ __align__(32) Bf16 as[2][128 * kPitchA], bs[2][32 * kPitchB];
  FragC c[2][4];
  Clear(c);
  CopyTiles(a, b, as[0], bs[0], k, n, 0, true);
  __pipeline_commit();
  for (int kk = 0; kk < k; kk += 32) {
    const int now = kk / 32 % 2;
    __pipeline_wait_prior(0);
    __syncthreads();
    if (kk + 32 < k) {
      CopyTiles(a, b, as[1 - now], bs[1 - now], k, n, kk + 32, true);
    }
    __pipeline_commit();
    Multiply(as[now], bs[now], c);
  }
  Store(out, n, c);
}

// The MLP of a small model on FFMA (8 x 8 outputs a thread), or on tensor cores.
KERNEL __launch_bounds__(256)
    mlp__bad(const Bf16* __restrict__ a, const Bf16* __restrict__ b, float* __restrict__ out,
             int k, int n) {
  __shared__ __align__(16) float as[16][132], bs[16][132];
  const int t = threadIdx.x, row = t / 16 * 4, col = t % 16 * 4;
  float c[8][8] = {};
  for (int kk = 0; kk < k; kk += 16) {
#pragma unroll
    for (int r = 0; r < 8; ++r) {
      const int i = t + r * 256;
      as[i % 16][i / 16] = __bfloat162float(a[size_t(blockIdx.y * 128 + i / 16) * k + kk + i % 16]);
      bs[i / 128][i % 128] =
          __bfloat162float(b[size_t(kk + i / 128) * n + blockIdx.x * 128 + i % 128]);
    }
    __syncthreads();
#pragma unroll
    for (int p = 0; p < 16; ++p) {
      float x[8], y[8];
      *reinterpret_cast<float4*>(x) = *reinterpret_cast<float4*>(&as[p][row]);
      *reinterpret_cast<float4*>(x + 4) = *reinterpret_cast<float4*>(&as[p][row + 64]);
      *reinterpret_cast<float4*>(y) = *reinterpret_cast<float4*>(&bs[p][col]);
      *reinterpret_cast<float4*>(y + 4) = *reinterpret_cast<float4*>(&bs[p][col + 64]);
#pragma unroll
      for (int i = 0; i < 64; ++i) {
        c[i / 8][i % 8] += x[i / 8] * y[i % 8];
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    float* to = out + size_t(blockIdx.y * 128 + row + i % 4 + i / 4 * 64) * n + blockIdx.x * 128;
    *reinterpret_cast<float4*>(to + col) = make_float4(c[i][0], c[i][1], c[i][2], c[i][3]);
    *reinterpret_cast<float4*>(to + col + 64) = make_float4(c[i][4], c[i][5], c[i][6], c[i][7]);
  }
}

KERNEL __launch_bounds__(256, 2)
    mlp__good(const Bf16* a, const Bf16* b, float* out, int k, int n) {
  Pipelined(a, b, out, k, n);
}

// Every warp feeds one 16 x 16 product from global memory, or from a shared tile of the block.
KERNEL project__bad(const Bf16* __restrict__ a, const Bf16* __restrict__ b,
                    float* __restrict__ out, int k, int n) {
  const int warp = threadIdx.x / 32;
  const int row = (blockIdx.y * 2 + warp / 4) * 16, col = (blockIdx.x * 4 + warp % 4) * 16;
  FragC c;
  wmma::fill_fragment(c, 0.0f);
#pragma unroll 1
  for (int kk = 0; kk < k; kk += 16) {
    FragA x;
    FragB y;
    wmma::load_matrix_sync(x, a + size_t(row) * k + kk, k);
    wmma::load_matrix_sync(y, b + size_t(kk) * n + col, n);
    wmma::mma_sync(c, x, y, c);
  }
  wmma::store_matrix_sync(out + size_t(row) * n + col, c, n, wmma::mem_row_major);
}

KERNEL __launch_bounds__(256, 2)
    project__good(const Bf16* a, const Bf16* b, float* out, int k, int n) {
  Pipelined(a, b, out, k, n);
}

// The same tile loop, copied through registers between two barriers, or asynchronously.
KERNEL __launch_bounds__(256, 2)
    staged__bad(const Bf16* a, const Bf16* b, float* out, int k, int n) {
  __shared__ __align__(32) Bf16 as[128 * kPitchA], bs[32 * kPitchB];
  FragC c[2][4];
  Clear(c);
#pragma unroll 1
  for (int kk = 0; kk < k; kk += 32) {
    CopyTiles(a, b, as, bs, k, n, kk, false);
    __syncthreads();
    Multiply(as, bs, c);
    __syncthreads();
  }
  Store(out, n, c);
}

KERNEL __launch_bounds__(256, 2)
    staged__good(const Bf16* a, const Bf16* b, float* out, int k, int n) {
  Pipelined(a, b, out, k, n);
}

int main(int argc, char** argv) {
  const int m = 4096, n = 2048, k = 2048;
  Bf16* a = suite::Buffer<Bf16>(size_t(m) * k, suite::Fill::kBf16);
  Bf16* b = suite::Buffer<Bf16>(size_t(k) * n, suite::Fill::kBf16, 2);
  float* out = suite::Buffer<float>(size_t(m) * n, suite::Fill::kZero);
  const dim3 grid(n / 128, m / 128);
  pairs::Add(
      "mlp", [=] { mlp__bad<<<grid, 256>>>(a, b, out, k, n); },
      [=] { mlp__good<<<grid, 256>>>(a, b, out, k, n); }, out, size_t(m) * n);
  pairs::Add(
      "project", [=] { project__bad<<<dim3(n / 64, m / 32), 256>>>(a, b, out, k, n); },
      [=] { project__good<<<grid, 256>>>(a, b, out, k, n); }, out, size_t(m) * n);
  pairs::Add(
      "staged", [=] { staged__bad<<<grid, 256>>>(a, b, out, k, n); },
      [=] { staged__good<<<grid, 256>>>(a, b, out, k, n); }, out, size_t(m) * n);
  return pairs::Main(argc, argv);
}
