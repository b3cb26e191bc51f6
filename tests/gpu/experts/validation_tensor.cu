// SPDX-License-Identifier: Apache-2.0
// Validation pairs about matrix products: on the packed or integer pipes, or on tensor cores that
// wait for their operands.
#include <mma.h>

#include "pairs.h"

namespace wmma = nvcuda::wmma;
using Half = __half;
using FragA = wmma::fragment<wmma::matrix_a, 16, 16, 16, Half, wmma::row_major>;
using FragB = wmma::fragment<wmma::matrix_b, 16, 16, 16, Half, wmma::row_major>;
using FragC = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

/// Copies ROWS x COLS (bytes) to shared memory, 16 bytes a lane; pitches in bytes.
template <int kRows, int kBytes, int kPitch>
__device__ void Stage(void* to, const void* from, size_t pitch) {
  for (int i = threadIdx.x; i < kRows * (kBytes / 16); i += 256) {
    const int r = i / (kBytes / 16), c = i % (kBytes / 16) * 16;
    *reinterpret_cast<uint4*>(static_cast<char*>(to) + r * kPitch + c) =
        *reinterpret_cast<const uint4*>(static_cast<const char*>(from) + r * pitch + c);
  }
}

/// 64 x 128 results of a block of 8 warps from shared tiles of depth 32, on tensor cores.
__device__ void HalfTile(const Half* __restrict__ a, const Half* __restrict__ b,
                         float* __restrict__ out, int k, int n) {
  __shared__ __align__(32) Half as[64 * 40], bs[32 * 136];
  const int warp = threadIdx.x / 32, row = warp / 4 * 32, col = warp % 4 * 32;
  FragC c[2][2];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    wmma::fill_fragment(c[i / 2][i % 2], 0.0f);
  }
  for (int kk = 0; kk < k; kk += 32) {
    Stage<64, 64, 80>(as, a + size_t(blockIdx.y) * 64 * k + kk, size_t(k) * 2);
    Stage<32, 256, 272>(bs, b + size_t(kk) * n + blockIdx.x * 128, size_t(n) * 2);
    __syncthreads();
#pragma unroll
    for (int p = 0; p < 32; p += 16) {
      FragA x[2];
      FragB y[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        wmma::load_matrix_sync(x[i], as + (row + i * 16) * 40 + p, 40);
        wmma::load_matrix_sync(y[i], bs + p * 136 + col + i * 16, 136);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        wmma::mma_sync(c[i / 2][i % 2], x[i / 2], y[i % 2], c[i / 2][i % 2]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    wmma::store_matrix_sync(
        out + size_t(blockIdx.y * 64 + row + i / 2 * 16) * n + blockIdx.x * 128 + col + i % 2 * 16,
        c[i / 2][i % 2], n, wmma::mem_row_major);
  }
}

// 1 x 1 convolution of fp16 pixels by packed multiply-adds (8 columns in 4 rows a thread), summed
// in float every 16 channels, or on tensor cores.
KERNEL __launch_bounds__(256) pointwise__bad(const Half* __restrict__ a, const Half* __restrict__ b,
                                             float* __restrict__ out, int k, int n) {
  __shared__ __align__(16) Half as[64 * 24], bs[16 * 128];
  const int row = threadIdx.x / 16 * 4, col = threadIdx.x % 16 * 8;
  float sum[4][8] = {};
  for (int kk = 0; kk < k; kk += 16) {
    Stage<64, 32, 48>(as, a + size_t(blockIdx.y) * 64 * k + kk, size_t(k) * 2);
    Stage<16, 256, 256>(bs, b + size_t(kk) * n + blockIdx.x * 128, size_t(n) * 2);
    __syncthreads();
    __half2 c[4][4] = {};
#pragma unroll
    for (int p = 0; p < 16; ++p) {
      const uint4 raw = *reinterpret_cast<uint4*>(bs + p * 128 + col);
      const __half2* y = reinterpret_cast<const __half2*>(&raw);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const __half2 x = __half2half2(as[(row + i) * 24 + p]);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          c[i][j] = __hfma2(x, y[j], c[i][j]);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      sum[i / 4][i % 4 * 2] += __low2float(c[i / 4][i % 4]);
      sum[i / 4][i % 4 * 2 + 1] += __high2float(c[i / 4][i % 4]);
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const float* s = sum[i / 2] + i % 2 * 4;
    *reinterpret_cast<float4*>(out + size_t(blockIdx.y * 64 + row + i / 2) * n + blockIdx.x * 128 +
                               col + i % 2 * 4) = make_float4(s[0], s[1], s[2], s[3]);
  }
}

KERNEL __launch_bounds__(256)
    pointwise__good(const Half* a, const Half* b, float* out, int k, int n) {
  HalfTile(a, b, out, k, n);
}

static void AddPointwise() {
  const int pixels = 12544, k = 1024, n = 1024;
  Half *a = suite::Buffer<Half>(size_t(pixels) * k, suite::Fill::kHalf),
       *b = suite::Buffer<Half>(size_t(k) * n, suite::Fill::kHalf, 6);
  float* out = suite::Buffer<float>(size_t(pixels) * n, suite::Fill::kZero);
  const dim3 grid(n / 128, pixels / 64);
  pairs::Add(
      "pointwise", [=] { pointwise__bad<<<grid, 256>>>(a, b, out, k, n); },
      [=] { pointwise__good<<<grid, 256>>>(a, b, out, k, n); }, out, size_t(pixels) * n, 2e-2);
}

// int8 product of activations (rows) and weights (columns stored as rows): four at a time in
// dp4a with 4 x 4 results a thread, or on tensor cores.
KERNEL __launch_bounds__(256)
    quantised__bad(const signed char* __restrict__ a, const signed char* __restrict__ b,
                   int* __restrict__ out, int k, int n) {
  __shared__ __align__(16) int as[64 * 20], bs[64 * 20];
  const int y = threadIdx.x / 16, x = threadIdx.x % 16;
  int c[4][4] = {};
  for (int kk = 0; kk < k; kk += 64) {
    Stage<64, 64, 80>(as, a + size_t(blockIdx.y) * 64 * k + kk, k);
    Stage<64, 64, 80>(bs, b + size_t(blockIdx.x) * 64 * k + kk, k);
    __syncthreads();
#pragma unroll
    for (int q = 0; q < 16; q += 4) {
      int4 u[4], v[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        u[i] = *reinterpret_cast<int4*>(as + (y * 4 + i) * 20 + q);
        v[i] = *reinterpret_cast<int4*>(bs + (x + 16 * i) * 20 + q);
      }
#pragma unroll
      for (int i = 0; i < 16; ++i) {
        const int4 s = u[i / 4], t = v[i % 4];
        c[i / 4][i % 4] = __dp4a(s.x, t.x, c[i / 4][i % 4]);
        c[i / 4][i % 4] = __dp4a(s.y, t.y, c[i / 4][i % 4]);
        c[i / 4][i % 4] = __dp4a(s.z, t.z, c[i / 4][i % 4]);
        c[i / 4][i % 4] = __dp4a(s.w, t.w, c[i / 4][i % 4]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    out[size_t(blockIdx.y * 64 + y * 4 + i / 4) * n + blockIdx.x * 64 + x + i % 4 * 16] =
        c[i / 4][i % 4];
  }
}

KERNEL __launch_bounds__(256)
    quantised__good(const signed char* __restrict__ a, const signed char* __restrict__ b,
                    int* __restrict__ out, int k, int n) {
  __shared__ __align__(32) signed char as[128 * 80], bs[128 * 80];
  const int warp = threadIdx.x / 32, row = warp / 2 * 32, col = warp % 2 * 64;
  wmma::fragment<wmma::accumulator, 16, 16, 16, int> c[2][4];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    wmma::fill_fragment(c[i / 4][i % 4], 0);
  }
  for (int kk = 0; kk < k; kk += 64) {
    Stage<128, 64, 80>(as, a + size_t(blockIdx.y) * 128 * k + kk, k);
    Stage<128, 64, 80>(bs, b + size_t(blockIdx.x) * 128 * k + kk, k);
    __syncthreads();
#pragma unroll
    for (int p = 0; p < 64; p += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> x[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        wmma::load_matrix_sync(x[i], as + (row + i * 16) * 80 + p, 80);
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> y;
        wmma::load_matrix_sync(y, bs + (col + j * 16) * 80 + p, 80);
        wmma::mma_sync(c[0][j], x[0], y, c[0][j]);
        wmma::mma_sync(c[1][j], x[1], y, c[1][j]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    wmma::store_matrix_sync(
        out + size_t(blockIdx.y * 128 + row + i / 4 * 16) * n + blockIdx.x * 128 + col + i % 4 * 16,
        c[i / 4][i % 4], n, wmma::mem_row_major);
  }
}

static void AddQuantised() {
  const int m = 4096, k = 2048, n = 3072;
  auto* a = suite::Buffer<signed char>(size_t(m) * k, suite::Fill::kBits);
  auto* b = suite::Buffer<signed char>(size_t(n) * k, suite::Fill::kBits, 6);
  int* out = suite::Buffer<int>(size_t(m) * n, suite::Fill::kZero);
  pairs::Add(
      "quantised", [=] { quantised__bad<<<dim3(n / 64, m / 64), 256>>>(a, b, out, k, n); },
      [=] { quantised__good<<<dim3(n / 128, m / 128), 256>>>(a, b, out, k, n); }, out,
      size_t(m) * n, 0);
}

// Router logits of many experts in fp16: each warp loads one 16 x 16 pair of operands from global
// memory, uses it once and waits for the next, or the block shares staged tiles.
KERNEL router__bad(const Half* __restrict__ a, const Half* __restrict__ b, float* __restrict__ out,
                   int k, int n) {
  const int warp = threadIdx.x / 32;
  const size_t row = blockIdx.y * 16, col = (blockIdx.x * 8 + warp) * 16;
  FragC c;
  wmma::fill_fragment(c, 0.0f);
#pragma unroll 1
  for (int kk = 0; kk < k; kk += 16) {
    FragA x;
    FragB y;
    wmma::load_matrix_sync(x, a + row * k + kk, k);
    wmma::load_matrix_sync(y, b + size_t(kk) * n + col, n);
    wmma::mma_sync(c, x, y, c);
  }
  wmma::store_matrix_sync(out + row * n + col, c, n, wmma::mem_row_major);
}

KERNEL __launch_bounds__(256) router__good(const Half* a, const Half* b, float* out, int k, int n) {
  HalfTile(a, b, out, k, n);
}

static void AddRouter() {
  const int tokens = 16384, k = 1536, n = 512;
  Half *a = suite::Buffer<Half>(size_t(tokens) * k, suite::Fill::kHalf),
       *b = suite::Buffer<Half>(size_t(k) * n, suite::Fill::kHalf, 6);
  float* out = suite::Buffer<float>(size_t(tokens) * n, suite::Fill::kZero);
  pairs::Add(
      "router", [=] { router__bad<<<dim3(n / 128, tokens / 16), 256>>>(a, b, out, k, n); },
      [=] { router__good<<<dim3(n / 128, tokens / 64), 256>>>(a, b, out, k, n); }, out,
      size_t(tokens) * n);
}

int main(int argc, char** argv) {
  AddPointwise();
  AddQuantised();
  AddRouter();
  return pairs::Main(argc, argv);
}
