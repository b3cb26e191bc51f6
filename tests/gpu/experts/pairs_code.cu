// SPDX-License-Identifier: Apache-2.0
// Pairs about instruction supply, conversion and separate multiply and add.
#include "pairs.h"

constexpr int kBodies = 48, kDegree = 384;

__host__ __device__ constexpr float Coefficient(int body, int term) {
  const unsigned h = static_cast<unsigned>(body * 7919 + term * 104729 + 1) * 2654435761u;
  return static_cast<float>(h >> 8) * (1.0f / 16777216.0f) - 0.5f;
}

template <int kBody>
__device__ __noinline__ float Specialised(float x) {
  float s = 0;
#pragma unroll
  for (int t = 0; t < kDegree; ++t) {
    s = s * x + Coefficient(kBody, t);
  }
  return s;
}

template <int kBody>
__device__ __forceinline__ float Dispatch(int body, float x) {
  if constexpr (kBody + 1 == kBodies) {
    return Specialised<kBody>(x);
  } else {
    return body == kBody ? Specialised<kBody>(x) : Dispatch<kBody + 1>(body, x);
  }
}

// Each warp evaluates 16 of 48 long polynomials, each compiled as its own code, or from a table.
KERNEL materials__bad(const float* __restrict__ x, float* __restrict__ out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, warp = i / 32;
  const float v = 0.8f * x[i];
  float sum = 0;
#pragma unroll 1
  for (int k = 0; k < 16; ++k) {
    sum += Dispatch<0>((warp * 29 + k * 17) % kBodies, v);
  }
  out[i] = sum;
}

KERNEL materials__good(const float* __restrict__ x, const float4* __restrict__ table,
                       float* __restrict__ out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, warp = i / 32;
  const float v = 0.8f * x[i];
  float sum = 0;
#pragma unroll 1
  for (int k = 0; k < 16; ++k) {
    const float4* c = table + (warp * 29 + k * 17) % kBodies * (kDegree / 4);
    float s = 0;
#pragma unroll 8
    for (int t = 0; t < kDegree / 4; ++t) {
      const float4 f = c[t];
      s = (((s * v + f.x) * v + f.y) * v + f.z) * v + f.w;
    }
    sum += s;
  }
  out[i] = sum;
}

static void AddMaterials() {
  const int n = 1 << 20;
  std::vector<float> table(kBodies * kDegree);
  for (int i = 0; i < kBodies * kDegree; ++i) {
    table[i] = Coefficient(i / kDegree, i % kDegree);
  }
  const float4* d_table = reinterpret_cast<const float4*>(pairs::Upload(table));
  float *x = suite::Buffer<float>(n), *out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "materials", [=] { materials__bad<<<n / 256, 256>>>(x, out); },
      [=] { materials__good<<<n / 256, 256>>>(x, d_table, out); }, out, n);
}

// int8 weights to fp16 with a scale a row: byte by byte, or 8 at a time.
KERNEL dequant__bad(const signed char* __restrict__ q, const float* __restrict__ scale,
                    __half* __restrict__ out, int cols) {
  const size_t base = size_t(blockIdx.x) * cols;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) {
    out[base + c] = __float2half(static_cast<float>(q[base + c]) * scale[blockIdx.x]);
  }
}

KERNEL dequant__good(const signed char* __restrict__ q, const float* __restrict__ scale,
                     __half* __restrict__ out, int cols) {
  const size_t base = size_t(blockIdx.x) * cols;
  const float f = scale[blockIdx.x];
  for (int c = threadIdx.x * 8; c < cols; c += blockDim.x * 8) {
    const uint2 raw = *reinterpret_cast<const uint2*>(q + base + c);
    uint4 to;
    __half2* h = reinterpret_cast<__half2*>(&to);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const unsigned two = (k < 2 ? raw.x : raw.y) >> (k % 2 * 16);
      h[k] = __floats2half2_rn(static_cast<signed char>(two & 255) * f,
                               static_cast<signed char>(two >> 8 & 255) * f);
    }
    *reinterpret_cast<uint4*>(out + base + c) = to;
  }
}

static void AddDequant() {
  const int rows = 32768, cols = 8192;
  const size_t n = size_t(rows) * cols;
  auto* q = suite::Buffer<signed char>(n, suite::Fill::kBits);
  float* scale = suite::Buffer<float>(rows);
  __half* out = suite::Buffer<__half>(n, suite::Fill::kZero);
  pairs::Add(
      "dequant", [=] { dequant__bad<<<rows, 256>>>(q, scale, out, cols); },
      [=] { dequant__good<<<rows, 256>>>(q, scale, out, cols); }, out, n);
}

// Damped complex filter bank in "deterministic" arithmetic of separate roundings, or fused.
KERNEL filterbank__bad(const float2* __restrict__ x, float2* __restrict__ out, int steps) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float2 in = x[i];
  float a = 0, b = 0;
#pragma unroll 8
  for (int k = 0; k < steps; ++k) {  // z = 0.8 (cos 1 + i sin 1) z + in
    const float p = __fadd_rn(__fmul_rn(a, 0.4322f), __fadd_rn(__fmul_rn(b, -0.6732f), in.x));
    b = __fadd_rn(__fmul_rn(a, 0.6732f), __fadd_rn(__fmul_rn(b, 0.4322f), in.y));
    a = p;
  }
  out[i] = make_float2(a, b);
}

KERNEL filterbank__good(const float2* __restrict__ x, float2* __restrict__ out, int steps) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float2 in = x[i];
  float a = 0, b = 0;
#pragma unroll 8
  for (int k = 0; k < steps; ++k) {
    const float p = fmaf(a, 0.4322f, fmaf(b, -0.6732f, in.x));
    b = fmaf(a, 0.6732f, fmaf(b, 0.4322f, in.y));
    a = p;
  }
  out[i] = make_float2(a, b);
}

static void AddFilterBank() {
  const int n = 4 << 20;
  float2 *x = suite::Buffer<float2>(n), *out = suite::Buffer<float2>(n, suite::Fill::kZero);
  pairs::Add(
      "filterbank", [=] { filterbank__bad<<<n / 256, 256>>>(x, out, 512); },
      [=] { filterbank__good<<<n / 256, 256>>>(x, out, 512); }, reinterpret_cast<float*>(out),
      size_t(n) * 2);
}

int main(int argc, char** argv) {
  AddMaterials();
  AddDequant();
  AddFilterBank();
  return pairs::Main(argc, argv);
}
