// SPDX-License-Identifier: Apache-2.0
// Pairs about registers, dependent chains and what the compiler may keep.
#include "pairs.h"

// A chain of 40 reacting species a thread, Heun steps; the bad one is capped to 32 registers.
constexpr int kSpecies = 40;

__device__ __forceinline__ void React(float* __restrict__ y, int n, int i) {
  float u[kSpecies], k[kSpecies];
#pragma unroll
  for (int s = 0; s < kSpecies; ++s) {
    u[s] = y[s * n + i];
  }
#pragma unroll 1
  for (int step = 0; step < 16; ++step) {
#pragma unroll
    for (int s = 0; s < kSpecies; ++s) {
      k[s] = u[s] + 0.01f * (u[(s + 1) % kSpecies] * u[(s + 7) % kSpecies] - u[s]);
    }
#pragma unroll
    for (int s = 0; s < kSpecies; ++s) {
      u[s] = 0.5f * (u[s] + k[s] + 0.01f * (k[(s + 1) % kSpecies] * k[(s + 7) % kSpecies] - k[s]));
    }
  }
#pragma unroll
  for (int s = 0; s < kSpecies; ++s) {
    y[(kSpecies + s) * n + i] = u[s];
  }
}

KERNEL __launch_bounds__(1024, 2) species__bad(float* __restrict__ y, int n) {
  React(y, n, blockIdx.x * blockDim.x + threadIdx.x);
}

KERNEL __launch_bounds__(256) species__good(float* __restrict__ y, int n) {
  React(y, n, blockIdx.x * blockDim.x + threadIdx.x);
}

static void AddSpecies() {
  const int n = 1 << 19;
  float* y = suite::Buffer<float>(size_t(n) * 2 * kSpecies);
  pairs::Add(
      "species", [=] { species__bad<<<n / 256, 256>>>(y, n); },
      [=] { species__good<<<n / 256, 256>>>(y, n); }, y + size_t(n) * kSpecies,
      size_t(n) * kSpecies);
}

// Vertical depthwise filter of 7: the last rows in a ring with a run-time index, or shifted.
KERNEL vertical__bad(const float* __restrict__ x, const float* __restrict__ w,
                     float* __restrict__ out, int height, int width) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x;
  const size_t base = size_t(blockIdx.y) * height * width + c;
  float ring[8] = {}, taps[7];
  for (int k = 0; k < 7; ++k) {
    taps[k] = w[k];
  }
#pragma unroll 1
  for (int h = 0; h < height; ++h) {
    ring[h & 7] = x[base + size_t(h) * width];
    float s = 0;
#pragma unroll
    for (int k = 0; k < 7; ++k) {
      s += taps[k] * ring[(h - k) & 7];
    }
    out[base + size_t(h) * width] = s;
  }
}

KERNEL vertical__good(const float* __restrict__ x, const float* __restrict__ w,
                      float* __restrict__ out, int height, int width) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x;
  const size_t base = size_t(blockIdx.y) * height * width + c;
  float last[7] = {}, taps[7];
  for (int k = 0; k < 7; ++k) {
    taps[k] = w[k];
  }
#pragma unroll 7
  for (int h = 0; h < height; ++h) {
#pragma unroll
    for (int k = 6; k > 0; --k) {
      last[k] = last[k - 1];
    }
    last[0] = x[base + size_t(h) * width];
    float s = 0;
#pragma unroll
    for (int k = 0; k < 7; ++k) {
      s += taps[k] * last[k];
    }
    out[base + size_t(h) * width] = s;
  }
}

static void AddVertical() {
  const int images = 2048, height = 224, width = 256;
  const size_t n = size_t(images) * height * width;
  float *x = suite::Buffer<float>(n), *w = suite::Buffer<float>(7);
  float* out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "vertical",
      [=] { vertical__bad<<<dim3(1, images), width>>>(x, w, out, height, width); },
      [=] { vertical__good<<<dim3(1, images), width>>>(x, w, out, height, width); }, out, n);
}

// The 8 largest of 256 values a thread: insertion by index, or a chain of min and max.
KERNEL top8__bad(const float* __restrict__ x, float* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float best[8];
  for (int k = 0; k < 8; ++k) {
    best[k] = -INFINITY;
  }
#pragma unroll 1
  for (int j = 0; j < 256; ++j) {
    const float v = x[size_t(j) * n + i];
    if (v > best[7]) {
      int at = 7;
      while (at > 0 && best[at - 1] < v) {
        best[at] = best[at - 1];
        --at;
      }
      best[at] = v;
    }
  }
  for (int k = 0; k < 8; ++k) {
    out[k * n + i] = best[k];
  }
}

KERNEL top8__good(const float* __restrict__ x, float* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float best[8];
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    best[k] = -INFINITY;
  }
#pragma unroll 4
  for (int j = 0; j < 256; ++j) {
    float v = x[size_t(j) * n + i];
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const float low = fminf(best[k], v);
      best[k] = fmaxf(best[k], v);
      v = low;
    }
  }
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    out[k * n + i] = best[k];
  }
}

static void AddTop8() {
  const int n = pairs::kSms * 2048;
  float* x = suite::Buffer<float>(size_t(n) * 256);
  float* out = suite::Buffer<float>(size_t(n) * 8, suite::Fill::kZero);
  pairs::Add(
      "top8", [=] { top8__bad<<<n / 256, 256>>>(x, out, n); },
      [=] { top8__good<<<n / 256, 256>>>(x, out, n); }, out, size_t(n) * 8);
}

// Cube roots by a slow fixed-point iteration, few warps: four roots one after the other, or
// side by side.
KERNEL cuberoot__bad(const float* __restrict__ a, float* __restrict__ out, int n) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll 1
  for (int k = 0; k < 4; ++k) {
    const float v = 1.5f + 0.4f * a[k * n + t];
    float x = 1.0f;
#pragma unroll 8
    for (int i = 0; i < 8192; ++i) {
      x = x - 0.05f * (x * x * x - v);
    }
    out[k * n + t] = x;
  }
}

KERNEL cuberoot__good(const float* __restrict__ a, float* __restrict__ out, int n) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  float v[4], x[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    v[k] = 1.5f + 0.4f * a[k * n + t];
    x[k] = 1.0f;
  }
#pragma unroll 8
  for (int i = 0; i < 8192; ++i) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      x[k] = x[k] - 0.05f * (x[k] * x[k] * x[k] - v[k]);
    }
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    out[k * n + t] = x[k];
  }
}

static void AddCubeRoot() {
  const int n = pairs::kSms * 128;
  float *a = suite::Buffer<float>(n * 4), *out = suite::Buffer<float>(n * 4, suite::Fill::kZero);
  pairs::Add(
      "cuberoot", [=] { cuberoot__bad<<<pairs::kSms, 128>>>(a, out, n); },
      [=] { cuberoot__good<<<pairs::kSms, 128>>>(a, out, n); }, out, n * 4);
}

// Compensated sums of columns held in shared memory, one chain or four.
template <int kChains>
__device__ void Kahan(const float* __restrict__ x, float* __restrict__ out) {
  __shared__ float xs[64 * 128];
  const int t = threadIdx.x;
  for (int j = 0; j < 64; ++j) {
    xs[j * 128 + t] = x[(size_t(blockIdx.x) * 64 + j) * 128 + t];
  }
  float sum[kChains] = {}, lost[kChains] = {};
#pragma unroll 1
  for (int repeat = 0; repeat < 256; ++repeat) {
    const float scale = 1.0f + repeat;
#pragma unroll
    for (int j = 0; j < 64; ++j) {
      const int c = j % kChains;
      const float y = __fmaf_rn(xs[j * 128 + t], scale, -lost[c]), z = sum[c] + y;
      lost[c] = (z - sum[c]) - y;
      sum[c] = z;
    }
  }
  float all = 0;
#pragma unroll
  for (int c = 0; c < kChains; ++c) {
    all += sum[c];
  }
  out[blockIdx.x * 128 + t] = all;
}

KERNEL kahan__bad(const float* x, float* out) { Kahan<1>(x, out); }
KERNEL kahan__good(const float* x, float* out) { Kahan<4>(x, out); }

static void AddKahan() {
  const int grid = pairs::kSms * 2;
  float* x = suite::Buffer<float>(size_t(grid) * 64 * 128);
  float* out = suite::Buffer<float>(grid * 128, suite::Fill::kZero);
  pairs::Add(
      "kahan", [=] { kahan__bad<<<grid, 128>>>(x, out); },
      [=] { kahan__good<<<grid, 128>>>(x, out); }, out, grid * 128);
}

// Leaky integrate-and-fire neurons: state and parameters through pointers that may overlap, or
// in registers.
KERNEL neurons__bad(float* v, float* trace, const float* decay, const float* drive, int steps) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  v[i] = 0;
  trace[i] = 0;
  for (int s = 0; s < steps; ++s) {
    v[i] = v[i] * decay[i] + drive[i];
    trace[i] = trace[i] * decay[i] + 0.1f * v[i];
    v[i] -= v[i] > 1.0f ? drive[i] : 0.0f;
  }
}

KERNEL neurons__good(float* __restrict__ v, float* __restrict__ trace,
                     const float* __restrict__ decay, const float* __restrict__ drive, int steps) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float d = decay[i], in = drive[i];
  float x = 0, y = 0;
  for (int s = 0; s < steps; ++s) {
    x = x * d + in;
    y = y * d + 0.1f * x;
    x -= x > 1.0f ? in : 0.0f;
  }
  v[i] = x;
  trace[i] = y;
}

static void AddNeurons() {
  const int n = 1 << 20;
  float *v = suite::Buffer<float>(n), *trace = suite::Buffer<float>(n);
  float *drive = suite::Buffer<float>(n, suite::Fill::kFloat, 5);
  std::vector<float> decay(n);
  for (int i = 0; i < n; ++i) {
    decay[i] = 0.5f + 0.4f * static_cast<float>(i % 97) / 97;
  }
  const float* d_decay = pairs::Upload(decay);
  pairs::Add(
      "neurons", [=] { neurons__bad<<<n / 256, 256>>>(v, trace, d_decay, drive, 200); },
      [=] { neurons__good<<<n / 256, 256>>>(v, trace, d_decay, drive, 200); }, trace, n);
}

int main(int argc, char** argv) {
  AddSpecies();
  AddVertical();
  AddTop8();
  AddCubeRoot();
  AddKahan();
  AddNeurons();
  return pairs::Main(argc, argv);
}
