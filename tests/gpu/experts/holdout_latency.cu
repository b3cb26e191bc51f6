// SPDX-License-Identifier: Apache-2.0
// Holdout pairs about latency: loads, chains, barriers and code that nothing overlaps.
#include <cuda_pipeline.h>

#include "pairs.h"

static void AllowShared(const void* kernel, int bytes) {
  CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
}

// Audio resampled by 1.37 with linear interpolation on 8 warps an SM: the loads of one output
// under way, or of eight.
template <int kBatch>
__device__ void Resample(const float* __restrict__ in, float* __restrict__ out, int per_thread) {
  const int base = blockIdx.x * per_thread * 256 + threadIdx.x;
#pragma unroll 1
  for (int k = 0; k < per_thread; k += kBatch) {
    float a[kBatch], b[kBatch], f[kBatch];
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      const unsigned at = (base + (k + j) * 256) * 22u, whole = at >> 4;
      f[j] = static_cast<float>(at & 15) * 0.0625f;
      a[j] = in[whole];
      b[j] = in[whole + 1];
    }
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      out[base + (k + j) * 256] = fmaf(f[j], b[j] - a[j], a[j]);
    }
  }
}

KERNEL resample__bad(const float* in, float* out, int per_thread) {
  Resample<1>(in, out, per_thread);
}

KERNEL resample__good(const float* in, float* out, int per_thread) {
  Resample<8>(in, out, per_thread);
}

static void AddResample() {
  const int per_thread = 512, n = pairs::kSms * 256 * per_thread;
  float* in = suite::Buffer<float>(size_t(n) / 16 * 22 + 64);
  float* out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "resample", [=] { resample__bad<<<pairs::kSms, 256>>>(in, out, per_thread); },
      [=] { resample__good<<<pairs::kSms, 256>>>(in, out, per_thread); }, out, n);
}

// A dictionary with chained entries: each of 4 warps an SM follows one chain, or four side by side.
template <int kSide>
__device__ void Lookup(const int2* __restrict__ entry, int* __restrict__ out, int chains, int hops,
                       int mask) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
#pragma unroll 1
  for (int c = 0; c < chains; c += kSide) {
    int at[kSide], sum[kSide];
#pragma unroll
    for (int j = 0; j < kSide; ++j) {
      at[j] = static_cast<int>(((c + j) * threads + t) * 2654435761u >> 4) & mask;
      sum[j] = 0;
    }
#pragma unroll 1
    for (int h = 0; h < hops; ++h) {
#pragma unroll
      for (int j = 0; j < kSide; ++j) {
        const int2 e = entry[at[j]];
        at[j] = e.x;
        sum[j] += e.y;
      }
    }
#pragma unroll
    for (int j = 0; j < kSide; ++j) {
      out[(c + j) * threads + t] = sum[j];
    }
  }
}

KERNEL lookup__bad(const int2* entry, int* out, int chains, int hops, int mask) {
  Lookup<1>(entry, out, chains, hops, mask);
}

KERNEL lookup__good(const int2* entry, int* out, int chains, int hops, int mask) {
  Lookup<4>(entry, out, chains, hops, mask);
}

static void AddLookup() {
  const int size = 1 << 24, chains = 16, n = pairs::kSms * 128 * chains;
  std::vector<int2> entry(size);
  for (int i = 0; i < size; ++i) {
    entry[i] = make_int2(static_cast<int>((i * 1664525u + 1013904223u) & (size - 1)), i % 11);
  }
  const int2* d_entry = pairs::Upload(entry);
  int* out = suite::Buffer<int>(n, suite::Fill::kZero);
  pairs::Add(
      "lookup", [=] { lookup__bad<<<pairs::kSms, 128>>>(d_entry, out, chains, 32, size - 1); },
      [=] { lookup__good<<<pairs::kSms, 128>>>(d_entry, out, chains, 32, size - 1); }, out, n, 0);
}

// Tridiagonal systems (the forward sweep, 4 of constant bands a thread, one warp a scheduler): one
// system after the other, or the four side by side.
template <int kSide>
__device__ void Sweep(const float* __restrict__ right, float* __restrict__ out, int steps) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
#pragma unroll 1
  for (int c = 0; c < 4; c += kSide) {
    float d[kSide], r[kSide];
#pragma unroll
    for (int j = 0; j < kSide; ++j) {
      r[j] = right[(c + j) * threads + t];
      d[j] = 0.25f * r[j];
    }
#pragma unroll 4
    for (int s = 0; s < steps; ++s) {
#pragma unroll
      for (int j = 0; j < kSide; ++j) {
        // The pivot 2 - d / 2, its reciprocal by one Newton step from 1 / 2.
        const float p = fmaf(-0.5f, d[j], 2.0f), q = fmaf(-0.5f, p, 2.0f) * 0.5f;
        d[j] = fmaf(q, 0.3f, 0.1f);
        r[j] = fmaf(r[j], q, d[j]);
      }
    }
#pragma unroll
    for (int j = 0; j < kSide; ++j) {
      out[(c + j) * threads + t] = r[j];
    }
  }
}

KERNEL tridiagonal__bad(const float* right, float* out, int steps) {
  Sweep<1>(right, out, steps);
}

KERNEL tridiagonal__good(const float* right, float* out, int steps) {
  Sweep<4>(right, out, steps);
}

static void AddTridiagonal() {
  const int n = pairs::kSms * 128 * 4;
  float *right = suite::Buffer<float>(n), *out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "tridiagonal", [=] { tridiagonal__bad<<<pairs::kSms, 128>>>(right, out, 8192); },
      [=] { tridiagonal__good<<<pairs::kSms, 128>>>(right, out, 8192); }, out, n);
}

// A matched filter of 8 taps on tiles of 8192 samples, one block an SM: a tile passes through
// registers and is waited for, or the next one is on its way to shared memory meanwhile.
constexpr int kTile = 8192, kTaps = 8;

__device__ void Match(const float* tile, float* __restrict__ out) {
  for (int i = threadIdx.x; i < kTile - kTaps; i += 256) {
    float s = 0;
#pragma unroll
    for (int k = 0; k < kTaps; ++k) {
      s = fmaf(tile[i + k], 0.9f - 0.03f * k, s);
    }
    out[i] = s;
  }
}

KERNEL __launch_bounds__(256)
    matched__bad(const float* __restrict__ in, float* __restrict__ out, int tiles) {
  extern __shared__ __align__(16) float tile[];
  for (int b = blockIdx.x; b < tiles; b += gridDim.x) {
    const float4* from = reinterpret_cast<const float4*>(in + size_t(b) * kTile);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kTile / 1024; ++k) {
      reinterpret_cast<float4*>(tile)[k * 256 + threadIdx.x] = from[k * 256 + threadIdx.x];
    }
    __syncthreads();
    Match(tile, out + size_t(b) * kTile);
  }
}

__device__ void Bring(float* tile, const float* __restrict__ from) {
#pragma unroll
  for (int k = 0; k < kTile / 1024; ++k) {
    const int i = (k * 256 + threadIdx.x) * 4;
    __pipeline_memcpy_async(tile + i, from + i, 16);
  }
}

KERNEL __launch_bounds__(256)
    matched__good(const float* __restrict__ in, float* __restrict__ out, int tiles) {
  extern __shared__ __align__(16) float tile[];
  constexpr int kStages = 4;
  for (int s = 0; s < kStages - 1; ++s) {
    const int b = blockIdx.x + s * gridDim.x;
    if (b < tiles) {
      Bring(tile + s * kTile, in + size_t(b) * kTile);
    }
    __pipeline_commit();
  }
  int stage = 0;
  for (int b = blockIdx.x; b < tiles; b += gridDim.x) {
    __pipeline_wait_prior(kStages - 2);
    __syncthreads();
    const int next = b + (kStages - 1) * gridDim.x;
    if (next < tiles) {
      Bring(tile + (stage + kStages - 1) % kStages * kTile, in + size_t(next) * kTile);
    }
    __pipeline_commit();
    Match(tile + stage * kTile, out + size_t(b) * kTile);
    stage = (stage + 1) % kStages;
  }
}

static void AddMatched() {
  const int tiles = pairs::kSms * 40, bytes = kTile * 4;
  const size_t n = size_t(tiles) * kTile;
  float *in = suite::Buffer<float>(n), *out = suite::Buffer<float>(n, suite::Fill::kZero);
  // The same shared memory for both, so that an SM holds one block of either.
  AllowShared(reinterpret_cast<const void*>(matched__bad), bytes * 4);
  AllowShared(reinterpret_cast<const void*>(matched__good), bytes * 4);
  pairs::Add(
      "matched", [=] { matched__bad<<<pairs::kSms, 256, bytes * 4>>>(in, out, tiles); },
      [=] { matched__good<<<pairs::kSms, 256, bytes * 4>>>(in, out, tiles); }, out, n);
}

// Vectors of 1024 normalised again and again: sums by a tree over shared memory with a barrier a
// level, or by shuffles and two barriers.
KERNEL normalise__bad(const float* __restrict__ x, float* __restrict__ out, int rounds) {
  __shared__ float sum[1024];
  const int t = threadIdx.x;
  float v = x[blockIdx.x * 1024 + t];
  for (int r = 0; r < rounds; ++r) {
    sum[t] = v * v;
    __syncthreads();
    for (int d = 512; d > 0; d /= 2) {
      if (t < d) {
        sum[t] += sum[t + d];
      }
      __syncthreads();
    }
    v = v * rsqrtf(sum[0]) + 0.001f;
    __syncthreads();
  }
  out[blockIdx.x * 1024 + t] = v;
}

KERNEL normalise__good(const float* __restrict__ x, float* __restrict__ out, int rounds) {
  __shared__ float part[2][32];
  const int t = threadIdx.x;
  float v = x[blockIdx.x * 1024 + t];
  for (int r = 0; r < rounds; ++r) {
    const float s = pairs::WarpSum(v * v);
    if (t % 32 == 0) {
      part[r % 2][t / 32] = s;
    }
    __syncthreads();
    v = v * rsqrtf(pairs::WarpSum(part[r % 2][t % 32])) + 0.001f;
  }
  out[blockIdx.x * 1024 + t] = v;
}

static void AddNormalise() {
  const int blocks = pairs::kSms * 8, n = blocks * 1024;
  float *x = suite::Buffer<float>(n), *out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "normalise", [=] { normalise__bad<<<blocks, 1024>>>(x, out, 64); },
      [=] { normalise__good<<<blocks, 1024>>>(x, out, 64); }, out, n);
}

// Biquad filters, a channel a thread: coefficients that a store may change are read again at every
// sample and hold the next sample back, or stay in registers.
template <class In, class Out>
__device__ void Biquad(In x, In coefficient, Out y, int channels, int samples) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s1 = 0, s2 = 0;
#pragma unroll 8
  for (int k = 0; k < samples; ++k) {
    const float* c = coefficient + i;
    const float v = x[size_t(k) * channels + i];
    const float r = fmaf(c[0], v, s1);
    s1 = fmaf(c[channels], v, fmaf(-c[3 * channels], r, s2));
    s2 = fmaf(c[2 * channels], v, -c[4 * channels] * r);
    y[size_t(k) * channels + i] = r;
  }
}

KERNEL biquad__bad(const float* x, const float* coefficient, float* y, int channels, int samples) {
  Biquad(x, coefficient, y, channels, samples);
}

KERNEL biquad__good(const float* __restrict__ x, const float* __restrict__ coefficient,
                    float* __restrict__ y, int channels, int samples) {
  Biquad(x, coefficient, y, channels, samples);
}

static void AddBiquad() {
  const int channels = pairs::kSms * 256, samples = 1024;
  std::vector<float> host(channels * 5);
  for (int i = 0; i < channels * 5; ++i) {
    host[i] = 0.2f + 0.0001f * (i % 997);
  }
  const float* c = pairs::Upload(host);
  const size_t n = size_t(channels) * samples;
  float *x = suite::Buffer<float>(n), *y = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "biquad", [=] { biquad__bad<<<pairs::kSms * 2, 128>>>(x, c, y, channels, samples); },
      [=] { biquad__good<<<pairs::kSms * 2, 128>>>(x, c, y, channels, samples); }, y, n);
}

// Shared memory asked for as if the window were 60 times as long: two blocks of 64 threads an SM.
__device__ void Census(const float* __restrict__ in, float* __restrict__ out, int per_block) {
  extern __shared__ float seen[];
  for (int k = 0; k < per_block; ++k) {
    const size_t i = (size_t(blockIdx.x) * per_block + k) * 64 + threadIdx.x;
    seen[threadIdx.x] = in[i];
    __syncthreads();
    const float own = seen[threadIdx.x];
    out[i] = (seen[(threadIdx.x + 63) % 64] > own) + 2.0f * (seen[(threadIdx.x + 1) % 64] > own);
    __syncthreads();
  }
}

KERNEL census__bad(const float* in, float* out, int per_block) {
  Census(in, out, per_block);
}

KERNEL census__good(const float* in, float* out, int per_block) {
  Census(in, out, per_block);
}

static void AddCensus() {
  const int blocks = pairs::kSms * 64, per_block = 32, large = 96 << 10;
  const size_t n = size_t(blocks) * per_block * 64;
  float *in = suite::Buffer<float>(n), *out = suite::Buffer<float>(n, suite::Fill::kZero);
  AllowShared(reinterpret_cast<const void*>(census__bad), large);
  pairs::Add(
      "census", [=] { census__bad<<<blocks, 64, large>>>(in, out, per_block); },
      [=] { census__good<<<blocks, 64, 256>>>(in, out, per_block); }, out, n, 0);
}

int main(int argc, char** argv) {
  AddResample();
  AddLookup();
  AddTridiagonal();
  AddMatched();
  AddNormalise();
  AddBiquad();
  AddCensus();
  return pairs::Main(argc, argv);
}
