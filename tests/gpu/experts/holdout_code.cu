// SPDX-License-Identifier: Apache-2.0
// Holdout pairs about code size and about shuffles and table steps that wait for each other.
#include "pairs.h"

// Sixteen shaders, each its own 1536 unrolled integer operations, that the warps of a block enter
// at different places, or one that loops over constants.
constexpr int kShaders = 16, kSteps = 512;

template <int kUnroll>
__device__ __forceinline__ unsigned Shader(unsigned v, unsigned salt) {
  unsigned w = v ^ salt;
#pragma unroll kUnroll
  for (int k = 0; k < kSteps; ++k) {
    v = v * 0x9e3779b1u + w;
    w = (w ^ v) + salt;
    v ^= w >> 7;
  }
  return v + w;
}

template <int kShader>
__device__ __noinline__ unsigned OwnShader(unsigned v) {
  return Shader<kSteps>(v, 0x85ebca6bu + 0x101u * kShader);
}

template <int kShader>
__device__ __forceinline__ unsigned Choose(int shader, unsigned v) {
  if constexpr (kShader + 1 == kShaders) {
    return OwnShader<kShader>(v);
  } else {
    return shader == kShader ? OwnShader<kShader>(v) : Choose<kShader + 1>(shader, v);
  }
}

KERNEL shaders__bad(const unsigned* __restrict__ x, unsigned* __restrict__ out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned v = x[i];
#pragma unroll 1
  for (int r = 0; r < kShaders; ++r) {
    v = Choose<0>((threadIdx.x / 32 * 7 + blockIdx.x * 5 + r * 3) % kShaders, v);
  }
  out[i] = v >> 8;
}

KERNEL shaders__good(const unsigned* __restrict__ x, unsigned* __restrict__ out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned v = x[i];
#pragma unroll 1
  for (int r = 0; r < kShaders; ++r) {
    const int shader = (threadIdx.x / 32 * 7 + blockIdx.x * 5 + r * 3) % kShaders;
    v = Shader<16>(v, 0x85ebca6bu + 0x101u * shader);
  }
  out[i] = v >> 8;
}

static void AddShaders() {
  const int n = 1 << 18;
  unsigned* x = suite::Buffer<unsigned>(n, suite::Fill::kBits);
  unsigned* out = suite::Buffer<unsigned>(n, suite::Fill::kZero);
  pairs::Add(
      "shaders", [=] { shaders__bad<<<n / 256, 256>>>(x, out); },
      [=] { shaders__good<<<n / 256, 256>>>(x, out); }, out, n, 0);
}

// Rings of 32 spins relax through shuffles, a ring a warp and one warp a scheduler: four rings one
// after the other, or side by side.
template <int kSide>
__device__ void Rings(const float* __restrict__ x, float* __restrict__ out, int steps) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
  const int next = (threadIdx.x + 1) % 32;
#pragma unroll 1
  for (int c = 0; c < 4; c += kSide) {
    float v[kSide];
#pragma unroll
    for (int j = 0; j < kSide; ++j) {
      v[j] = x[(c + j) * threads + t];
    }
#pragma unroll 4
    for (int s = 0; s < steps; ++s) {
#pragma unroll
      for (int j = 0; j < kSide; ++j) {
        v[j] = fmaf(__shfl_sync(~0u, v[j], next), 0.4999f, 0.5f * v[j]);
      }
    }
#pragma unroll
    for (int j = 0; j < kSide; ++j) {
      out[(c + j) * threads + t] = v[j] * 1000.0f + 0.1f;
    }
  }
}

KERNEL rings__bad(const float* x, float* out, int steps) {
  Rings<1>(x, out, steps);
}

KERNEL rings__good(const float* x, float* out, int steps) {
  Rings<4>(x, out, steps);
}

static void AddRings() {
  const int n = pairs::kSms * 128 * 4;
  float *x = suite::Buffer<float>(n), *out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "rings", [=] { rings__bad<<<pairs::kSms, 128>>>(x, out, 4096); },
      [=] { rings__good<<<pairs::kSms, 128>>>(x, out, 4096); }, out, n);
}

// Candidates of a puzzle are struck out along cycles of cells in shared memory, a chain of
// dependent loads with one warp a scheduler: one start at a time, or four.
template <int kSide>
__device__ void Strike(const int* __restrict__ table, int* __restrict__ out, int steps) {
  __shared__ int next[1024];
  for (int i = threadIdx.x; i < 1024; i += 128) {
    next[i] = table[i];
  }
  __syncthreads();
  const int t = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
#pragma unroll 1
  for (int c = 0; c < 4; c += kSide) {
    int at[kSide], mask[kSide];
#pragma unroll
    for (int j = 0; j < kSide; ++j) {
      at[j] = ((c + j) * 37 + t) & 1023;
      mask[j] = 0;
    }
#pragma unroll 4
    for (int s = 0; s < steps; ++s) {
#pragma unroll
      for (int j = 0; j < kSide; ++j) {
        at[j] = next[at[j]];
        mask[j] ^= at[j] << (s & 7);
      }
    }
#pragma unroll
    for (int j = 0; j < kSide; ++j) {
      out[(c + j) * threads + t] = mask[j];
    }
  }
}

KERNEL strike__bad(const int* table, int* out, int steps) {
  Strike<1>(table, out, steps);
}

KERNEL strike__good(const int* table, int* out, int steps) {
  Strike<4>(table, out, steps);
}

static void AddStrike() {
  std::vector<int> table(1024);
  for (int i = 0; i < 1024; ++i) {
    table[i] = (i * 5 + 33) & 1023;
  }
  const int* d_table = pairs::Upload(table);
  const int n = pairs::kSms * 128 * 4;
  int* out = suite::Buffer<int>(n, suite::Fill::kZero);
  pairs::Add(
      "strike", [=] { strike__bad<<<pairs::kSms, 128>>>(d_table, out, 4096); },
      [=] { strike__good<<<pairs::kSms, 128>>>(d_table, out, 4096); }, out, n, 0);
}

int main(int argc, char** argv) {
  AddShaders();
  AddRings();
  AddStrike();
  return pairs::Main(argc, argv);
}
