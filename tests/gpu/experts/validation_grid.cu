// SPDX-License-Identifier: Apache-2.0
// Validation pairs about the number, the size and the balance of blocks.
#include <algorithm>

#include "pairs.h"

/// Value above, index below, so that the larger value wins.
__device__ unsigned long long Scored(float v, unsigned i) {
  const unsigned b = __float_as_uint(v);
  const unsigned ordered = b & 0x80000000u ? ~b : b | 0x80000000u;
  return static_cast<unsigned long long>(ordered) << 32 | i;
}

// Best of 2 Mi candidates of each of 20 beams: a block a beam, or 66 blocks a beam.
__device__ void Best(const float* __restrict__ score, unsigned long long* out, int from, int to) {
  __shared__ unsigned long long part[16];
  unsigned long long best = 0;
#pragma unroll 8
  for (int i = from + threadIdx.x; i < to; i += blockDim.x) {
    best = max(best, Scored(score[i], i - from));
  }
  for (int d = 16; d > 0; d /= 2) {
    best = max(best, __shfl_xor_sync(~0u, best, d));
  }
  if (threadIdx.x % 32 == 0) {
    part[threadIdx.x / 32] = best;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int k = 1; k < 16; ++k) {
      best = max(best, part[k]);
    }
    // The place within the part is dropped: both cuts must agree.
    atomicMax(out, best >> 32);
  }
}

KERNEL beams__bad(const float* __restrict__ score, unsigned long long* out, int width) {
  Best(score, out + blockIdx.x, blockIdx.x * width, (blockIdx.x + 1) * width);
}

KERNEL beams__good(const float* __restrict__ score, unsigned long long* out, int width) {
  const int part = width / gridDim.x, from = blockIdx.y * width + blockIdx.x * part;
  Best(score, out + blockIdx.y, from, from + part);
}

static void AddBeams() {
  const int beams = 20, width = 2 << 20;
  float* score = suite::Buffer<float>(size_t(beams) * width);
  auto* out = suite::Buffer<unsigned long long>(beams, suite::Fill::kZero);
  pairs::Add(
      "beams", [=] { beams__bad<<<beams, 512>>>(score, out, width); },
      [=] { beams__good<<<dim3(64, beams), 512>>>(score, out, width); }, out, beams, 0);
}

// Asian options by Monte Carlo: a thread an option (40 blocks of 64), or a warp an option.
__device__ float Path(unsigned seed, float strike) {
  unsigned x = seed * 2654435761u ^ 0x9e3779b9u;
  float price = 1.0f, mean = 0.0f;
#pragma unroll 4
  for (int step = 0; step < 32; ++step) {
    x = x * 1664525u + 1013904223u;
    price *= 1.0f + 0.02f * (static_cast<float>(x >> 8) * (2.0f / 16777216.0f) - 0.99f);
    mean += price;
  }
  return fmaxf(mean * (1.0f / 32) - strike, 0.0f);
}

KERNEL asian__bad(const float* __restrict__ strike, float* __restrict__ out, int paths) {
  const int option = blockIdx.x * blockDim.x + threadIdx.x;
  const float k = 0.9f + 0.05f * strike[option];
  float s = 0;
#pragma unroll 1
  for (int p = 0; p < paths; ++p) {
    s += Path(option * paths + p, k);
  }
  out[option] = s / paths;
}

KERNEL asian__good(const float* __restrict__ strike, float* __restrict__ out, int paths) {
  const int option = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  const float k = 0.9f + 0.05f * strike[option];
  float s = 0;
#pragma unroll 1
  for (int p = lane; p < paths; p += 32) {
    s += Path(option * paths + p, k);
  }
  s = pairs::WarpSum(s);
  if (lane == 0) {
    out[option] = s / paths;
  }
}

static void AddAsian() {
  const int options = 2560, paths = 4096;
  float* strike = suite::Buffer<float>(options);
  float* out = suite::Buffer<float>(options, suite::Fill::kZero);
  pairs::Add(
      "asian", [=] { asian__bad<<<options / 64, 64>>>(strike, out, paths); },
      [=] { asian__good<<<options / 8, 256>>>(strike, out, paths); }, out, options);
}

// Escape counts at a fixed number of steps, two blocks of 1024 an SM: 280 blocks of 6 points a
// thread run as 264 and 16; of one point, as 7 waves and a part.
__device__ float Escape(float a, float b) {
  float x = 0, y = 0, n = 0;
#pragma unroll 8
  for (int k = 0; k < 512; ++k) {
    const float t = fmaf(x, x, fmaf(-y, y, a));
    y = fmaf(2.0f * x, y, b);
    x = fminf(fmaxf(t, -4.0f), 4.0f);
    y = fminf(fmaxf(y, -4.0f), 4.0f);
    n += x * x + y * y < 4.0f ? 1.0f : 0.0f;
  }
  return n;
}

__device__ void Fractal(const float* __restrict__ a, float* __restrict__ out, int points) {
#pragma unroll 1
  for (int k = 0; k < points; ++k) {
    const int i = (blockIdx.x * points + k) * 1024 + threadIdx.x;
    out[i] = Escape(a[i], 0.4f * a[i ^ 512]);
  }
}

KERNEL __launch_bounds__(1024, 2) fractal__bad(const float* a, float* out) {
  Fractal(a, out, 6);
}

KERNEL __launch_bounds__(1024, 2) fractal__good(const float* a, float* out) {
  Fractal(a, out, 1);
}

static void AddFractal() {
  const int blocks = 2 * pairs::kSms + 16, n = blocks * 6 * 1024;
  float *a = suite::Buffer<float>(n), *out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "fractal", [=] { fractal__bad<<<blocks, 1024>>>(a, out); },
      [=] { fractal__good<<<blocks * 6, 1024>>>(a, out); }, out, n);
}

// Energy of voices of very different length, a block a voice: the longest last, or cut into pieces.
__device__ void Voice(const float* __restrict__ x, const int2* __restrict__ voice, float* out) {
  __shared__ float part[8];
  const int2 v = voice[blockIdx.x];
  float s = 0;
#pragma unroll 2
  for (int i = threadIdx.x; i < v.y; i += 256) {
    float w = x[(v.x + i) & 0xffffff];
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      w = fmaf(w, 0.7f, 0.01f * w * w);
    }
    s += w * w;
  }
  s = pairs::WarpSum(s);
  if (threadIdx.x % 32 == 0) {
    part[threadIdx.x / 32] = s;
  }
  __syncthreads();
  if (threadIdx.x < 8) {
    atomicAdd(out + v.x % 512, part[threadIdx.x]);
  }
}

KERNEL voices__bad(const float* x, const int2* voice, float* out) {
  Voice(x, voice, out);
}

KERNEL voices__good(const float* x, const int2* voice, float* out) {
  Voice(x, voice, out);
}

static void AddVoices() {
  const int count = 6000;
  std::vector<int2> voice(count), cut;
  for (int i = 0; i < count; ++i) {
    voice[i].x = i * 7919;
    voice[i].y = i >= count - 60 ? 400000 + i * 17 : 1500 + i % 1000;
  }
  for (const int2& v : voice) {
    // Pieces begin 8192 samples apart: their address modulo 512, the bin, is that of the whole.
    for (int at = 0; at < v.y; at += 8192) {
      cut.push_back(make_int2(v.x + at, std::min(8192, v.y - at)));
    }
  }
  const int pieces = static_cast<int>(cut.size());
  const int2 *d_voice = pairs::Upload(voice), *d_cut = pairs::Upload(cut);
  float *x = suite::Buffer<float>(1 << 24), *out = suite::Buffer<float>(512, suite::Fill::kZero);
  pairs::Add(
      "voices", [=] { voices__bad<<<count, 256>>>(x, d_voice, out); },
      [=] { voices__good<<<pieces, 256>>>(x, d_cut, out); }, out, 512);
}

// A ragged batch padded to its longest sequence: most blocks find nothing to do, or a
// warp a sequence walks what is there.
__device__ void Position(const float* __restrict__ x, float* __restrict__ out, int seq, int at) {
  const size_t i = size_t(seq) * 1024 + at;
  out[i] = x[i] * rsqrtf(1.0f + at);
}

KERNEL padded__bad(const float* __restrict__ x, const int* __restrict__ length,
                   float* __restrict__ out) {
  const int at = blockIdx.x * 64 + threadIdx.x;
  if (at < length[blockIdx.y]) {
    Position(x, out, blockIdx.y, at);
  }
}

KERNEL padded__good(const float* __restrict__ x, const int* __restrict__ length,
                    float* __restrict__ out, int sequences) {
  const int warps = gridDim.x * 8;
  for (int s = blockIdx.x * 8 + threadIdx.x / 32; s < sequences; s += warps) {
    const int n = length[s];
    for (int at = threadIdx.x % 32; at < n; at += 32) {
      Position(x, out, s, at);
    }
  }
}

static void AddPadded() {
  const int sequences = 60000;
  std::vector<int> length(sequences);
  for (int i = 0; i < sequences; ++i) {
    length[i] = i % 997 == 0 ? 1024 : 16 + static_cast<int>(i * 2654435761u >> 27);
  }
  const int* d_length = pairs::Upload(length);
  float* x = suite::Buffer<float>(size_t(sequences) * 1024);
  float* out = suite::Buffer<float>(size_t(sequences) * 1024, suite::Fill::kZero);
  pairs::Add(
      "padded", [=] { padded__bad<<<dim3(16, sequences), 64>>>(x, d_length, out); },
      [=] { padded__good<<<pairs::kSms * 8, 256>>>(x, d_length, out, sequences); }, out,
      size_t(sequences) * 1024);
}

int main(int argc, char** argv) {
  AddBeams();
  AddAsian();
  AddFractal();
  AddVoices();
  AddPadded();
  return pairs::Main(argc, argv);
}
