// SPDX-License-Identifier: Apache-2.0
// Holdout pairs about the number, the size and the balance of blocks.
#include "pairs.h"

static void AllowShared(const void* kernel, int bytes) {
  CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
}

// Power of 24 beams over 64 sensors: a block a beam, or 32 blocks a beam.
__device__ void Beam(const float* __restrict__ x, float* __restrict__ out, int beam, int from,
                     int to, int samples) {
  const float steer = 0.01f * beam;
  float power = 0;
#pragma unroll 1
  for (int i = from + threadIdx.x; i < to; i += blockDim.x) {
    float s = 0;
#pragma unroll
    for (int k = 0; k < 64; ++k) {
      s = fmaf(x[size_t(k) * samples + i], steer + 0.1f / (1 + k), s);
    }
    power = fmaf(s, s, power);
  }
  power = pairs::WarpSum(power);
  if (threadIdx.x % 32 == 0) {
    atomicAdd(out + beam, power);
  }
}

KERNEL beamform__bad(const float* x, float* out, int samples) {
  Beam(x, out, blockIdx.x, 0, samples, samples);
}

KERNEL beamform__good(const float* x, float* out, int samples) {
  const int part = samples / gridDim.x;
  Beam(x, out, blockIdx.y, blockIdx.x * part, (blockIdx.x + 1) * part, samples);
}

static void AddBeamform() {
  const int beams = 24, samples = 1 << 17;
  float* x = suite::Buffer<float>(size_t(64) * samples);
  float* out = suite::Buffer<float>(beams, suite::Fill::kZero);
  pairs::Add(
      "beamform", [=] { beamform__bad<<<beams, 512>>>(x, out, samples); },
      [=] { beamform__good<<<dim3(32, beams), 512>>>(x, out, samples); }, out, beams);
}

// Spectral sums: 1024 bins each sum 8192 terms, a thread a bin (32 blocks of 32), or a warp a bin.
__device__ float Term(const float* __restrict__ x, int bin, int k) {
  float v = x[(bin * 37 + k) & 0xffff];
#pragma unroll
  for (int j = 0; j < 12; ++j) {
    v = fmaf(v, 0.8f, 0.1f * v * v);
  }
  return v * v;
}

KERNEL periodogram__bad(const float* __restrict__ x, float* __restrict__ out, int terms) {
  const int bin = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
#pragma unroll 4
  for (int k = 0; k < terms; ++k) {
    s += Term(x, bin, k);
  }
  out[bin] = s;
}

KERNEL periodogram__good(const float* __restrict__ x, float* __restrict__ out, int terms) {
  const int bin = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  float s = 0;
#pragma unroll 4
  for (int k = threadIdx.x % 32; k < terms; k += 32) {
    s += Term(x, bin, k);
  }
  s = pairs::WarpSum(s);
  if (threadIdx.x % 32 == 0) {
    out[bin] = s;
  }
}

static void AddPeriodogram() {
  const int bins = 1024, terms = 8192;
  float *x = suite::Buffer<float>(1 << 16), *out = suite::Buffer<float>(bins, suite::Fill::kZero);
  pairs::Add(
      "periodogram", [=] { periodogram__bad<<<bins / 32, 32>>>(x, out, terms); },
      [=] { periodogram__good<<<bins / 8, 256>>>(x, out, terms); }, out, bins);
}

// Dates in packed decimals become days: blocks of 32 threads, or of 256.
__device__ int Two(unsigned bcd) {
  return (bcd >> 4 & 15) * 10 + (bcd & 15);
}

__device__ void Date(const unsigned* __restrict__ text, int* __restrict__ day) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned t = text[i];
  const int year = Two(t >> 24) * 100 + Two(t >> 16), month = Two(t >> 8);
  day[i] = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + Two(t);
}

KERNEL dates__bad(const unsigned* text, int* day) {
  Date(text, day);
}

KERNEL dates__good(const unsigned* text, int* day) {
  Date(text, day);
}

static void AddDates() {
  const int n = 64 << 20;
  unsigned* text = suite::Buffer<unsigned>(n, suite::Fill::kBits);
  int* day = suite::Buffer<int>(n, suite::Fill::kZero);
  pairs::Add(
      "dates", [=] { dates__bad<<<n / 32, 32>>>(text, day); },
      [=] { dates__good<<<n / 256, 256>>>(text, day); }, day, n, 0);
}

// Option deltas by bumping, three blocks an SM (72 KiB of payoffs each): 412 blocks of four
// rounds run as 396 and 16; of one round, as four waves and a part.
__device__ void Bump(const float* __restrict__ spot, float* __restrict__ out, int rounds) {
  extern __shared__ float payoff[];
  payoff[threadIdx.x] = 0.001f * threadIdx.x;
  __syncthreads();
#pragma unroll 1
  for (int r = 0; r < rounds; ++r) {
    const int i = (blockIdx.x * rounds + r) * 128 + threadIdx.x;
    const float at = 1.0f + 0.1f * spot[i];
    float up = at;
#pragma unroll 8
    for (int k = 0; k < 16384; ++k) {
      up = fmaf(up, 0.999f, 0.0011f);
    }
    out[i] = (up - at) * 50.0f + payoff[threadIdx.x];
  }
}

KERNEL bump__bad(const float* spot, float* out) {
  Bump(spot, out, 4);
}

KERNEL bump__good(const float* spot, float* out) {
  Bump(spot, out, 1);
}

static void AddBump() {
  const int blocks = 3 * pairs::kSms + 16, n = blocks * 4 * 128, bytes = 72 << 10;
  float *spot = suite::Buffer<float>(n), *out = suite::Buffer<float>(n, suite::Fill::kZero);
  AllowShared(reinterpret_cast<const void*>(bump__bad), bytes);
  AllowShared(reinterpret_cast<const void*>(bump__good), bytes);
  pairs::Add(
      "bump", [=] { bump__bad<<<blocks, 128, bytes>>>(spot, out); },
      [=] { bump__good<<<blocks * 4, 128, bytes>>>(spot, out); }, out, n);
}

// Solid angles of all pairs j < i: 264 blocks take rows in stretches, or rows dealt like cards.
__device__ float PairRow(const float* __restrict__ x, int i) {
  const float own = x[i];
  float s = 0;
#pragma unroll 4
  for (int j = threadIdx.x; j < i; j += 256) {
    const float d = own - x[j], q = fmaf(d, d, 1.0f);
    s += d * d * fmaf(q, 0.1f, fmaf(q, q, 0.3f));
  }
  return pairs::WarpSum(s);
}

__device__ void PairRows(const float* __restrict__ x, float* __restrict__ out, int first, int step,
                         int rows) {
#pragma unroll 1
  for (int r = 0; r < rows; ++r) {
    const int i = first + r * step;
    const float s = PairRow(x, i);
    if (threadIdx.x % 32 == 0) {
      out[i * 8 + threadIdx.x / 32] = s;
    }
  }
}

KERNEL pairrows__bad(const float* x, float* out, int rows) {
  PairRows(x, out, blockIdx.x * rows, 1, rows);
}

KERNEL pairrows__good(const float* x, float* out, int rows) {
  PairRows(x, out, blockIdx.x, gridDim.x, rows);
}

static void AddPairRows() {
  const int blocks = pairs::kSms * 2, rows = 160, n = blocks * rows;
  float *x = suite::Buffer<float>(n), *out = suite::Buffer<float>(n * 8, suite::Fill::kZero);
  pairs::Add(
      "pairrows", [=] { pairrows__bad<<<blocks, 256>>>(x, out, rows); },
      [=] { pairrows__good<<<blocks, 256>>>(x, out, rows); }, out, size_t(n) * 8);
}

int main(int argc, char** argv) {
  AddBeamform();
  AddPeriodogram();
  AddDates();
  AddBump();
  AddPairRows();
  return pairs::Main(argc, argv);
}
