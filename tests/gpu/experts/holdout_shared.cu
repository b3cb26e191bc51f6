// SPDX-License-Identifier: Apache-2.0
// Holdout pairs about shared memory and what goes through its pipe.
#include "pairs.h"

// A polyphase filter: lane p holds a phase of 32 samples in rows of 32 words, or of 33.
template <int kPitch>
__device__ void Polyphase(const float* __restrict__ in, float* __restrict__ out, int rounds) {
  __shared__ float bank[4][32 * kPitch];
  float* mine = bank[threadIdx.x / 32];
  const int lane = threadIdx.x % 32;
  const size_t base = (size_t(blockIdx.x) * 4 + threadIdx.x / 32) * 1024;
  for (int r = 0; r < 32; ++r) {
    mine[r * kPitch + lane] = in[base + r * 32 + lane];
  }
  __syncwarp();
  float s = 0;
#pragma unroll 1
  for (int k = 0; k < rounds; ++k) {
#pragma unroll 8
    for (int tap = 0; tap < 32; ++tap) {
      s = fmaf(mine[lane * kPitch + (tap + k & 31)], 0.5f, 0.5f * s);
    }
  }
  out[size_t(blockIdx.x) * 128 + threadIdx.x] = s;
}

KERNEL polyphase__bad(const float* in, float* out, int rounds) {
  Polyphase<32>(in, out, rounds);
}

KERNEL polyphase__good(const float* in, float* out, int rounds) {
  Polyphase<33>(in, out, rounds);
}

static void AddPolyphase() {
  const int blocks = pairs::kSms * 16;
  float* in = suite::Buffer<float>(size_t(blocks) * 4096);
  float* out = suite::Buffer<float>(blocks * 128, suite::Fill::kZero);
  pairs::Add(
      "polyphase", [=] { polyphase__bad<<<blocks, 128>>>(in, out, 32); },
      [=] { polyphase__good<<<blocks, 128>>>(in, out, 32); }, out, blocks * 128);
}

// Base64: three bytes of a word become four letters by a table in shared memory, with an entry at
// the head of each record of 128 bytes, or word after word.
template <int kPitch>
__device__ void Base64(const unsigned* __restrict__ in, unsigned* __restrict__ out, int n) {
  __shared__ unsigned letter[64 * kPitch];
  if (threadIdx.x < 64) {
    const unsigned v = threadIdx.x;
    letter[v * kPitch] = v < 26 ? 'A' + v : v < 52 ? 'a' + v - 26 : v < 62 ? '0' + v - 52 : v;
  }
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const unsigned w = in[i];
    out[i] = letter[(w >> 18 & 63) * kPitch] | letter[(w >> 12 & 63) * kPitch] << 8 |
             letter[(w >> 6 & 63) * kPitch] << 16 | letter[(w & 63) * kPitch] << 24;
  }
}

KERNEL base64__bad(const unsigned* in, unsigned* out, int n) {
  Base64<32>(in, out, n);
}

KERNEL base64__good(const unsigned* in, unsigned* out, int n) {
  Base64<1>(in, out, n);
}

static void AddBase64() {
  const int n = 64 << 20, grid = pairs::kSms * 8;
  unsigned* in = suite::Buffer<unsigned>(n, suite::Fill::kBits);
  unsigned* out = suite::Buffer<unsigned>(n, suite::Fill::kZero);
  pairs::Add(
      "base64", [=] { base64__bad<<<grid, 256>>>(in, out, n); },
      [=] { base64__good<<<grid, 256>>>(in, out, n); }, out, n, 0);
}

// A recurrent cell of 64 units, 4 sequences a block: recurrent weights come from shared memory at
// every step, or stay in registers.
__device__ float Squash(float v) {
  return __fdividef(v, 1.0f + fabsf(v));
}

template <bool kRegisters>
__device__ void Recurrent(const float* __restrict__ weight, const float* __restrict__ in,
                          float* __restrict__ out, int steps) {
  __shared__ __align__(16) float state[2][4][64];
  __shared__ float u[64 * 64];
  const int unit = threadIdx.x % 64, seq = threadIdx.x / 64;
  for (int i = threadIdx.x; i < 4096; i += 256) {
    u[i] = 0.1f * weight[i];
  }
  state[0][seq][unit] = in[(size_t(blockIdx.x) * 4 + seq) * 64 + unit];
  __syncthreads();
  float own[64];
  if (kRegisters) {
#pragma unroll
    for (int k = 0; k < 64; ++k) {
      own[k] = u[k * 64 + unit];
    }
  }
#pragma unroll 1
  for (int s = 0; s < steps; ++s) {
    const float4* h = reinterpret_cast<const float4*>(state[s % 2][seq]);
    float sum[4] = {0.01f, 0, 0, 0};
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      const float4 v = h[k];
      sum[0] = fmaf(v.x, kRegisters ? own[4 * k] : u[(4 * k) * 64 + unit], sum[0]);
      sum[1] = fmaf(v.y, kRegisters ? own[4 * k + 1] : u[(4 * k + 1) * 64 + unit], sum[1]);
      sum[2] = fmaf(v.z, kRegisters ? own[4 * k + 2] : u[(4 * k + 2) * 64 + unit], sum[2]);
      sum[3] = fmaf(v.w, kRegisters ? own[4 * k + 3] : u[(4 * k + 3) * 64 + unit], sum[3]);
    }
    state[(s + 1) % 2][seq][unit] = Squash(sum[0] + sum[1] + sum[2] + sum[3]);
    __syncthreads();
  }
  out[(size_t(blockIdx.x) * 4 + seq) * 64 + unit] = state[steps % 2][seq][unit];
}

KERNEL __launch_bounds__(256)
    recurrent__bad(const float* weight, const float* in, float* out, int steps) {
  Recurrent<false>(weight, in, out, steps);
}

KERNEL __launch_bounds__(256)
    recurrent__good(const float* weight, const float* in, float* out, int steps) {
  Recurrent<true>(weight, in, out, steps);
}

static void AddRecurrent() {
  const int blocks = pairs::kSms * 8, n = blocks * 256;
  float *weight = suite::Buffer<float>(4096), *in = suite::Buffer<float>(n, suite::Fill::kFloat, 3);
  float* out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "recurrent", [=] { recurrent__bad<<<blocks, 256>>>(weight, in, out, 256); },
      [=] { recurrent__good<<<blocks, 256>>>(weight, in, out, 256); }, out, n);
}

// Polynomial products modulo 2^32: two words come from shared memory for each multiplication, or 8
// outputs of a thread share them.
KERNEL polymul__bad(const unsigned* __restrict__ a, const unsigned* __restrict__ b,
                    unsigned* __restrict__ out) {
  __shared__ unsigned x[1024 + 64], y[64];
  for (int i = threadIdx.x; i < 1024 + 64; i += 128) {
    x[i] = a[size_t(blockIdx.x) * 1024 + i];
  }
  if (threadIdx.x < 64) {
    y[threadIdx.x] = b[threadIdx.x];
  }
  __syncthreads();
#pragma unroll 1
  for (int o = threadIdx.x; o < 1024; o += 128) {
    unsigned s = 0;
#pragma unroll 1
    for (int k = 0; k < 64; k += 8) {
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        s += x[o + k + j] * y[k + j];
      }
    }
    out[size_t(blockIdx.x) * 1024 + o] = s;
  }
}

KERNEL polymul__good(const unsigned* __restrict__ a, const unsigned* __restrict__ b,
                     unsigned* __restrict__ out) {
  // A gap of a word after every 8 keeps the lanes, 8 outputs apart, in different banks.
  __shared__ unsigned x[(1024 + 64) / 8 * 9];
  __shared__ __align__(16) unsigned y[64];
  for (int i = threadIdx.x; i < 1024 + 64; i += 128) {
    x[i / 8 * 9 + i % 8] = a[size_t(blockIdx.x) * 1024 + i];
  }
  if (threadIdx.x < 64) {
    y[threadIdx.x] = b[threadIdx.x];
  }
  __syncthreads();
  unsigned s[8] = {};
#pragma unroll 1
  for (int k = 0; k < 8; ++k) {
    unsigned v[15], w[8];
    *reinterpret_cast<uint4*>(w) = reinterpret_cast<const uint4*>(y)[k * 2];
    *reinterpret_cast<uint4*>(w + 4) = reinterpret_cast<const uint4*>(y)[k * 2 + 1];
#pragma unroll
    for (int j = 0; j < 15; ++j) {
      v[j] = x[(threadIdx.x + k) * 9 + j + j / 8];
    }
#pragma unroll
    for (int j = 0; j < 64; ++j) {
      s[j / 8] += v[j / 8 + j % 8] * w[j % 8];
    }
  }
  uint4* to = reinterpret_cast<uint4*>(out + size_t(blockIdx.x) * 1024 + threadIdx.x * 8);
  to[0] = make_uint4(s[0], s[1], s[2], s[3]);
  to[1] = make_uint4(s[4], s[5], s[6], s[7]);
}

static void AddPolymul() {
  const int blocks = 24576;
  unsigned* a = suite::Buffer<unsigned>(size_t(blocks) * 1024 + 64, suite::Fill::kBits);
  unsigned* b = suite::Buffer<unsigned>(64, suite::Fill::kBits, 7);
  unsigned* out = suite::Buffer<unsigned>(size_t(blocks) * 1024, suite::Fill::kZero);
  pairs::Add(
      "polymul", [=] { polymul__bad<<<blocks, 128>>>(a, b, out); },
      [=] { polymul__good<<<blocks, 128>>>(a, b, out); }, out, size_t(blocks) * 1024, 0);
}

int main(int argc, char** argv) {
  AddPolyphase();
  AddBase64();
  AddRecurrent();
  AddPolymul();
  return pairs::Main(argc, argv);
}
