// SPDX-License-Identifier: Apache-2.0
// Short names and the product kernels that several micro programs share.
#pragma once

#include "suite.h"

#define KERNEL extern "C" __global__ void
#define INLINE __device__ __forceinline__

inline int Sms() {
  static const int count = [] {
    int n = 0;
    CHECK(cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, 0));
    return n;
  }();
  return count;
}

constexpr int kN = 1 << 26;  // elements of a stream: 256 MB of float

/// Streams that all cases of a program share.
inline float* In() {
  static float* p = suite::Buffer<float>(kN);
  return p;
}

inline float* Out() {
  static float* p = suite::Buffer<float>(kN, suite::Fill::kZero);
  return p;
}

INLINE int Tid() {
  return blockIdx.x * blockDim.x + threadIdx.x;
}

INLINE int Threads() {
  return gridDim.x * blockDim.x;
}

/// C = A*B (n x n, row-major), one output a thread, everything from global memory.
INLINE void ProductNaive(const float* __restrict__ a, const float* __restrict__ b,
                         float* __restrict__ c, int n) {
  const int col = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  float sum = 0;
  for (int k = 0; k < n; ++k) {
    sum += a[row * n + k] * b[k * n + col];
  }
  c[row * n + col] = sum;
}

/// 32x32 tile in shared memory, one output a thread (block 32x32).
INLINE void ProductTile32(const float* __restrict__ a, const float* __restrict__ b,
                          float* __restrict__ c, int n) {
  __shared__ float as[32][32], bs[32][32];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int col = blockIdx.x * 32 + tx, row = blockIdx.y * 32 + ty;
  float sum = 0;
  for (int t = 0; t < n; t += 32) {
    as[ty][tx] = a[row * n + t + tx];
    bs[ty][tx] = b[(t + ty) * n + col];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 32; ++k) {
      sum += as[ty][k] * bs[k][tx];
    }
    __syncthreads();
  }
  c[row * n + col] = sum;
}

/// 128x128x8 tile, 8x8 outputs a thread (block 256): a tuned fp32 product.
INLINE void ProductTile128(const float* __restrict__ a, const float* __restrict__ b,
                           float* __restrict__ c, int n) {
  __shared__ float as[8][132];
  __shared__ float bs[8][128];
  const int tid = threadIdx.x, tx = tid % 16, ty = tid / 16;
  const int r0 = blockIdx.y * 128, c0 = blockIdx.x * 128;
  float acc[8][8] = {};
  for (int k0 = 0; k0 < n; k0 += 8) {
    const int r = tid / 2, kk = (tid % 2) * 4;
    const float4 v = *reinterpret_cast<const float4*>(&a[(r0 + r) * n + k0 + kk]);
    as[kk][r] = v.x;
    as[kk + 1][r] = v.y;
    as[kk + 2][r] = v.z;
    as[kk + 3][r] = v.w;
    const int kb = tid / 32, cb = (tid % 32) * 4;
    *reinterpret_cast<float4*>(&bs[kb][cb]) =
        *reinterpret_cast<const float4*>(&b[(k0 + kb) * n + c0 + cb]);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      float x[8], y[8];
      *reinterpret_cast<float4*>(x) = *reinterpret_cast<float4*>(&as[k][ty * 4]);
      *reinterpret_cast<float4*>(x + 4) = *reinterpret_cast<float4*>(&as[k][64 + ty * 4]);
      *reinterpret_cast<float4*>(y) = *reinterpret_cast<float4*>(&bs[k][tx * 4]);
      *reinterpret_cast<float4*>(y + 4) = *reinterpret_cast<float4*>(&bs[k][64 + tx * 4]);
#pragma unroll
      for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j) {
          acc[i][j] += x[i] * y[j];
        }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int r = r0 + (i / 4) * 64 + ty * 4 + i % 4;
    float* out = &c[r * n + c0 + tx * 4];
    *reinterpret_cast<float4*>(out) = make_float4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]);
    *reinterpret_cast<float4*>(out + 64) = make_float4(acc[i][4], acc[i][5], acc[i][6], acc[i][7]);
  }
}

INLINE float WarpSum(float v) {
#pragma unroll
  for (int o = 16; o; o >>= 1) {
    v += __shfl_xor_sync(~0u, v, o);
  }
  return v;
}
