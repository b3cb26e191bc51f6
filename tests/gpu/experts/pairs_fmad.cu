// SPDX-License-Identifier: Apache-2.0
// flags: -fmad=false
// A pair about a build flag: the good kernel asks for fused operations by name.
#include "pairs.h"

// Sine and cosine series of 12 terms each, eight arguments an element.
KERNEL series__bad(const float* __restrict__ x, float* __restrict__ out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float sum = 0;
#pragma unroll
    for (int k = 1; k <= 8; ++k) {
      const float v = x[i] * (0.125f * k), q = v * v;
      float s = 1.0f, c = 1.0f;
#pragma unroll
      for (int t = 12; t > 0; --t) {
        s = s * (q * (-1.0f / (2 * t * (2 * t + 1)))) + 1.0f;
        c = c * (q * (-1.0f / (2 * t * (2 * t - 1)))) + 1.0f;
      }
      sum += s * v + c;
    }
    out[i] = sum;
  }
}

KERNEL series__good(const float* __restrict__ x, float* __restrict__ out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float sum = 0;
#pragma unroll
    for (int k = 1; k <= 8; ++k) {
      const float v = x[i] * (0.125f * k), q = v * v;
      float s = 0, c = 0, f = 1;  // Horner with folded factorials: one fused operation a term
#pragma unroll
      for (int t = 0; t < 24; ++t) {
        f /= (t + 1);
      }
#pragma unroll
      for (int t = 12; t >= 0; --t) {
        const float sign = t % 2 == 0 ? 1.0f : -1.0f;
        c = fmaf(c, q, sign * f);  // f is 1 / (2t)!
        s = fmaf(s, q, sign * (f / (2 * t + 1)));
        f *= t > 0 ? 2.0f * t * (2 * t - 1) : 1.0f;
      }
      sum = fmaf(s, v, sum + c);
    }
    out[i] = sum;
  }
}

static void AddSeries() {
  const int n = 16 << 20, grid = pairs::kSms * 8;
  float *x = suite::Buffer<float>(n), *out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "series", [=] { series__bad<<<grid, 256>>>(x, out, n); },
      [=] { series__good<<<grid, 256>>>(x, out, n); }, out, n);
}

// Orbits of z z + c in steps, plain operators or fused by name.
KERNEL julia__bad(const float2* __restrict__ c, float* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float a = 0.2f * c[i].x, b = 0.2f * c[i].y;
  float x = 0, y = 0;
#pragma unroll 8
  for (int k = 0; k < 512; ++k) {
    const float next = (x * x + a) - y * y;
    y = (x * y) * 2.0f + b;
    x = next;
  }
  out[i] = x + y;
}

KERNEL julia__good(const float2* __restrict__ c, float* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float a = 0.2f * c[i].x, b = 0.2f * c[i].y;
  float x = 0, y = 0;
#pragma unroll 8
  for (int k = 0; k < 512; ++k) {
    const float next = fmaf(-y, y, fmaf(x, x, a));
    y = fmaf(x + x, y, b);
    x = next;
  }
  out[i] = x + y;
}

static void AddJulia() {
  const int n = 4 << 20;
  float2* c = suite::Buffer<float2>(n);
  float* out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "julia", [=] { julia__bad<<<n / 256, 256>>>(c, out, n); },
      [=] { julia__good<<<n / 256, 256>>>(c, out, n); }, out, n);
}

int main(int argc, char** argv) {
  AddSeries();
  AddJulia();
  return pairs::Main(argc, argv);
}
