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
    wmma::store_matrix_sync(
        out + size_t(blockIdx.y * 128 + row + i / 2 * 16) * n + blockIdx.x * 128 + col + i % 2 * 16,
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

int main(int argc, char** argv) {
  AddCovariance();
  return pairs::Main(argc, argv);
}
