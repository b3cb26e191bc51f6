// SPDX-License-Identifier: Apache-2.0
// Pairs about precision, special functions, integer work, conversions and branches.
#include <algorithm>
#include <numeric>

#include "pairs.h"

// Rotary embedding with the angles computed on the way: literals of double, or of float.
KERNEL rope__bad(const float2* __restrict__ x, float2* __restrict__ out, int pairs, int heads) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, d = i % pairs, t = i / pairs / heads;
  const float angle = t % 64 * exp2(-13.2877 * d / pairs);
  const float c = cos(1.0 * angle), s = sin(1.0 * angle);
  const float2 v = x[i];
  out[i] = make_float2(v.x * c - v.y * s, v.y * c + v.x * s);
}

KERNEL rope__good(const float2* __restrict__ x, float2* __restrict__ out, int pairs, int heads) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, d = i % pairs, t = i / pairs / heads;
  const float angle = t % 64 * exp2f(-13.2877f * d / pairs);
  const float c = cosf(angle), s = sinf(angle);
  const float2 v = x[i];
  out[i] = make_float2(v.x * c - v.y * s, v.y * c + v.x * s);
}

static void AddRope() {
  const int n = 16 << 20;
  float2 *x = suite::Buffer<float2>(n), *out = suite::Buffer<float2>(n, suite::Fill::kZero);
  pairs::Add(
      "rope", [=] { rope__bad<<<n / 256, 256>>>(x, out, 64, 32); },
      [=] { rope__good<<<n / 256, 256>>>(x, out, 64, 32); }, reinterpret_cast<float*>(out),
      size_t(n) * 2);
}

// GELU (tanh form) where the constants of the formula are double, or float.
KERNEL gelutanh__bad(const float* __restrict__ x, float* __restrict__ out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const float v = 3.0f * x[i];
    out[i] = 0.5 * v * (1.0 + tanh(0.7978845608 * (v + 0.044715 * v * v * v)));
  }
}

KERNEL gelutanh__good(const float* __restrict__ x, float* __restrict__ out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const float v = 3.0f * x[i];
    out[i] = 0.5f * v * (1.0f + tanhf(0.7978845608f * (v + 0.044715f * v * v * v)));
  }
}

static void AddGelu() {
  const int n = 32 << 20, grid = pairs::kSms * 8;
  float *x = suite::Buffer<float>(n), *out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "gelutanh", [=] { gelutanh__bad<<<grid, 256>>>(x, out, n); },
      [=] { gelutanh__good<<<grid, 256>>>(x, out, n); }, out, n);
}

// A virial series of degree 32 by powf, or by Horner's rule.
struct Series {
  float c[33];
};

KERNEL virial__bad(const float* __restrict__ x, float* __restrict__ out, int n, Series series) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float s = 0;
#pragma unroll
    for (int k = 0; k <= 32; ++k) {
      s += series.c[k] * __powf(fabsf(x[i]) + 0.1f, static_cast<float>(k));
    }
    out[i] = s;
  }
}

KERNEL virial__good(const float* __restrict__ x, float* __restrict__ out, int n, Series series) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const float v = fabsf(x[i]) + 0.1f;
    float s = series.c[32];
#pragma unroll
    for (int k = 31; k >= 0; --k) {
      s = s * v + series.c[k];
    }
    out[i] = s;
  }
}

static void AddVirial() {
  const int n = 32 << 20, grid = pairs::kSms * 8;
  Series series;
  for (int k = 0; k <= 32; ++k) {
    series.c[k] = (k % 3 - 0.7f) / (k + 1);
  }
  float *x = suite::Buffer<float>(n), *out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "virial", [=] { virial__bad<<<grid, 256>>>(x, out, n, series); },
      [=] { virial__good<<<grid, 256>>>(x, out, n, series); }, out, n);
}

// Fourier features cos(kx), sin(kx), k = 1..24, summed: evaluated each, or by angle addition.
KERNEL fourier__bad(const float* __restrict__ x, float* __restrict__ out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const float v = x[i];
    float s = 0;
#pragma unroll
    for (int k = 1; k <= 24; ++k) {
      s += __cosf(k * v) * (1.0f / k) + __sinf(k * v) * (0.5f / k);
    }
    out[i] = s;
  }
}

KERNEL fourier__good(const float* __restrict__ x, float* __restrict__ out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const float c1 = __cosf(x[i]), s1 = __sinf(x[i]);
    float c = 1, sn = 0, s = 0;
#pragma unroll
    for (int k = 1; k <= 24; ++k) {
      const float next = c * c1 - sn * s1;
      sn = sn * c1 + c * s1;
      c = next;
      s += c * (1.0f / k) + sn * (0.5f / k);
    }
    out[i] = s;
  }
}

static void AddFourier() {
  const int n = 32 << 20, grid = pairs::kSms * 8;
  float *x = suite::Buffer<float>(n), *out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "fourier", [=] { fourier__bad<<<grid, 256>>>(x, out, n); },
      [=] { fourier__good<<<grid, 256>>>(x, out, n); }, out, n);
}

// 3 x 3 convolution: a flat index taken apart at every tap, or a 3-D grid.
KERNEL conv3x3__bad(const float* __restrict__ x, const float* __restrict__ w,
                    float* __restrict__ out, int n, int height, int width, int taps) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) {
    return;
  }
  float s = 0;
  for (int k = 0; k < taps * taps; ++k) {
    const int dy = k / taps - taps / 2, dx = k % taps - taps / 2;
    const int y = i / width % height + dy, c = i % width + dx;
    if (y >= 0 && y < height && c >= 0 && c < width) {
      s += w[k] * x[(i / (width * height) * height + y) * width + c];
    }
  }
  out[i] = s;
}

KERNEL conv3x3__good(const float* __restrict__ x, const float* __restrict__ w,
                     float* __restrict__ out, int height, int width) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (c >= width || y >= height) {
    return;
  }
  const int base = (blockIdx.z * height + y) * width + c;
  float s = 0;
#pragma unroll
  for (int k = 0; k < 9; ++k) {
    const int dy = k / 3 - 1, dx = k % 3 - 1;
    if (y + dy >= 0 && y + dy < height && c + dx >= 0 && c + dx < width) {
      s += w[k] * x[base + dy * width + dx];
    }
  }
  out[base] = s;
}

static void AddConv() {
  const int images = 512, height = 224, width = 224, n = images * height * width;
  float *x = suite::Buffer<float>(n), *w = suite::Buffer<float>(9);
  float* out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "conv3x3", [=] { conv3x3__bad<<<n / 256, 256>>>(x, w, out, n, height, width, 3); },
      [=] { conv3x3__good<<<dim3(7, 28, images), dim3(32, 8)>>>(x, w, out, height, width); }, out,
      n);
}

// Broadcast add of a 5-D tensor: coordinates by run-time division, or a row a block.
struct Shape {
  int size[5];
  long long stride[5];  // of the second operand, 0 where it is broadcast
};

KERNEL broadcast__bad(const float* __restrict__ a, const float* __restrict__ b,
                      float* __restrict__ out, long long n, Shape shape) {
  const long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  if (i < n) {
    long long rest = i, at = 0;
#pragma unroll
    for (int d = 4; d >= 0; --d) {
      at += rest % shape.size[d] * shape.stride[d];
      rest /= shape.size[d];
    }
    out[i] = a[i] + b[at];
  }
}

KERNEL broadcast__good(const float* __restrict__ a, const float* __restrict__ b,
                       float* __restrict__ out, int inner, int middle) {
  const size_t row = size_t(blockIdx.y) * middle + blockIdx.x;
  for (int c = threadIdx.x; c < inner; c += blockDim.x) {
    out[row * inner + c] = a[row * inner + c] + b[blockIdx.y * inner + c];
  }
}

static void AddBroadcast() {
  const Shape shape{{16, 8, 64, 16, 256}, {8 * 256, 256, 0, 0, 1}};
  const long long n = 16ll * 8 * 64 * 16 * 256;
  float *a = suite::Buffer<float>(n), *b = suite::Buffer<float>(16 * 8 * 256);
  float* out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "broadcast", [=] { broadcast__bad<<<n / 256, 256>>>(a, b, out, n, shape); },
      [=] { broadcast__good<<<dim3(64 * 16, 16 * 8), 256>>>(a, b, out, 256, 64 * 16); }, out, n);
}

// Orbits of different length: taken as they come, or sorted by length (longest first).
__device__ void Orbit(const float* x, const int* length, float* out, int i) {
  float v = 0.5f + 0.3f * x[i];
  const int steps = length[i];
  for (int s = 0; s < steps; ++s) {
    v = 2.7f * v * (1.0f - v);
  }
  out[i] = v;
}

KERNEL orbits__bad(const float* x, const int* length, const int* order, float* out) {
  Orbit(x, length, out, order[blockIdx.x * blockDim.x + threadIdx.x]);
}

KERNEL orbits__good(const float* x, const int* length, const int* order, float* out) {
  Orbit(x, length, out, order[blockIdx.x * blockDim.x + threadIdx.x]);
}

static void AddOrbits() {
  const int n = 1 << 20;
  std::vector<int> length(n), same(n), sorted(n);
  for (int i = 0; i < n; ++i) {
    const unsigned h = i * 2654435761u >> 12;
    length[i] = h % 16 == 0 ? 2048 : 16 + static_cast<int>(h % 64);
  }
  std::iota(same.begin(), same.end(), 0);
  sorted = same;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](int a, int b) { return length[a] > length[b]; });
  const int *d_length = pairs::Upload(length), *d_same = pairs::Upload(same);
  const int* d_sorted = pairs::Upload(sorted);
  float *x = suite::Buffer<float>(n), *out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "orbits", [=] { orbits__bad<<<n / 256, 256>>>(x, d_length, d_same, out); },
      [=] { orbits__good<<<n / 256, 256>>>(x, d_length, d_sorted, out); }, out, n);
}

// A chain of 48 scale-and-shift steps on fp16 data: back to half after each, or once.
KERNEL halfchain__bad(const __half* __restrict__ x, __half* __restrict__ out, int n, float a) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    __half h = x[i];
#pragma unroll 8
    for (int k = 0; k < 48; ++k) {
      h = __float2half(__half2float(h) * a + 0.125f);
    }
    out[i] = h;
  }
}

KERNEL halfchain__good(const __half* __restrict__ x, __half* __restrict__ out, int n, float a) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float v = __half2float(x[i]);
#pragma unroll 8
    for (int k = 0; k < 48; ++k) {
      v = v * a + 0.125f;
    }
    out[i] = __float2half(v);
  }
}

static void AddHalfChain() {
  const int n = 64 << 20, grid = pairs::kSms * 8;
  __half* x = suite::Buffer<__half>(n, suite::Fill::kHalf);
  __half* out = suite::Buffer<__half>(n, suite::Fill::kZero);
  pairs::Add(
      "halfchain", [=] { halfchain__bad<<<grid, 256>>>(x, out, n, 0.875f); },
      [=] { halfchain__good<<<grid, 256>>>(x, out, n, 0.875f); }, out, n, 2e-2);
}

int main(int argc, char** argv) {
  AddRope();
  AddGelu();
  AddVirial();
  AddFourier();
  AddConv();
  AddBroadcast();
  AddOrbits();
  AddHalfChain();
  return pairs::Main(argc, argv);
}
