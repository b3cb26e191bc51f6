// SPDX-License-Identifier: Apache-2.0
// flags: -fmad=false
// Holdout pairs about separate multiply and add; the good kernels ask for fused operations.
#include "pairs.h"

template <bool kFused>
__device__ float MulAdd(float a, float b, float c) {
  return kFused ? fmaf(a, b, c) : a * b + c;
}

// Reaction of Gray and Scott in a well-stirred cell: 128 steps.
template <bool kFused>
__device__ void GrayScott(const float2* __restrict__ in, float2* __restrict__ out, int steps) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float u = fabsf(in[i].x), v = 0.3f * fabsf(in[i].y);
#pragma unroll 4
  for (int k = 0; k < steps; ++k) {
    const float uv = u * v;
    const float gain = MulAdd<kFused>(uv, v, -0.002f), feed = MulAdd<kFused>(u, -0.04f, 0.04f);
    const float kill = MulAdd<kFused>(v, -0.1f, gain);
    u = MulAdd<kFused>(0.5f, feed, MulAdd<kFused>(gain, -0.5f, u));
    v = MulAdd<kFused>(0.5f, kill, v);
  }
  out[i] = make_float2(u, v);
}

KERNEL grayscott__bad(const float2* in, float2* out, int steps) {
  GrayScott<false>(in, out, steps);
}

KERNEL grayscott__good(const float2* in, float2* out, int steps) {
  GrayScott<true>(in, out, steps);
}

static void AddGrayScott() {
  const int n = 16 << 20;
  float2 *in = suite::Buffer<float2>(n), *out = suite::Buffer<float2>(n, suite::Fill::kZero);
  pairs::Add(
      "grayscott", [=] { grayscott__bad<<<n / 256, 256>>>(in, out, 128); },
      [=] { grayscott__good<<<n / 256, 256>>>(in, out, 128); }, reinterpret_cast<float*>(out),
      size_t(n) * 2, 1e-2);
}

// Orientations turned 64 times by their own unit quaternion.
template <bool kFused>
__device__ float4 Turn(float4 p, float4 q) {
  auto dot = [](float a, float b, float c, float d, float e, float f, float g, float h) {
    return MulAdd<kFused>(g, h, MulAdd<kFused>(e, f, MulAdd<kFused>(c, d, a * b)));
  };
  return make_float4(
      dot(p.w, q.x, p.x, q.w, p.y, q.z, -p.z, q.y), dot(p.w, q.y, -p.x, q.z, p.y, q.w, p.z, q.x),
      dot(p.w, q.z, p.x, q.y, -p.y, q.x, p.z, q.w), dot(p.w, q.w, -p.x, q.x, -p.y, q.y, -p.z, q.z));
}

template <bool kFused>
__device__ void Spin(const float4* __restrict__ in, float4* __restrict__ out, int turns) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 q = in[i];
  const float s = rsqrtf(q.x * q.x + q.y * q.y + q.z * q.z + q.w * q.w + 1e-6f);
  q = make_float4(q.x * s, q.y * s, q.z * s, q.w * s);
  float4 p = q;
#pragma unroll 4
  for (int k = 0; k < turns; ++k) {
    p = Turn<kFused>(p, q);
  }
  out[i] = p;
}

KERNEL spin__bad(const float4* in, float4* out, int turns) {
  Spin<false>(in, out, turns);
}

KERNEL spin__good(const float4* in, float4* out, int turns) {
  Spin<true>(in, out, turns);
}

static void AddSpin() {
  const int n = 4 << 20;
  float4 *in = suite::Buffer<float4>(n), *out = suite::Buffer<float4>(n, suite::Fill::kZero);
  pairs::Add(
      "spin", [=] { spin__bad<<<n / 256, 256>>>(in, out, 128); },
      [=] { spin__good<<<n / 256, 256>>>(in, out, 128); }, reinterpret_cast<float*>(out),
      size_t(n) * 4, 1e-2);
}

int main(int argc, char** argv) {
  AddGrayScott();
  AddSpin();
  return pairs::Main(argc, argv);
}
