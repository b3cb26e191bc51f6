// SPDX-License-Identifier: Apache-2.0
// flags: -fmad=false
// Validation pairs about separate multiply and add; the good kernels ask for fused operations.
#include "pairs.h"

template <bool kFused>
__device__ float MulAdd(float a, float b, float c) {
  return kFused ? fmaf(a, b, c) : a * b + c;
}

// Radix-2 butterflies of eight points in registers, 24 rounds with a twiddle that shrinks.
template <bool kFused>
__device__ void Butterflies(const float2* __restrict__ in, float2* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float2 v[8];
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    v[k] = in[k * n + i];
  }
  float c = 0.6f, s = 0.37f;
#pragma unroll 1
  for (int round = 0; round < 24; ++round) {
#pragma unroll
    for (int d = 4; d > 0; d /= 2) {
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        if ((k & d) == 0) {
          const float2 a = v[k], b = v[k + d];
          const float re = MulAdd<kFused>(b.x, c, 0.01f), im = MulAdd<kFused>(b.y, c, 0.02f);
          v[k].x = MulAdd<kFused>(-b.y, s, MulAdd<kFused>(a.x, 0.5f, re));
          v[k].y = MulAdd<kFused>(b.x, s, MulAdd<kFused>(a.y, 0.5f, im));
          v[k + d].x = MulAdd<kFused>(b.y, s, MulAdd<kFused>(a.x, 0.5f, -re));
          v[k + d].y = MulAdd<kFused>(-b.x, s, MulAdd<kFused>(a.y, 0.5f, -im));
        }
      }
    }
    c = MulAdd<kFused>(c, 0.99f, 0.004f);
  }
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    out[k * n + i] = v[k];
  }
}

KERNEL fft8__bad(const float2* in, float2* out, int n) {
  Butterflies<false>(in, out, n);
}

KERNEL fft8__good(const float2* in, float2* out, int n) {
  Butterflies<true>(in, out, n);
}

static void AddFft() {
  const int n = 2 << 20;
  float2 *in = suite::Buffer<float2>(n * 8),
         *out = suite::Buffer<float2>(n * 8, suite::Fill::kZero);
  pairs::Add(
      "fft8", [=] { fft8__bad<<<n / 128, 128>>>(in, out, n); },
      [=] { fft8__good<<<n / 128, 128>>>(in, out, n); }, reinterpret_cast<float*>(out),
      size_t(n) * 16);
}

// Oscillators in double (1e-9 is wanted): 512 leapfrog steps.
template <bool kFused>
__device__ double MulAddDouble(double a, double b, double c) {
  return kFused ? fma(a, b, c) : a * b + c;
}

template <bool kFused>
__device__ void Leap(const double2* __restrict__ in, double2* __restrict__ out, int steps) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  double x = in[i].x, v = in[i].y;
#pragma unroll 4
  for (int k = 0; k < steps; ++k) {
    v = MulAddDouble<kFused>(x, -0.01, v);
    x = MulAddDouble<kFused>(v, 0.01, x);
  }
  out[i] = make_double2(x, v);
}

KERNEL leapfrog__bad(const double2* in, double2* out, int steps) {
  Leap<false>(in, out, steps);
}

KERNEL leapfrog__good(const double2* in, double2* out, int steps) {
  Leap<true>(in, out, steps);
}

static void AddLeapfrog() {
  const int n = 2 << 20;
  std::vector<double2> host(n);
  for (int i = 0; i < n; ++i) {
    host[i] = make_double2(1.0 + i % 13, 0.5 - i % 7);
  }
  double2 *in = pairs::Upload(host), *out = suite::Buffer<double2>(n, suite::Fill::kZero);
  pairs::Add(
      "leapfrog", [=] { leapfrog__bad<<<n / 256, 256>>>(in, out, 512); },
      [=] { leapfrog__good<<<n / 256, 256>>>(in, out, 512); }, reinterpret_cast<double*>(out),
      size_t(n) * 2, 1e-9);
}

int main(int argc, char** argv) {
  AddFft();
  AddLeapfrog();
  return pairs::Main(argc, argv);
}
