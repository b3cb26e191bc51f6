// SPDX-License-Identifier: Apache-2.0
// Holdout pairs about matrix products on the ordinary pipes.
#include <mma.h>

#include "pairs.h"

namespace wmma = nvcuda::wmma;
using Half = __half;

/// A slab of 32 of the depth, 128 columns of each of two operands stored as depth x n.
__device__ void Stage(Half (*as)[136], Half (*bs)[136], const Half* a, const Half* b, int n) {
  for (int i = threadIdx.x; i < 32 * 16; i += 256) {
    const int r = i / 16, c = i % 16 * 8;
    *reinterpret_cast<uint4*>(&as[r][c]) = *reinterpret_cast<const uint4*>(a + size_t(r) * n + c);
    *reinterpret_cast<uint4*>(&bs[r][c]) = *reinterpret_cast<const uint4*>(b + size_t(r) * n + c);
  }
}

// Covariances X^T X of halves, 128 x 128 results a block: on FFMA with 8 x 8 results a thread, or
// on tensor cores.
KERNEL __launch_bounds__(256)
    covariance__bad(const Half* __restrict__ x, float* __restrict__ out, int depth, int n) {
  __shared__ __align__(32) Half as[32][136], bs[32][136];
  const int row = threadIdx.x / 16 * 8, col = threadIdx.x % 16 * 8;
  float s[8][8] = {};
  for (int k = 0; k < depth; k += 32) {
    Stage(as, bs, x + size_t(k) * n + blockIdx.y * 128, x + size_t(k) * n + blockIdx.x * 128, n);
    __syncthreads();
#pragma unroll 4
    for (int d = 0; d < 32; ++d) {
      const uint4 ra = *reinterpret_cast<const uint4*>(&as[d][row]);
      const uint4 rb = *reinterpret_cast<const uint4*>(&bs[d][col]);
      const Half *a = reinterpret_cast<const Half*>(&ra), *b = reinterpret_cast<const Half*>(&rb);
#pragma unroll
      for (int i = 0; i < 64; ++i) {
        s[i / 8][i % 8] = fmaf(__half2float(a[i / 8]), __half2float(b[i % 8]), s[i / 8][i % 8]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 64; ++i) {
    out[size_t(blockIdx.y * 128 + row + i / 8) * n + blockIdx.x * 128 + col + i % 8] =
        s[i / 8][i % 8];
  }
}

KERNEL __launch_bounds__(256)
    covariance__good(const Half* __restrict__ x, float* __restrict__ out, int depth, int n) {
  __shared__ __align__(32) Half as[32][136], bs[32][136];
  const int warp = threadIdx.x / 32, row = warp / 4 * 64, col = warp % 4 * 32;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> c[4][2];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    wmma::fill_fragment(c[i / 2][i % 2], 0.0f);
  }
  for (int k = 0; k < depth; k += 32) {
    Stage(as, bs, x + size_t(k) * n + blockIdx.y * 128, x + size_t(k) * n + blockIdx.x * 128, n);
    __syncthreads();
#pragma unroll
    for (int d = 0; d < 32; d += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, Half, wmma::col_major> a[4];
      wmma::fragment<wmma::matrix_b, 16, 16, 16, Half, wmma::row_major> b[2];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        wmma::load_matrix_sync(a[i], &as[d][row + i * 16], 136);
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        wmma::load_matrix_sync(b[i], &bs[d][col + i * 16], 136);
      }
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        wmma::mma_sync(c[i / 2][i % 2], a[i / 2], b[i % 2], c[i / 2][i % 2]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    wmma::store_matrix_sync(out + size_t(blockIdx.y * 128 + row + i / 2 * 16) * n +
                                blockIdx.x * 128 + col + i % 2 * 16,
                            c[i / 2][i % 2], n, wmma::mem_row_major);
  }
}

static void AddCovariance() {
  const int depth = 4096, n = 2048;
  Half* x = suite::Buffer<Half>(size_t(depth) * n, suite::Fill::kHalf);
  float* out = suite::Buffer<float>(size_t(n) * n, suite::Fill::kZero);
  const dim3 grid(n / 128, n / 128);
  pairs::Add(
      "covariance", [=] { covariance__bad<<<grid, 256>>>(x, out, depth, n); },
      [=] { covariance__good<<<grid, 256>>>(x, out, depth, n); }, out, size_t(n) * n, 2e-2);
}

// A transform of 16 x 16 blocks of pixels by a fixed matrix: half a row a lane on FFMA, or a product
// of the warp on tensor cores.
KERNEL __launch_bounds__(128)
    blockdct__bad(const Half* __restrict__ in, const Half* __restrict__ basis,
                  float* __restrict__ out, int blocks_per_warp) {
  __shared__ __align__(16) Half t[16][16];
  for (int i = threadIdx.x; i < 256; i += 128) {
    t[i / 16][i % 16] = basis[i];
  }
  __syncthreads();
  const int lane = threadIdx.x % 32, row = lane / 2, half = lane % 2 * 8;
  const int warp = blockIdx.x * 4 + threadIdx.x / 32;
#pragma unroll 1
  for (int b = 0; b < blocks_per_warp; ++b) {
    const size_t base = (size_t(warp) * blocks_per_warp + b) * 256;
    float s[8] = {};
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      const uint4 raw = *reinterpret_cast<const uint4*>(in + base + row * 16 + part * 8);
      const Half* v = reinterpret_cast<const Half*>(&raw);
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        const uint4 w = *reinterpret_cast<const uint4*>(&t[part * 8 + k][half]);
#pragma unroll
        for (int j = 0; j < 8; ++j) {
          s[j] = fmaf(__half2float(v[k]), __half2float(reinterpret_cast<const Half*>(&w)[j]), s[j]);
        }
      }
    }
    float4* to = reinterpret_cast<float4*>(out + base + row * 16 + half);
    to[0] = make_float4(s[0], s[1], s[2], s[3]);
    to[1] = make_float4(s[4], s[5], s[6], s[7]);
  }
}

KERNEL __launch_bounds__(128)
    blockdct__good(const Half* __restrict__ in, const Half* __restrict__ basis,
                   float* __restrict__ out, int blocks_per_warp) {
  wmma::fragment<wmma::matrix_b, 16, 16, 16, Half, wmma::row_major> t;
  wmma::load_matrix_sync(t, basis, 16);
  const int warp = blockIdx.x * 4 + threadIdx.x / 32;
#pragma unroll 1
  for (int b = 0; b < blocks_per_warp; ++b) {
    const size_t base = (size_t(warp) * blocks_per_warp + b) * 256;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, Half, wmma::row_major> v;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    wmma::load_matrix_sync(v, in + base, 16);
    wmma::fill_fragment(c, 0.0f);
    wmma::mma_sync(c, v, t, c);
    wmma::store_matrix_sync(out + base, c, 16, wmma::mem_row_major);
  }
}

static void AddBlockDct() {
  const int blocks = pairs::kSms * 16, per_warp = 32;
  const size_t n = size_t(blocks) * 4 * per_warp * 256;
  Half* in = suite::Buffer<Half>(n, suite::Fill::kHalf);
  Half* basis = suite::Buffer<Half>(256, suite::Fill::kHalf, 4);
  float* out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "blockdct", [=] { blockdct__bad<<<blocks, 128>>>(in, basis, out, per_warp); },
      [=] { blockdct__good<<<blocks, 128>>>(in, basis, out, per_warp); }, out, n, 2e-2);
}

int main(int argc, char** argv) {
  AddCovariance();
  AddBlockDct();
  return pairs::Main(argc, argv);
}
