// SPDX-License-Identifier: Apache-2.0
// Holdout pairs about the width, the number and the target of accesses.
#include "pairs.h"

using Byte = unsigned char;

// Hamming distances of descriptors of 64 bytes: byte by byte, or 16 bytes at a time.
KERNEL hamming__bad(const Byte* __restrict__ a, const Byte* __restrict__ b, int* __restrict__ out) {
  const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  int d = 0;
#pragma unroll 16
  for (int k = 0; k < 64; ++k) {
    d += __popc(a[i * 64 + k] ^ b[i * 64 + k]);
  }
  out[i] = d;
}

KERNEL hamming__good(const Byte* __restrict__ a, const Byte* __restrict__ b,
                     int* __restrict__ out) {
  const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  int d = 0;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const uint4 x = reinterpret_cast<const uint4*>(a)[i * 4 + k];
    const uint4 y = reinterpret_cast<const uint4*>(b)[i * 4 + k];
    d += __popc(x.x ^ y.x) + __popc(x.y ^ y.y) + __popc(x.z ^ y.z) + __popc(x.w ^ y.w);
  }
  out[i] = d;
}

static void AddHamming() {
  const int n = 2 << 20;
  Byte* a = suite::Buffer<Byte>(size_t(n) * 64, suite::Fill::kBits);
  Byte* b = suite::Buffer<Byte>(size_t(n) * 64, suite::Fill::kBits, 9);
  int* out = suite::Buffer<int>(n, suite::Fill::kZero);
  pairs::Add(
      "hamming", [=] { hamming__bad<<<n / 256, 256>>>(a, b, out); },
      [=] { hamming__good<<<n / 256, 256>>>(a, b, out); }, out, n, 0);
}

// Two fields of a video are woven into a frame, lines in between averaged: a byte a thread, or 16.
KERNEL interlace__bad(const Byte* __restrict__ top, const Byte* __restrict__ bottom,
                      Byte* __restrict__ out, int width) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  const int t = top[size_t(y) * width + x], b = bottom[size_t(y) * width + x];
  out[size_t(2 * y) * width + x] = static_cast<Byte>(t);
  out[size_t(2 * y + 1) * width + x] = static_cast<Byte>((t + b + 1) / 2);
}

KERNEL interlace__good(const Byte* __restrict__ top, const Byte* __restrict__ bottom,
                       Byte* __restrict__ out, int width) {
  const int x = (blockIdx.x * blockDim.x + threadIdx.x) * 16, y = blockIdx.y;
  const uint4 t = *reinterpret_cast<const uint4*>(top + size_t(y) * width + x);
  const uint4 b = *reinterpret_cast<const uint4*>(bottom + size_t(y) * width + x);
  *reinterpret_cast<uint4*>(out + size_t(2 * y) * width + x) = t;
  *reinterpret_cast<uint4*>(out + size_t(2 * y + 1) * width + x) =
      make_uint4(__vavgu4(t.x, b.x), __vavgu4(t.y, b.y), __vavgu4(t.z, b.z), __vavgu4(t.w, b.w));
}

static void AddInterlace() {
  const int width = 16384, lines = 8192;
  const size_t n = size_t(width) * lines;
  Byte* top = suite::Buffer<Byte>(n, suite::Fill::kBits);
  Byte* bottom = suite::Buffer<Byte>(n, suite::Fill::kBits, 5);
  Byte* out = suite::Buffer<Byte>(n * 2, suite::Fill::kZero);
  pairs::Add(
      "interlace",
      [=] { interlace__bad<<<dim3(width / 256, lines), 256>>>(top, bottom, out, width); },
      [=] { interlace__good<<<dim3(width / 4096, lines), 256>>>(top, bottom, out, width); }, out,
      n * 2, 0);
}

// The mish activation in half precision: 2 bytes a lane, or 16.
__device__ __half Mish(__half h) {
  const float x = __half2float(h), e = __expf(x), n = e * (e + 2.0f);
  return __float2half(x * __fdividef(n, n + 2.0f));
}

KERNEL mish__bad(const __half* __restrict__ in, __half* __restrict__ out) {
  const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  out[i] = Mish(in[i]);
}

KERNEL mish__good(const __half* __restrict__ in, __half* __restrict__ out) {
  const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  uint4 raw = reinterpret_cast<const uint4*>(in)[i];
  __half* v = reinterpret_cast<__half*>(&raw);
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    v[k] = Mish(v[k]);
  }
  reinterpret_cast<uint4*>(out)[i] = raw;
}

static void AddMish() {
  const size_t n = size_t(128) << 20;
  __half* in = suite::Buffer<__half>(n, suite::Fill::kHalf);
  __half* out = suite::Buffer<__half>(n, suite::Fill::kZero);
  const int blocks = static_cast<int>(n / 256);
  pairs::Add(
      "mish", [=] { mish__bad<<<blocks, 256>>>(in, out); },
      [=] { mish__good<<<blocks / 8, 256>>>(in, out); }, out, n);
}

// Log-sum-exp of rows of 4 MiB: the largest first and the sum in a second pass, or one pass that
// corrects the sum. Two blocks an SM.
__device__ float2 Join(float2 a, float2 b) {
  const float m = fmaxf(a.x, b.x);
  return make_float2(m, a.y * __expf(a.x - m) + b.y * __expf(b.x - m));
}

__device__ void Finish(float2 v, float* out) {
  __shared__ float2 part[32];
  for (int d = 16; d > 0; d /= 2) {
    v = Join(v, make_float2(__shfl_xor_sync(~0u, v.x, d), __shfl_xor_sync(~0u, v.y, d)));
  }
  if (threadIdx.x % 32 == 0) {
    part[threadIdx.x / 32] = v;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int k = 1; k < 32; ++k) {
      v = Join(v, part[k]);
    }
    *out = v.x + __logf(v.y);
  }
}

KERNEL __launch_bounds__(1024, 2)
    logsum__bad(const float4* __restrict__ x, float* __restrict__ out, int quads) {
  const float4* row = x + size_t(blockIdx.x) * quads;
  float m = -1e30f, s = 0;
#pragma unroll 4
  for (int i = threadIdx.x; i < quads; i += 1024) {
    const float4 v = row[i];
    m = fmaxf(fmaxf(m, fmaxf(v.x, v.y)), fmaxf(v.z, v.w));
  }
#pragma unroll 4
  for (int i = threadIdx.x; i < quads; i += 1024) {
    const float4 v = row[i];
    s += __expf(v.x - m) + __expf(v.y - m) + __expf(v.z - m) + __expf(v.w - m);
  }
  Finish(make_float2(m, s), out + blockIdx.x);
}

KERNEL __launch_bounds__(1024, 2)
    logsum__good(const float4* __restrict__ x, float* __restrict__ out, int quads) {
  const float4* row = x + size_t(blockIdx.x) * quads;
  float m = -1e30f, s = 0;
#pragma unroll 4
  for (int i = threadIdx.x; i < quads; i += 1024) {
    const float4 v = row[i];
    const float next = fmaxf(fmaxf(m, fmaxf(v.x, v.y)), fmaxf(v.z, v.w));
    s = s * __expf(m - next) + __expf(v.x - next) + __expf(v.y - next) + __expf(v.z - next) +
        __expf(v.w - next);
    m = next;
  }
  Finish(make_float2(m, s), out + blockIdx.x);
}

static void AddLogSum() {
  const int rows = 256, quads = 1 << 18;
  float4* x = suite::Buffer<float4>(size_t(rows) * quads);
  float* out = suite::Buffer<float>(rows, suite::Fill::kZero);
  pairs::Add(
      "logsum", [=] { logsum__bad<<<rows, 1024>>>(x, out, quads); },
      [=] { logsum__good<<<rows, 1024>>>(x, out, quads); }, out, rows);
}

// Eight exposures are stacked: frame after frame into a sum in memory, or pixel after pixel.
KERNEL exposures__bad(const float4* __restrict__ frame, float4* __restrict__ sum, int n) {
  for (int f = 0; f < 8; ++f) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
      const float4 v = frame[size_t(f) * n + i], s = f == 0 ? float4{} : sum[i];
      sum[i] = make_float4(s.x + v.x, s.y + v.y, s.z + v.z, s.w + v.w);
    }
  }
}

KERNEL exposures__good(const float4* __restrict__ frame, float4* __restrict__ sum, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float4 s = {};
    for (int f = 0; f < 8; ++f) {
      const float4 v = frame[size_t(f) * n + i];
      s = make_float4(s.x + v.x, s.y + v.y, s.z + v.z, s.w + v.w);
    }
    sum[i] = s;
  }
}

static void AddExposures() {
  const int n = 8 << 20, grid = pairs::kSms * 8;
  float4* frame = suite::Buffer<float4>(size_t(n) * 8);
  float4* sum = suite::Buffer<float4>(n, suite::Fill::kZero);
  pairs::Add(
      "exposures", [=] { exposures__bad<<<grid, 256>>>(frame, sum, n); },
      [=] { exposures__good<<<grid, 256>>>(frame, sum, n); }, reinterpret_cast<float*>(sum),
      size_t(n) * 4);
}

// Random walks leave a trace that lies in pinned host memory, or on the device.
__device__ void Trace(const float* __restrict__ start, float* __restrict__ trace,
                      float* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float x = start[i];
  for (int k = 0; k < 16; ++k) {
    x = 3.7f * fabsf(x) * (1.0f - fabsf(x));
    trace[size_t(k) * n + i] = x;
  }
  out[i] = x;
}

KERNEL walktrace__bad(const float* start, float* trace, float* out, int n) {
  Trace(start, trace, out, n);
}

KERNEL walktrace__good(const float* start, float* trace, float* out, int n) {
  Trace(start, trace, out, n);
}

static void AddWalkTrace() {
  const int n = 1 << 20;
  float *start = suite::Buffer<float>(n), *out = suite::Buffer<float>(n, suite::Fill::kZero);
  float *host = nullptr, *device = suite::Buffer<float>(size_t(n) * 16, suite::Fill::kZero);
  CHECK(cudaMallocHost(&host, size_t(n) * 16 * sizeof(float)));
  pairs::Add(
      "walktrace", [=] { walktrace__bad<<<n / 256, 256>>>(start, host, out, n); },
      [=] { walktrace__good<<<n / 256, 256>>>(start, device, out, n); }, out, n);
}

int main(int argc, char** argv) {
  AddHamming();
  AddInterlace();
  AddMish();
  AddLogSum();
  AddExposures();
  AddWalkTrace();
  return pairs::Main(argc, argv);
}
