// SPDX-License-Identifier: Apache-2.0
// Validation pairs about loads and dependent operations that nothing overlaps.
#include <cuda_pipeline.h>

#include "pairs.h"

static void AllowShared(const void* kernel, int bytes) {
  CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
}

// Product quantisation: codes select rows of a table, which lie at random in 256 MiB. The block
// asks for shared memory for the largest configuration (100 KiB), or for what it uses.
__device__ void Codes(const unsigned* __restrict__ code, const float* __restrict__ table,
                      float* __restrict__ out, int per_thread) {
  extern __shared__ float weight[];
  weight[threadIdx.x] = 1.0f / (1 + threadIdx.x);
  __syncthreads();
#pragma unroll 1
  for (int k = 0; k < per_thread; ++k) {
    const int i = (blockIdx.x * per_thread + k) * 64 + threadIdx.x;
    const unsigned c = code[i];
    out[i] = table[c & 0x3ffffff] * weight[c >> 26];
  }
}

KERNEL codes__bad(const unsigned* code, const float* table, float* out, int per_thread) {
  Codes(code, table, out, per_thread);
}

KERNEL codes__good(const unsigned* code, const float* table, float* out, int per_thread) {
  Codes(code, table, out, per_thread);
}

static void AddCodes() {
  const int blocks = 16384, per_thread = 8, n = blocks * per_thread * 64, large = 100 << 10;
  unsigned* code = suite::Buffer<unsigned>(n, suite::Fill::kBits);
  float* table = suite::Buffer<float>(64 << 20);
  float* out = suite::Buffer<float>(n, suite::Fill::kZero);
  AllowShared(reinterpret_cast<const void*>(codes__bad), large);
  pairs::Add(
      "codes", [=] { codes__bad<<<blocks, 64, large>>>(code, table, out, per_thread); },
      [=] { codes__good<<<blocks, 64, 256>>>(code, table, out, per_thread); }, out, n);
}

// Rank of keys in a sorted array of 4 Mi by bisection: one key after the other in each of four
// warps an SM, or eight side by side.
template <int kSide>
__device__ void Bisect(const unsigned* __restrict__ sorted, const unsigned* __restrict__ key,
                       unsigned* __restrict__ out, int per_thread) {
  const int stride = gridDim.x * blockDim.x, first = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll 1
  for (int k = 0; k < per_thread; k += kSide) {
    unsigned at[kSide], wanted[kSide];
#pragma unroll
    for (int j = 0; j < kSide; ++j) {
      wanted[j] = key[first + (k + j) * stride];
      at[j] = 0;
    }
#pragma unroll 1
    for (int step = 1 << 21; step > 0; step /= 2) {
#pragma unroll
      for (int j = 0; j < kSide; ++j) {
        at[j] += sorted[at[j] + step] <= wanted[j] ? step : 0;
      }
    }
#pragma unroll
    for (int j = 0; j < kSide; ++j) {
      out[first + (k + j) * stride] = at[j];
    }
  }
}

KERNEL bisect__bad(const unsigned* sorted, const unsigned* key, unsigned* out, int per_thread) {
  Bisect<1>(sorted, key, out, per_thread);
}

KERNEL bisect__good(const unsigned* sorted, const unsigned* key, unsigned* out, int per_thread) {
  Bisect<8>(sorted, key, out, per_thread);
}

static void AddBisect() {
  const int size = 4 << 20, per_thread = 64, n = pairs::kSms * 128 * per_thread;
  std::vector<unsigned> sorted(size);
  for (int i = 0; i < size; ++i) {
    sorted[i] = static_cast<unsigned>(i) * 1023u + i % 7;
  }
  const unsigned* d_sorted = pairs::Upload(sorted);
  unsigned* key = suite::Buffer<unsigned>(n, suite::Fill::kBits);
  unsigned* out = suite::Buffer<unsigned>(n, suite::Fill::kZero);
  pairs::Add(
      "bisect", [=] { bisect__bad<<<pairs::kSms, 128>>>(d_sorted, key, out, per_thread); },
      [=] { bisect__good<<<pairs::kSms, 128>>>(d_sorted, key, out, per_thread); }, out, n, 0);
}

// Scalar product of doubles on 8 warps an SM: one pair of loads under way a warp, or eight.
template <int kBatch>
__device__ void Dot(const double* __restrict__ a, const double* __restrict__ b, double* out,
                    int per_thread) {
  const size_t base = size_t(blockIdx.x) * per_thread * 256 + threadIdx.x;
  double s = 0;
#pragma unroll 1
  for (int k = 0; k < per_thread; k += kBatch) {
    double x[kBatch], y[kBatch];
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      x[j] = a[base + (k + j) * 256];
      y[j] = b[base + (k + j) * 256];
    }
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      s += x[j] * y[j];
    }
  }
  out[blockIdx.x * 256 + threadIdx.x] = s;
}

KERNEL dotd__bad(const double* a, const double* b, double* out, int per_thread) {
  Dot<1>(a, b, out, per_thread);
}

KERNEL dotd__good(const double* a, const double* b, double* out, int per_thread) {
  Dot<8>(a, b, out, per_thread);
}

static void AddDot() {
  const int per_thread = 1024;
  const size_t n = size_t(pairs::kSms) * 256 * per_thread;
  std::vector<double> host(n);
  for (size_t i = 0; i < n; ++i) {
    host[i] = static_cast<double>(i % 1021) * 0.001;
  }
  double *a = pairs::Upload(host), *b = pairs::Upload(host);
  double* out = suite::Buffer<double>(pairs::kSms * 256, suite::Fill::kZero);
  pairs::Add(
      "dotd", [=] { dotd__bad<<<pairs::kSms, 256>>>(a, b, out, per_thread); },
      [=] { dotd__good<<<pairs::kSms, 256>>>(a, b, out, per_thread); }, out, pairs::kSms * 256,
      1e-9);
}

// Sliding-window attention sums of a query a thread: tiles of 32 keys of 64 floats pass through
// registers between two barriers, or arrive by cp.async two tiles ahead.
constexpr int kKeys = 32, kDim = 64, kTile = kKeys * kDim;

__device__ float TileScore(const float* tile, const float (&q)[kDim / 2], int half) {
  float sum = 0;
#pragma unroll 4
  for (int k = 0; k < kKeys; ++k) {
    float s = 0;
#pragma unroll
    for (int d = 0; d < kDim / 2; d += 4) {
      const float4 v = *reinterpret_cast<const float4*>(tile + k * kDim + half * (kDim / 2) + d);
      s += q[d] * v.x + q[d + 1] * v.y + q[d + 2] * v.z + q[d + 3] * v.w;
    }
    sum += fmaxf(s, 0.0f);
  }
  return sum;
}

template <bool kAsync>
__device__ void Window(const float* __restrict__ query, const float* __restrict__ key,
                       float* __restrict__ out, int tiles) {
  __shared__ __align__(16) float tile[kAsync ? 4 : 1][kTile];
  const int half = threadIdx.x / 64, t = threadIdx.x;
  float q[kDim / 2];
#pragma unroll
  for (int d = 0; d < kDim / 2; ++d) {
    q[d] = query[(blockIdx.x * kDim + half * (kDim / 2) + d) * 64 + t % 64];
  }
  const float4* from = reinterpret_cast<const float4*>(key + size_t(blockIdx.x) * tiles * kTile);
  float sum = 0;
  if constexpr (kAsync) {
    auto fetch = [&](int i) {
      if (i < tiles) {
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          __pipeline_memcpy_async(tile[i % 4] + (k * 128 + t) * 4, from + i * 512 + k * 128 + t,
                                  16);
        }
      }
      __pipeline_commit();
    };
    fetch(0), fetch(1), fetch(2);
    for (int i = 0; i < tiles; ++i) {
      __pipeline_wait_prior(2);
      __syncthreads();
      fetch(i + 3);
      sum += TileScore(tile[i % 4], q, half);
    }
  } else {
    for (int i = 0; i < tiles; ++i) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        *reinterpret_cast<float4*>(tile[0] + (k * 128 + t) * 4) = from[i * 512 + k * 128 + t];
      }
      __syncthreads();
      sum += TileScore(tile[0], q, half);
      __syncthreads();
    }
  }
  out[blockIdx.x * 128 + t] = sum;
}

KERNEL window__bad(const float* query, const float* key, float* out, int tiles) {
  Window<false>(query, key, out, tiles);
}

KERNEL window__good(const float* query, const float* key, float* out, int tiles) {
  Window<true>(query, key, out, tiles);
}

static void AddWindow() {
  const int blocks = pairs::kSms, tiles = 256;
  float* query = suite::Buffer<float>(blocks * kDim * 64);
  float* key = suite::Buffer<float>(size_t(blocks) * tiles * kTile);
  float* out = suite::Buffer<float>(blocks * 128, suite::Fill::kZero);
  pairs::Add(
      "window", [=] { window__bad<<<blocks, 128>>>(query, key, out, tiles); },
      [=] { window__good<<<blocks, 128>>>(query, key, out, tiles); }, out, blocks * 128);
}

// A polynomial of degree 4095 by Horner's rule, or by eight interleaved ones (one warp a
// scheduler in both).
KERNEL estrin__bad(const float* __restrict__ x, float* __restrict__ out, int repeat) {
  __shared__ __align__(16) float c[4096];
  for (int i = threadIdx.x; i < 4096; i += 128) {
    c[i] = 1.0f / (1 + i % 61);
  }
  __syncthreads();
  for (int r = 0; r < repeat; ++r) {
    const int at = (blockIdx.x * repeat + r) * 128 + threadIdx.x;
    const float v = 0.95f * x[at];
    float s = 0;
#pragma unroll 4
    for (int k = 4092; k >= 0; k -= 4) {
      const float4 f = *reinterpret_cast<const float4*>(c + k);
      s = (((s * v + f.w) * v + f.z) * v + f.y) * v + f.x;
    }
    out[at] = s;
  }
}

KERNEL estrin__good(const float* __restrict__ x, float* __restrict__ out, int repeat) {
  __shared__ __align__(16) float c[4096];
  for (int i = threadIdx.x; i < 4096; i += 128) {
    c[i] = 1.0f / (1 + i % 61);
  }
  __syncthreads();
  for (int r = 0; r < repeat; ++r) {
    const int at = (blockIdx.x * repeat + r) * 128 + threadIdx.x;
    const float v = 0.95f * x[at], v2 = v * v, v4 = v2 * v2, v8 = v4 * v4;
    float s[8] = {};
#pragma unroll 4
    for (int k = 4088; k >= 0; k -= 8) {
      const float4 f = *reinterpret_cast<const float4*>(c + k);
      const float4 g = *reinterpret_cast<const float4*>(c + k + 4);
      const float t[8] = {f.x, f.y, f.z, f.w, g.x, g.y, g.z, g.w};
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        s[j] = s[j] * v8 + t[j];
      }
    }
    out[at] = ((s[0] + v * s[1]) + v2 * (s[2] + v * s[3])) +
              v4 * ((s[4] + v * s[5]) + v2 * (s[6] + v * s[7]));
  }
}

static void AddEstrin() {
  const int repeat = 32, n = pairs::kSms * repeat * 128;
  float *x = suite::Buffer<float>(n), *out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "estrin", [=] { estrin__bad<<<pairs::kSms, 128>>>(x, out, repeat); },
      [=] { estrin__good<<<pairs::kSms, 128>>>(x, out, repeat); }, out, n);
}

int main(int argc, char** argv) {
  AddCodes();
  AddBisect();
  AddDot();
  AddWindow();
  AddEstrin();
  return pairs::Main(argc, argv);
}
