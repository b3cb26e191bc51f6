// SPDX-License-Identifier: Apache-2.0
// Validation pairs about code size, dependent table steps, special functions, block shapes and
// records that are stored piece by piece.
#include "pairs.h"

// Rounds of a generated chemistry kernel: 12 stages, each with its own 640 unrolled updates, which
// the warps of a block enter at different places, or stages that loop.
constexpr int kStages = 12, kUpdates = 640;

template <int kUnroll>
__device__ __forceinline__ float Updates(float v, float rate) {
  float w = 0.5f * v;
#pragma unroll kUnroll
  for (int k = 0; k < kUpdates; ++k) {
    const float t = fmaf(v, -v, v);
    w = fmaf(w, 0.75f, t);
    v = fmaf(t, rate, 0.01f);
  }
  return 0.5f * v + 0.05f * w;
}

template <int kStage>
__device__ __noinline__ float OwnStage(float v) {
  return Updates<kUpdates>(v, 2.0f + 0.05f * kStage);
}

template <int kStage>
__device__ __forceinline__ float Select(int stage, float v) {
  if constexpr (kStage + 1 == kStages) {
    return OwnStage<kStage>(v);
  } else {
    return stage == kStage ? OwnStage<kStage>(v) : Select<kStage + 1>(stage, v);
  }
}

KERNEL reactor__bad(const float* __restrict__ x, float* __restrict__ out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = 0.5f + 0.2f * x[i];
#pragma unroll 1
  for (int r = 0; r < kStages; ++r) {
    v = Select<0>((threadIdx.x / 32 * 5 + blockIdx.x * 7 + r) % kStages, v);
  }
  out[i] = v;
}

KERNEL reactor__good(const float* __restrict__ x, float* __restrict__ out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = 0.5f + 0.2f * x[i];
#pragma unroll 1
  for (int r = 0; r < kStages; ++r) {
    const int stage = (threadIdx.x / 32 * 5 + blockIdx.x * 7 + r) % kStages;
    v = Updates<16>(v, 2.0f + 0.05f * stage);
  }
  out[i] = v;
}

static void AddReactor() {
  const int n = 1 << 20;
  float *x = suite::Buffer<float>(n), *out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "reactor", [=] { reactor__bad<<<n / 256, 256>>>(x, out); },
      [=] { reactor__good<<<n / 256, 256>>>(x, out); }, out, n, 2e-2);
}

// Random words run through an automaton whose table lies in shared memory: the four words of a
// thread one after the other, or side by side (one warp a scheduler).
template <int kSide>
__device__ void Automaton(const unsigned* __restrict__ seed,
                          const unsigned short* __restrict__ rule, int* __restrict__ out,
                          int length) {
  __shared__ unsigned short table[64 * 16];
  for (int i = threadIdx.x; i < 1024; i += 128) {
    table[i] = rule[i];
  }
  __syncthreads();
  const int lanes = gridDim.x * 128, t = blockIdx.x * 128 + threadIdx.x;
#pragma unroll 1
  for (int k = 0; k < 4; k += kSide) {
    int state[kSide] = {}, hits[kSide] = {};
    unsigned v[kSide];
#pragma unroll
    for (int j = 0; j < kSide; ++j) {
      v[j] = seed[(k + j) * lanes + t];
    }
#pragma unroll 1
    for (int w = 0; w < length; w += 4) {
#pragma unroll
      for (int j = 0; j < kSide; ++j) {
        v[j] = v[j] * 1664525u + 1013904223u;
      }
#pragma unroll
      for (int c = 16; c < 32; c += 4) {
#pragma unroll
        for (int j = 0; j < kSide; ++j) {
          state[j] = table[state[j] * 16 + (v[j] >> c & 15)];
          hits[j] += state[j] == 63;
        }
      }
    }
#pragma unroll
    for (int j = 0; j < kSide; ++j) {
      out[(k + j) * lanes + t] = hits[j] * 64 + state[j];
    }
  }
}

KERNEL automaton__bad(const unsigned* seed, const unsigned short* rule, int* out, int length) {
  Automaton<1>(seed, rule, out, length);
}

KERNEL automaton__good(const unsigned* seed, const unsigned short* rule, int* out, int length) {
  Automaton<4>(seed, rule, out, length);
}

static void AddAutomaton() {
  const int length = 4096, n = pairs::kSms * 128;
  std::vector<unsigned short> rule(1024);
  for (int i = 0; i < 1024; ++i) {
    rule[i] = static_cast<unsigned short>(i * 2654435761u >> 26);
  }
  const unsigned short* d_rule = pairs::Upload(rule);
  unsigned* seed = suite::Buffer<unsigned>(n * 4, suite::Fill::kBits);
  int* out = suite::Buffer<int>(n * 4, suite::Fill::kZero);
  pairs::Add(
      "automaton", [=] { automaton__bad<<<pairs::kSms, 128>>>(seed, d_rule, out, length); },
      [=] { automaton__good<<<pairs::kSms, 128>>>(seed, d_rule, out, length); }, out, n * 4, 0);
}

// Radial basis of 36 centres at equal distances: an exponential for each, or two and a recurrence.
KERNEL radial__bad(const float* __restrict__ x, float* __restrict__ out, int n, float width) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float s = 0;
#pragma unroll
    for (int k = 0; k < 36; ++k) {
      const float d = x[i] - 0.05f * k;
      s += (0.3f + k % 5) * __expf(-width * d * d);
    }
    out[i] = s;
  }
}

KERNEL radial__good(const float* __restrict__ x, float* __restrict__ out, int n, float width) {
  // exp(-w (v - k h)^2) = exp(-w v^2) * exp(2 w h v)^k * exp(-w h^2)^(k^2)
  const float step = __expf(-width * 0.0025f), square = step * step;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const float v = x[i];
    float g = __expf(-width * v * v), ratio = __expf(2 * width * 0.05f * v) * step, s = 0;
#pragma unroll
    for (int k = 0; k < 36; ++k) {
      s += (0.3f + k % 5) * g;
      g *= ratio;
      ratio *= square;
    }
    out[i] = s;
  }
}

static void AddRadial() {
  const int n = 30 << 20, grid = pairs::kSms * 12;
  float *x = suite::Buffer<float>(n), *out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "radial", [=] { radial__bad<<<grid, 160>>>(x, out, n, 2.0f); },
      [=] { radial__good<<<grid, 160>>>(x, out, n, 2.0f); }, out, n);
}

// Weather stations with 33 levels: a block of 33 threads a station, or flat blocks.
KERNEL stations__bad(const float* __restrict__ x, const float* __restrict__ gain,
                     float* __restrict__ out) {
  const int i = blockIdx.x * 33 + threadIdx.x;
  float v = x[i];
#pragma unroll 8
  for (int k = 0; k < 48; ++k) {
    v = fmaf(v, 0.8f, 0.05f * v * v);
  }
  out[i] = v + gain[threadIdx.x];
}

KERNEL stations__good(const float* __restrict__ x, const float* __restrict__ gain,
                      float* __restrict__ out) {
  const int i = blockIdx.x * 264 + threadIdx.x;
  float v = x[i];
#pragma unroll 8
  for (int k = 0; k < 48; ++k) {
    v = fmaf(v, 0.8f, 0.05f * v * v);
  }
  out[i] = v + gain[threadIdx.x % 33];
}

static void AddStations() {
  const int stations = 1 << 19, n = stations * 33;
  float *x = suite::Buffer<float>(n), *gain = suite::Buffer<float>(33);
  float* out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "stations", [=] { stations__bad<<<stations, 33>>>(x, gain, out); },
      [=] { stations__good<<<stations / 8, 264>>>(x, gain, out); }, out, n);
}

// Patches from corner heights: 25 floats a thread written one by one, 100 bytes apart, or
// through shared memory.
template <bool kStaged>
__device__ void Mesh(const float* __restrict__ height, float* __restrict__ out) {
  __shared__ float staged[kStaged ? 256 * 25 : 1];
  const int i = blockIdx.x * 256 + threadIdx.x;
  const float h = height[i];
  float* to = kStaged ? staged + threadIdx.x * 25 : out + size_t(i) * 25;
#pragma unroll
  for (int k = 0; k < 25; ++k) {
    to[k] = h * (0.5f + k) + (k % 3);
  }
  if (kStaged) {
    __syncthreads();
    float* block = out + size_t(blockIdx.x) * 256 * 25;
#pragma unroll
    for (int k = 0; k < 25; ++k) {
      block[k * 256 + threadIdx.x] = staged[k * 256 + threadIdx.x];
    }
  }
}

KERNEL mesh__bad(const float* height, float* out) {
  Mesh<false>(height, out);
}

KERNEL mesh__good(const float* height, float* out) {
  Mesh<true>(height, out);
}

static void AddMesh() {
  const int n = 5 << 20;
  float *height = suite::Buffer<float>(n),
        *out = suite::Buffer<float>(size_t(n) * 25, suite::Fill::kZero);
  pairs::Add(
      "mesh", [=] { mesh__bad<<<n / 256, 256>>>(height, out); },
      [=] { mesh__good<<<n / 256, 256>>>(height, out); }, out, size_t(n) * 25);
}

int main(int argc, char** argv) {
  AddReactor();
  AddAutomaton();
  AddRadial();
  AddStations();
  AddMesh();
  return pairs::Main(argc, argv);
}
