// SPDX-License-Identifier: Apache-2.0
// Pairs about shared memory, barriers and shuffles.
#include "pairs.h"

// Attention scores of 64 x 64 tiles, head dimension 64: lanes read the key tile by column.
template <int kPitch>
__device__ void Scores(const float* __restrict__ q, const float* __restrict__ k,
                       float* __restrict__ out, int tokens) {
  __shared__ __align__(16) float qs[64][64], ks[64 * kPitch];
  const int t = threadIdx.x, q0 = blockIdx.y * 64, k0 = blockIdx.x * 64;
  const size_t head = size_t(blockIdx.z) * tokens * 64;
  for (int i = t; i < 4096; i += 256) {
    qs[i / 64][i % 64] = q[head + q0 * 64 + i];
    ks[i / 64 * kPitch + i % 64] = k[head + k0 * 64 + i];
  }
  __syncthreads();
  const int key = t % 64, first = t / 64 * 16;
  float s[16] = {};
#pragma unroll 2
  for (int d = 0; d < 64; d += 4) {
    float kv[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      kv[j] = ks[key * kPitch + d + j];
    }
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const float4 v = *reinterpret_cast<const float4*>(&qs[first + i][d]);
      s[i] += v.x * kv[0] + v.y * kv[1] + v.z * kv[2] + v.w * kv[3];
    }
  }
  for (int i = 0; i < 16; ++i) {
    out[(size_t(blockIdx.z) * tokens + q0 + first + i) * tokens + k0 + key] = s[i] * 0.125f;
  }
}

KERNEL scores__bad(const float* q, const float* k, float* out, int tokens) {
  Scores<64>(q, k, out, tokens);
}

KERNEL scores__good(const float* q, const float* k, float* out, int tokens) {
  Scores<65>(q, k, out, tokens);
}

static void AddScores() {
  const int tokens = 2048, heads = 16;
  float* q = suite::Buffer<float>(size_t(heads) * tokens * 64);
  float* k = suite::Buffer<float>(size_t(heads) * tokens * 64, suite::Fill::kFloat, 2);
  float* out = suite::Buffer<float>(size_t(heads) * tokens * tokens, suite::Fill::kZero);
  const dim3 grid(tokens / 64, tokens / 64, heads);
  pairs::Add(
      "scores", [=] { scores__bad<<<grid, 256>>>(q, k, out, tokens); },
      [=] { scores__good<<<grid, 256>>>(q, k, out, tokens); }, out,
      size_t(heads) * tokens * tokens);
}

// A random walk over 16 states a thread, the state table in shared memory: [thread][state] or
// [state][thread].
template <int kThread, int kState>
__device__ void Walk(const unsigned* __restrict__ seed, float* __restrict__ out) {
  __shared__ float table[16 * 256];
  const int t = threadIdx.x, i = blockIdx.x * 256 + t;
  unsigned x = seed[i];
  for (int s = 0; s < 16; ++s) {
    table[t * kThread + s * kState] = 1.0f + (x >> s & 1);
  }
  for (int step = 0; step < 256; ++step) {
    const unsigned s = x >> 28;
    const float v = table[t * kThread + s * kState];
    table[t * kThread + s * kState] = v * 0.75f + 0.5f;
    x = x * 1664525u + 1013904223u;
  }
  float sum = 0;
  for (int s = 0; s < 16; ++s) {
    sum += table[t * kThread + s * kState];
  }
  out[i] = sum;
}

KERNEL walk__bad(const unsigned* seed, float* out) { Walk<16, 1>(seed, out); }
KERNEL walk__good(const unsigned* seed, float* out) { Walk<1, 256>(seed, out); }

static void AddWalk() {
  const int n = 1 << 20;
  unsigned* seed = suite::Buffer<unsigned>(n, suite::Fill::kBits);
  float* out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "walk", [=] { walk__bad<<<n / 256, 256>>>(seed, out); },
      [=] { walk__good<<<n / 256, 256>>>(seed, out); }, out, n);
}

// FIR filter of 64 taps: two shared loads a multiply-add, or a window of 8 outputs in registers.
KERNEL fir__bad(const float* __restrict__ x, const float* __restrict__ taps,
                float* __restrict__ out) {
  __shared__ float xs[2048 + 64], ws[64];
  const int t = threadIdx.x;
  const size_t first = size_t(blockIdx.x) * 2048;
  for (int i = t; i < 2112; i += 256) {
    xs[i] = x[first + i];
  }
  if (t < 64) {
    ws[t] = taps[t];
  }
  __syncthreads();
#pragma unroll 1
  for (int o = t; o < 2048; o += 256) {
    float s = 0;
#pragma unroll 4
    for (int k = 0; k < 64; ++k) {
      s += xs[o + k] * ws[k];
    }
    out[first + o] = s;
  }
}

KERNEL fir__good(const float* __restrict__ x, const float* __restrict__ taps,
                 float* __restrict__ out) {
  __shared__ float xs[(2048 + 64) / 8 * 9], ws[64];
  const int t = threadIdx.x;
  const size_t first = size_t(blockIdx.x) * 2048;
  for (int i = t; i < 2112; i += 256) {
    xs[i / 8 * 9 + i % 8] = x[first + i];
  }
  if (t < 64) {
    ws[t] = taps[t];
  }
  __syncthreads();
  float s[8] = {}, window[16];
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    window[j] = xs[t * 9 + j];
  }
#pragma unroll 1
  for (int k = 0; k < 64; k += 8) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      window[8 + j] = xs[(t + k / 8 + 1) * 9 + j];
    }
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float w = ws[k + j];
#pragma unroll
      for (int o = 0; o < 8; ++o) {
        s[o] += window[o + j] * w;
      }
    }
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      window[j] = window[8 + j];
    }
  }
  float4* to = reinterpret_cast<float4*>(out + first + t * 8);
  to[0] = make_float4(s[0], s[1], s[2], s[3]);
  to[1] = make_float4(s[4], s[5], s[6], s[7]);
}

static void AddFir() {
  const int n = 32 << 20;
  float *x = suite::Buffer<float>(n + 64), *taps = suite::Buffer<float>(64);
  float* out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "fir", [=] { fir__bad<<<n / 2048, 256>>>(x, taps, out); },
      [=] { fir__good<<<n / 2048, 256>>>(x, taps, out); }, out, n);
}

// Running sums of rows of 1024: two barriers a step, or shuffles and two barriers in all.
KERNEL runsum__bad(const float* __restrict__ x, float* __restrict__ out) {
  __shared__ float s[1024];
  const int t = threadIdx.x;
  const size_t at = size_t(blockIdx.x) * 1024 + t;
  s[t] = x[at];
  __syncthreads();
  for (int d = 1; d < 1024; d *= 2) {
    const float add = t >= d ? s[t - d] : 0.0f;
    __syncthreads();
    s[t] += add;
    __syncthreads();
  }
  out[at] = s[t];
}

KERNEL runsum__good(const float* __restrict__ x, float* __restrict__ out) {
  __shared__ float part[8];
  const int t = threadIdx.x, lane = t % 32;
  const float4 v = reinterpret_cast<const float4*>(x)[size_t(blockIdx.x) * 256 + t];
  const float own = v.x + v.y + v.z + v.w;
  float sum = own;
  for (int d = 1; d < 32; d *= 2) {
    const float y = __shfl_up_sync(~0u, sum, d);
    sum += lane >= d ? y : 0.0f;
  }
  if (lane == 31) {
    part[t / 32] = sum;
  }
  __syncthreads();
  float before = sum - own;
#pragma unroll
  for (int w = 0; w < 7; ++w) {
    before += w < t / 32 ? part[w] : 0.0f;
  }
  const float a = before + v.x, b = a + v.y, c = b + v.z;
  reinterpret_cast<float4*>(out)[size_t(blockIdx.x) * 256 + t] = make_float4(a, b, c, c + v.w);
}

static void AddRunSum() {
  const int rows = 65536;
  float* x = suite::Buffer<float>(size_t(rows) * 1024);
  float* out = suite::Buffer<float>(size_t(rows) * 1024, suite::Fill::kZero);
  pairs::Add(
      "runsum", [=] { runsum__bad<<<rows, 1024>>>(x, out); },
      [=] { runsum__good<<<rows, 256>>>(x, out); }, out, size_t(rows) * 1024);
}

// 64 diffusion steps of lines of 1024: a point a thread and two barriers a step, or a line a warp.
KERNEL diffuse__bad(const float* __restrict__ x, float* __restrict__ out) {
  __shared__ float u[1024];
  const int t = threadIdx.x;
  const size_t at = size_t(blockIdx.x) * 1024 + t;
  u[t] = x[at];
  __syncthreads();
  for (int step = 0; step < 64; ++step) {
    const float l = t > 0 ? u[t - 1] : 0.0f, r = t < 1023 ? u[t + 1] : 0.0f;
    const float v = u[t] + 0.2f * (l + r - 2.0f * u[t]);
    __syncthreads();
    u[t] = v;
    __syncthreads();
  }
  out[at] = u[t];
}

KERNEL __launch_bounds__(128) diffuse__good(const float* __restrict__ x, float* __restrict__ out) {
  const int lane = threadIdx.x % 32;
  const size_t at = (size_t(blockIdx.x) * 4 + threadIdx.x / 32) * 1024 + lane * 32;
  float u[34];
#pragma unroll
  for (int i = 0; i < 32; i += 4) {
    const float4 v = *reinterpret_cast<const float4*>(x + at + i);
    u[i + 1] = v.x, u[i + 2] = v.y, u[i + 3] = v.z, u[i + 4] = v.w;
  }
#pragma unroll 1
  for (int step = 0; step < 64; ++step) {
    const float l = __shfl_up_sync(~0u, u[32], 1), r = __shfl_down_sync(~0u, u[1], 1);
    u[0] = lane > 0 ? l : 0.0f;
    u[33] = lane < 31 ? r : 0.0f;
    float left = u[0];
#pragma unroll
    for (int i = 1; i <= 32; ++i) {
      const float now = u[i];
      u[i] = now + 0.2f * (left + u[i + 1] - 2.0f * now);
      left = now;
    }
  }
#pragma unroll
  for (int i = 0; i < 32; i += 4) {
    *reinterpret_cast<float4*>(out + at + i) = make_float4(u[i + 1], u[i + 2], u[i + 3], u[i + 4]);
  }
}

static void AddDiffuse() {
  const int lines = 16384;
  float* x = suite::Buffer<float>(size_t(lines) * 1024);
  float* out = suite::Buffer<float>(size_t(lines) * 1024, suite::Fill::kZero);
  pairs::Add(
      "diffuse", [=] { diffuse__bad<<<lines, 1024>>>(x, out); },
      [=] { diffuse__good<<<lines / 4, 128>>>(x, out); }, out, size_t(lines) * 1024);
}

// 16 class scores of rows of 32 features, a row a warp: 5 shuffles a class, or 16 for all.
KERNEL classes__bad(const float* __restrict__ x, const float* __restrict__ w,
                    float* __restrict__ out, int rows) {
  const int lane = threadIdx.x % 32, warps = gridDim.x * blockDim.x / 32;
  float wv[16];
#pragma unroll
  for (int c = 0; c < 16; ++c) {
    wv[c] = w[c * 32 + lane];
  }
  for (int r = (blockIdx.x * blockDim.x + threadIdx.x) / 32; r < rows; r += warps) {
    const float v = x[r * 32 + lane];
    float mine = 0;
#pragma unroll
    for (int c = 0; c < 16; ++c) {
      const float s = pairs::WarpSum(v * wv[c]);
      mine = lane == c ? s : mine;
    }
    if (lane < 16) {
      out[r * 16 + lane] = mine;
    }
  }
}

/// Each half of the lanes keeps kKeep of its 2 kKeep sums and gives the others away.
template <int kKeep>
__device__ void Halve(float (&v)[16], int lane) {
  const bool upper = (lane & (2 * kKeep)) != 0;
#pragma unroll
  for (int i = 0; i < kKeep; ++i) {
    const float send = upper ? v[i] : v[i + kKeep], keep = upper ? v[i + kKeep] : v[i];
    v[i] = keep + __shfl_xor_sync(~0u, send, 2 * kKeep);
  }
}

KERNEL classes__good(const float* __restrict__ x, const float* __restrict__ w,
                     float* __restrict__ out, int rows) {
  const int lane = threadIdx.x % 32, warps = gridDim.x * blockDim.x / 32;
  float wv[16];
#pragma unroll
  for (int c = 0; c < 16; ++c) {
    wv[c] = w[c * 32 + lane];
  }
  for (int r = (blockIdx.x * blockDim.x + threadIdx.x) / 32; r < rows; r += warps) {
    const float f = x[r * 32 + lane];
    float v[16];
#pragma unroll
    for (int c = 0; c < 16; ++c) {
      v[c] = f * wv[c];
    }
    Halve<8>(v, lane);
    Halve<4>(v, lane);
    Halve<2>(v, lane);
    Halve<1>(v, lane);
    v[0] += __shfl_xor_sync(~0u, v[0], 1);
    if (lane % 2 == 0) {
      out[r * 16 + lane / 2] = v[0];
    }
  }
}

static void AddClasses() {
  const int rows = 2 << 20, grid = pairs::kSms * 8;
  float* x = suite::Buffer<float>(size_t(rows) * 32);
  float *w = suite::Buffer<float>(512, suite::Fill::kFloat, 2);
  float* out = suite::Buffer<float>(size_t(rows) * 16, suite::Fill::kZero);
  pairs::Add(
      "classes", [=] { classes__bad<<<grid, 256>>>(x, w, out, rows); },
      [=] { classes__good<<<grid, 256>>>(x, w, out, rows); }, out, size_t(rows) * 16);
}

int main(int argc, char** argv) {
  AddScores();
  AddWalk();
  AddFir();
  AddRunSum();
  AddDiffuse();
  AddClasses();
  return pairs::Main(argc, argv);
}
