// SPDX-License-Identifier: Apache-2.0
// Pairs about how the work is cut into blocks and how its loads overlap.
#include <cuda_pipeline.h>

#include <numeric>

#include "pairs.h"

static void AllowShared(const void* kernel, int bytes) {
  CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
}

// Logistic-map ensemble, one block an SM: 140 long blocks, or 1120 of an eighth.
__device__ void Ensemble(const float* __restrict__ x, float* __restrict__ out, int items) {
  extern __shared__ float state[];
  for (int k = 0; k < items; ++k) {
    const int i = (blockIdx.x * items + k) * 1024 + threadIdx.x;
    float v = 0.5f + 0.25f * x[i];
#pragma unroll 16
    for (int s = 0; s < 2048; ++s) {
      v = 2.9f * v * (1.0f - v);
    }
    state[threadIdx.x] = v;
    __syncthreads();
    out[i] = v + state[threadIdx.x ^ 32];
    __syncthreads();
  }
}

KERNEL __launch_bounds__(1024, 1) ensemble__bad(const float* x, float* out) { Ensemble(x, out, 8); }

KERNEL __launch_bounds__(1024, 1) ensemble__good(const float* x, float* out) {
  Ensemble(x, out, 1);
}

static void AddEnsemble() {
  const int blocks = pairs::kSms + 8, n = blocks * 8 * 1024, bytes = 120 << 10;
  float *x = suite::Buffer<float>(n), *out = suite::Buffer<float>(n, suite::Fill::kZero);
  AllowShared(reinterpret_cast<const void*>(ensemble__bad), bytes);
  AllowShared(reinterpret_cast<const void*>(ensemble__good), bytes);
  pairs::Add(
      "ensemble", [=] { ensemble__bad<<<blocks, 1024, bytes>>>(x, out); },
      [=] { ensemble__good<<<blocks * 8, 1024, bytes>>>(x, out); }, out, n);
}

// Causal kernel sums: block b owns rows of one tile (later rows are longer), or a short tile and
// the long one that complements it.
KERNEL causal__bad(const float* __restrict__ x, float* __restrict__ out) {
  const int r = blockIdx.x * 512 + threadIdx.x;
  const float q = x[r];
  float s = 0;
#pragma unroll 8
  for (int k = 0; k <= r; ++k) {
    s += __expf(-fabsf(q - x[k]));
  }
  out[r] = s;
}

KERNEL causal__good(const float* __restrict__ x, float* __restrict__ out) {
  for (int half = 0; half < 2; ++half) {
    const int tile = half == 0 ? blockIdx.x : 2 * gridDim.x - 1 - blockIdx.x;
    const int r = tile * 256 + threadIdx.x / 2;
    const float q = x[r];
    float s = 0;
#pragma unroll 8
    for (int k = threadIdx.x % 2; k <= r; k += 2) {
      s += __expf(-fabsf(q - x[k]));
    }
    s += __shfl_xor_sync(~0u, s, 1);
    if (threadIdx.x % 2 == 0) {
      out[r] = s;
    }
  }
}

static void AddCausal() {
  const int n = pairs::kSms * 512;
  float *x = suite::Buffer<float>(n), *out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "causal", [=] { causal__bad<<<pairs::kSms, 512>>>(x, out); },
      [=] { causal__good<<<pairs::kSms, 512>>>(x, out); }, out, n);
}

// Sparse matrix times vector with rows of 4 to 2048 entries: a thread or a warp a row.
KERNEL spmv__bad(const int* __restrict__ start, const int* __restrict__ col,
                 const float* __restrict__ value, const float* __restrict__ x,
                 float* __restrict__ y, int rows) {
  const int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < rows) {
    float s = 0;
    for (int j = start[r]; j < start[r + 1]; ++j) {
      s += value[j] * x[col[j]];
    }
    y[r] = s;
  }
}

KERNEL spmv__good(const int* __restrict__ start, const int* __restrict__ col,
                  const float* __restrict__ value, const float* __restrict__ x,
                  float* __restrict__ y, int rows) {
  const int r = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  if (r < rows) {
    float s = 0;
    for (int j = start[r] + threadIdx.x % 32; j < start[r + 1]; j += 32) {
      s += value[j] * x[col[j]];
    }
    s = pairs::WarpSum(s);
    if (threadIdx.x % 32 == 0) {
      y[r] = s;
    }
  }
}

static void AddSpmv() {
  const int rows = 1 << 18;
  std::vector<int> start(rows + 1), col;
  for (int r = 0; r < rows; ++r) {
    const unsigned h = r * 2654435761u >> 8;
    const int length = h % 256 == 0 ? 2048 : h % 16 == 0 ? 128 : 4 + h % 29;
    start[r + 1] = start[r] + length;
    for (int j = 0; j < length; ++j) {
      col.push_back(static_cast<int>((r * 2246822519u ^ j * 3266489917u) % rows));
    }
  }
  const int *d_start = pairs::Upload(start), *d_col = pairs::Upload(col);
  float *value = suite::Buffer<float>(col.size()), *x = suite::Buffer<float>(rows);
  float* y = suite::Buffer<float>(rows, suite::Fill::kZero);
  pairs::Add(
      "spmv", [=] { spmv__bad<<<rows / 256, 256>>>(d_start, d_col, value, x, y, rows); },
      [=] { spmv__good<<<rows / 8, 256>>>(d_start, d_col, value, x, y, rows); }, y, rows);
}

// Rotary embedding of 2 Mi heads of 64: a block of one warp each, or 32 heads a block.
__device__ void RotateHead(const float* __restrict__ x, const float2* __restrict__ table,
                           float* __restrict__ out, int row, int heads) {
  const int lane = threadIdx.x % 32;
  const float2 cs = table[row / heads * 32 + lane];
  const float a = x[row * 64 + lane], b = x[row * 64 + 32 + lane];
  out[row * 64 + lane] = a * cs.x - b * cs.y;
  out[row * 64 + 32 + lane] = b * cs.x + a * cs.y;
}

KERNEL rotate__bad(const float* __restrict__ x, const float2* __restrict__ table,
                   float* __restrict__ out, int heads) {
  RotateHead(x, table, out, blockIdx.x, heads);
}

KERNEL rotate__good(const float* __restrict__ x, const float2* __restrict__ table,
                    float* __restrict__ out, int heads) {
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    RotateHead(x, table, out, blockIdx.x * 32 + k * 8 + threadIdx.x / 32, heads);
  }
}

static void AddRotate() {
  const int rows = 2 << 20, heads = 128;
  float* x = suite::Buffer<float>(size_t(rows) * 64);
  float2* table = suite::Buffer<float2>(rows / heads * 32, suite::Fill::kFloat, 2);
  float* out = suite::Buffer<float>(size_t(rows) * 64, suite::Fill::kZero);
  pairs::Add(
      "rotate", [=] { rotate__bad<<<rows, 32>>>(x, table, out, heads); },
      [=] { rotate__good<<<rows / 32, 256>>>(x, table, out, heads); }, out, size_t(rows) * 64);
}

// Moving average over rows of 512 in a shared buffer made for the longest row ever, or for these.
__device__ void MovingAverage(const float* __restrict__ x, float* __restrict__ out, int rows) {
  extern __shared__ float row[];
  for (int r = blockIdx.x; r < rows; r += gridDim.x) {
    for (int c = threadIdx.x; c < 520; c += 64) {
      row[c] = x[size_t(r) * 512 + min(max(c - 4, 0), 511)];
    }
    __syncthreads();
#pragma unroll
    for (int c = threadIdx.x; c < 512; c += 64) {
      float s = 0;
#pragma unroll
      for (int k = 0; k < 9; ++k) {
        s += row[c + k];
      }
      out[size_t(r) * 512 + c] = s * (1.0f / 9);
    }
    __syncthreads();
  }
}

KERNEL movavg__bad(const float* x, float* out, int rows) { MovingAverage(x, out, rows); }
KERNEL movavg__good(const float* x, float* out, int rows) { MovingAverage(x, out, rows); }

static void AddMovingAverage() {
  const int rows = 65536, large = 160 << 10, small = 520 * 4, grid = pairs::kSms * 32;
  float* x = suite::Buffer<float>(size_t(rows) * 512);
  float* out = suite::Buffer<float>(size_t(rows) * 512, suite::Fill::kZero);
  AllowShared(reinterpret_cast<const void*>(movavg__bad), large);
  pairs::Add(
      "movavg", [=] { movavg__bad<<<grid, 64, large>>>(x, out, rows); },
      [=] { movavg__good<<<grid, 64, small>>>(x, out, rows); }, out, size_t(rows) * 512);
}

// A block an SM streams 16 KB tiles through shared memory and correlates them with a query:
// load-store-barrier-compute, or a ring of 4 asynchronous copies.
constexpr int kTile = 4096, kTiles = 256;

__device__ float TileDot(const float4* tile, const float4* query) {
  float s = 0;
#pragma unroll
  for (int k = 0; k < kTile / 1024; ++k) {
    const float4 a = tile[(threadIdx.x + k * 256 + 32) % 1024], b = query[k];
    s += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
  }
  return s;
}

KERNEL correlate__bad(const float4* __restrict__ x, const float4* __restrict__ q,
                      float* __restrict__ out) {
  extern __shared__ float4 ring[];
  float4 query[4];
  for (int k = 0; k < 4; ++k) {
    query[k] = q[threadIdx.x + k * 256];
  }
  float s = 0;
#pragma unroll 1
  for (int tile = 0; tile < kTiles; ++tile) {
    const float4* from = x + (size_t(blockIdx.x) * kTiles + tile) * 1024;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      ring[threadIdx.x + k * 256] = from[threadIdx.x + k * 256];
    }
    __syncthreads();
    s += TileDot(ring, query);
    __syncthreads();
  }
  out[blockIdx.x * 256 + threadIdx.x] = s;
}

KERNEL correlate__good(const float4* __restrict__ x, const float4* __restrict__ q,
                       float* __restrict__ out) {
  extern __shared__ float4 ring[];
  float4 query[4];
  for (int k = 0; k < 4; ++k) {
    query[k] = q[threadIdx.x + k * 256];
  }
  auto fetch = [&](int tile) {
    if (tile < kTiles) {
      const float4* from = x + (size_t(blockIdx.x) * kTiles + tile) * 1024;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        __pipeline_memcpy_async(&ring[tile % 4 * 1024 + threadIdx.x + k * 256],
                                &from[threadIdx.x + k * 256], 16);
      }
    }
    __pipeline_commit();
  };
  fetch(0);
  fetch(1);
  fetch(2);
  float s = 0;
#pragma unroll 1
  for (int tile = 0; tile < kTiles; ++tile) {
    __pipeline_wait_prior(2);
    __syncthreads();
    fetch(tile + 3);
    s += TileDot(ring + tile % 4 * 1024, query);
  }
  out[blockIdx.x * 256 + threadIdx.x] = s;
}

static void AddCorrelate() {
  const size_t n = size_t(pairs::kSms) * kTiles * 1024;
  const int bytes = 120 << 10;  // both: the block also owns other buffers, so one fits an SM
  float4 *x = suite::Buffer<float4>(n), *q = suite::Buffer<float4>(1024, suite::Fill::kFloat, 2);
  float* out = suite::Buffer<float>(pairs::kSms * 256, suite::Fill::kZero);
  AllowShared(reinterpret_cast<const void*>(correlate__bad), bytes);
  AllowShared(reinterpret_cast<const void*>(correlate__good), bytes);
  pairs::Add(
      "correlate", [=] { correlate__bad<<<pairs::kSms, 256, bytes>>>(x, q, out); },
      [=] { correlate__good<<<pairs::kSms, 256, bytes>>>(x, q, out); }, out, pairs::kSms * 256);
}

// Bags of 128 embedding rows with few warps: one row under way, or eight.
template <int kBatch>
__device__ void BagSum(const float2* __restrict__ table, const int* __restrict__ ids,
                       float2* __restrict__ out, int bags) {
  const int lane = threadIdx.x % 32;
  for (int bag = blockIdx.x * 4 + threadIdx.x / 32; bag < bags; bag += gridDim.x * 4) {
    float2 s = make_float2(0, 0);
#pragma unroll 1
    for (int j = 0; j < 128; j += kBatch) {
      float2 v[kBatch];
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        v[k] = table[ids[bag * 128 + j + k] * 32 + lane];
      }
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        s.x += v[k].x;
        s.y += v[k].y;
      }
    }
    out[bag * 32 + lane] = s;
  }
}

KERNEL bagsum__bad(const float2* table, const int* ids, float2* out, int bags) {
  BagSum<1>(table, ids, out, bags);
}

KERNEL bagsum__good(const float2* table, const int* ids, float2* out, int bags) {
  BagSum<8>(table, ids, out, bags);
}

static void AddBagSum() {
  const int words = 1 << 20, grid = pairs::kSms * 2, bags = grid * 4 * 8;
  std::vector<int> ids(bags * 128);
  for (size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<int>(static_cast<unsigned>(i) * 2654435761u % words);
  }
  const int* d_ids = pairs::Upload(ids);
  float2* table = suite::Buffer<float2>(size_t(words) * 32);
  float2* out = suite::Buffer<float2>(size_t(bags) * 32, suite::Fill::kZero);
  pairs::Add(
      "bagsum", [=] { bagsum__bad<<<grid, 128>>>(table, d_ids, out, bags); },
      [=] { bagsum__good<<<grid, 128>>>(table, d_ids, out, bags); },
      reinterpret_cast<float*>(out), size_t(bags) * 64);
}

int main(int argc, char** argv) {
  AddEnsemble();
  AddCausal();
  AddSpmv();
  AddRotate();
  AddMovingAverage();
  AddCorrelate();
  AddBagSum();
  return pairs::Main(argc, argv);
}
