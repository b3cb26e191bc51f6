// SPDX-License-Identifier: Apache-2.0
// Validation pairs from image and signal processing.
#include "pairs.h"

using Byte = unsigned char;

// Smoothing over 33 neighbours: every thread loads all of them, or 36 values for four results.
KERNEL smooth__bad(const float* __restrict__ in, const float* __restrict__ weight,
                   float* __restrict__ out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
#pragma unroll
  for (int k = 0; k < 33; ++k) {
    s += weight[k] * in[i + k];
  }
  out[i] = s;
}

KERNEL smooth__good(const float* __restrict__ in, const float* __restrict__ weight,
                    float* __restrict__ out) {
  __shared__ __align__(16) float w[36];
  if (threadIdx.x < 33) {
    w[threadIdx.x] = weight[threadIdx.x];
  }
  __syncthreads();
  const int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
  float v[36], s[4] = {};
#pragma unroll
  for (int k = 0; k < 36; k += 4) {
    *reinterpret_cast<float4*>(v + k) = *reinterpret_cast<const float4*>(in + i + k);
  }
#pragma unroll
  for (int k = 0; k < 33; ++k) {
    const float f = w[k];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      s[j] += f * v[k + j];
    }
  }
  *reinterpret_cast<float4*>(out + i) = make_float4(s[0], s[1], s[2], s[3]);
}

static void AddSmooth() {
  const int n = 28 << 20;
  float *in = suite::Buffer<float>(n + 64), *weight = suite::Buffer<float>(33);
  float* out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "smooth", [=] { smooth__bad<<<n / 128, 128>>>(in, weight, out); },
      [=] { smooth__good<<<n / 512, 128>>>(in, weight, out); }, out, n);
}

// Blocks of 32 x 32 doubles are mirrored several times in shared memory in rows of 32, or of 33.
template <int kPitch>
__device__ void Mirror(const double* __restrict__ in, double* __restrict__ out, int rounds) {
  __shared__ double tile[32 * kPitch];
  const int x = threadIdx.x, y = threadIdx.y;
  const size_t base = size_t(blockIdx.x) * 1024;
  double v[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    v[k] = in[base + (y + 8 * k) * 32 + x];
  }
#pragma unroll 1
  for (int r = 0; r < rounds; ++r) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      tile[(y + 8 * k) * kPitch + x] = v[k];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      v[k] = tile[x * kPitch + y + 8 * k];
    }
    __syncthreads();
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    out[base + (y + 8 * k) * 32 + x] = v[k];
  }
}

KERNEL mirror__bad(const double* in, double* out, int rounds) {
  Mirror<32>(in, out, rounds);
}

KERNEL mirror__good(const double* in, double* out, int rounds) {
  Mirror<33>(in, out, rounds);
}

static void AddMirror() {
  const int tiles = 16384, n = tiles * 1024;
  std::vector<double> host(n);
  for (int i = 0; i < n; ++i) {
    host[i] = i % 1013;
  }
  double *in = pairs::Upload(host), *out = suite::Buffer<double>(n, suite::Fill::kZero);
  pairs::Add(
      "mirror", [=] { mirror__bad<<<tiles, dim3(32, 8)>>>(in, out, 9); },
      [=] { mirror__good<<<tiles, dim3(32, 8)>>>(in, out, 9); }, out, n, 0);
}

// Absolute differences of two byte images with a threshold: a pixel a thread, or 16 by the
// instructions that treat four bytes.
KERNEL motion__bad(const Byte* __restrict__ a, const Byte* __restrict__ b, Byte* __restrict__ out) {
  const size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
  const int d = abs(a[i] - b[i]);
  out[i] = static_cast<Byte>(d > 24 ? d : 0);
}

KERNEL motion__good(const uint4* __restrict__ a, const uint4* __restrict__ b,
                    uint4* __restrict__ out) {
  const size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
  const uint4 va = a[i], vb = b[i];
  const unsigned pa[4] = {va.x, va.y, va.z, va.w}, pb[4] = {vb.x, vb.y, vb.z, vb.w};
  unsigned r[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    r[k] = 0;
#pragma unroll
    for (int s = 0; s < 32; s += 8) {
      const int d = abs(static_cast<int>(pa[k] >> s & 255) - static_cast<int>(pb[k] >> s & 255));
      r[k] |= (d > 24 ? d : 0u) << s;
    }
  }
  out[i] = make_uint4(r[0], r[1], r[2], r[3]);
}

static void AddMotion() {
  const size_t n = size_t(20480) * 16384;
  Byte *a = suite::Buffer<Byte>(n, suite::Fill::kBits, 3),
       *b = suite::Buffer<Byte>(n, suite::Fill::kBits, 4);
  Byte* out = suite::Buffer<Byte>(n, suite::Fill::kZero);
  const unsigned grid = static_cast<unsigned>(n / 512);
  pairs::Add(
      "motion", [=] { motion__bad<<<grid, 512>>>(a, b, out); },
      [=] {
        motion__good<<<grid / 16, 512>>>(reinterpret_cast<const uint4*>(a),
                                         reinterpret_cast<const uint4*>(b),
                                         reinterpret_cast<uint4*>(out));
      },
      out, n, 0);
}

// Chromaticity of pixels on 8 warps an SM: the load of a pixel, its division and the next pixel, or
// the loads of eight pixels first.
template <int kBatch>
__device__ void Chroma(const float4* __restrict__ in, float* __restrict__ out, int per_thread) {
  const size_t first = size_t(blockIdx.x) * per_thread * 128 + threadIdx.x;
#pragma unroll 1
  for (int k = 0; k < per_thread; k += kBatch) {
    float4 v[kBatch];
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      v[j] = in[first + size_t(k + j) * 128];
    }
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      out[first + size_t(k + j) * 128] = __fdividef(
          v[j].x * 0.2f + v[j].y * 0.7f, 4.0f + v[j].x + v[j].y + v[j].z + 0.1f * v[j].w);
    }
  }
}

KERNEL chroma__bad(const float4* in, float* out, int per_thread) {
  Chroma<1>(in, out, per_thread);
}

KERNEL chroma__good(const float4* in, float* out, int per_thread) {
  Chroma<8>(in, out, per_thread);
}

static void AddChroma() {
  const int blocks = pairs::kSms * 2, per_thread = 1024;
  const size_t n = size_t(blocks) * per_thread * 128;
  const float4* in = suite::Buffer<float4>(n);
  float* out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "chroma", [=] { chroma__bad<<<blocks, 128>>>(in, out, per_thread); },
      [=] { chroma__good<<<blocks, 128>>>(in, out, per_thread); }, out, n);
}

int main(int argc, char** argv) {
  AddSmooth();
  AddMirror();
  AddMotion();
  AddChroma();
  return pairs::Main(argc, argv);
}
