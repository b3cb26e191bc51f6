// SPDX-License-Identifier: Apache-2.0
// Validation pairs about data that is read again, and about where it lies.
#include "pairs.h"

// Mean of the last 8 frames at every pixel: the frames one after the other, or all of a pixel.
KERNEL denoise__bad(const float* __restrict__ in, float* __restrict__ out, int pixels) {
  const int p = blockIdx.x * blockDim.x + threadIdx.x, f = blockIdx.y;
  float s = 0;
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    s += in[size_t((f + 32 - k) % 32) * pixels + p];
  }
  out[size_t(f) * pixels + p] = 0.125f * s;
}

KERNEL denoise__good(const float* __restrict__ in, float* __restrict__ out, int pixels) {
  const int p = blockIdx.x * blockDim.x + threadIdx.x;
  float v[32];
#pragma unroll
  for (int f = 0; f < 32; ++f) {
    v[f] = in[size_t(f) * pixels + p];
  }
#pragma unroll
  for (int f = 0; f < 32; ++f) {
    float s = 0;
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      s += v[(f + 32 - k) % 32];
    }
    out[size_t(f) * pixels + p] = 0.125f * s;
  }
}

static void AddDenoise() {
  const int pixels = 6 << 20;
  const size_t n = size_t(pixels) * 32;
  float *in = suite::Buffer<float>(n), *out = suite::Buffer<float>(n, suite::Fill::kZero);
  // One frame is 24 MiB: the eight of a window do not fit L2.
  pairs::Add(
      "denoise", [=] { denoise__bad<<<dim3(pixels / 256, 32), 256>>>(in, out, pixels); },
      [=] { denoise__good<<<pixels / 256, 256>>>(in, out, pixels); }, out, n);
}

// Samples of int16 to float with a gain, from a recorder's pinned buffer or from a device copy.
__device__ void Pcm(const short2* __restrict__ in, float2* __restrict__ out, int n) {
#pragma unroll 4
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const short2 v = in[i];
    out[i] = make_float2(v.x * (0.8f / 32768.0f), v.y * (0.8f / 32768.0f));
  }
}

KERNEL pcm__bad(const short2* in, float2* out, int n) {
  Pcm(in, out, n);
}

KERNEL pcm__good(const short2* in, float2* out, int n) {
  Pcm(in, out, n);
}

static void AddPcm() {
  const int n = 12 << 20;
  const short2* device = suite::Buffer<short2>(n, suite::Fill::kBits);
  short2* pinned = nullptr;
  CHECK(cudaMallocHost(&pinned, size_t(n) * sizeof(short2)));
  CHECK(cudaMemcpy(pinned, device, size_t(n) * sizeof(short2), cudaMemcpyDefault));
  float2* out = suite::Buffer<float2>(n, suite::Fill::kZero);
  pairs::Add(
      "pcm", [=] { pcm__bad<<<pairs::kSms * 8, 256>>>(pinned, out, n); },
      [=] { pcm__good<<<pairs::kSms * 8, 256>>>(device, out, n); }, reinterpret_cast<float*>(out),
      size_t(n) * 2);
}

// Nearest of 256 centres of 16 dimensions: centres from global memory for every point, or from
// shared memory by float4 for two points at a time.
KERNEL kmeans__bad(const float* __restrict__ x, const float* __restrict__ centre,
                   int* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float p[16];
#pragma unroll
  for (int d = 0; d < 16; ++d) {
    p[d] = x[size_t(d) * n + i];
  }
  int best = 0;
  float least = 1e30f;
#pragma unroll 1
  for (int c = 0; c < 256; ++c) {
    float s = 0;
#pragma unroll
    for (int d = 0; d < 16; ++d) {
      const float t = p[d] - centre[d * 256 + c];
      s += t * t;
    }
    if (s < least) {
      least = s, best = c;
    }
  }
  out[i] = best;
}

KERNEL kmeans__good(const float* __restrict__ x, const float* __restrict__ centre,
                    int* __restrict__ out, int n) {
  __shared__ __align__(16) float shared[256][16];
  for (int k = threadIdx.x; k < 4096; k += blockDim.x) {
    shared[k % 256][k / 256] = centre[k];
  }
  __syncthreads();
  const int i = (blockIdx.x * blockDim.x + threadIdx.x) * 2;
  float2 p[16];
#pragma unroll
  for (int d = 0; d < 16; ++d) {
    p[d] = *reinterpret_cast<const float2*>(x + size_t(d) * n + i);
  }
  int2 best = make_int2(0, 0);
  float2 least = make_float2(1e30f, 1e30f);
#pragma unroll 1
  for (int c = 0; c < 256; ++c) {
    float2 s = make_float2(0, 0);
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const float4 v = *reinterpret_cast<const float4*>(&shared[c][q * 4]);
      const float t[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
      for (int d = 0; d < 4; ++d) {
        const float a = p[q * 4 + d].x - t[d], b = p[q * 4 + d].y - t[d];
        s.x += a * a, s.y += b * b;
      }
    }
    if (s.x < least.x) {
      least.x = s.x, best.x = c;
    }
    if (s.y < least.y) {
      least.y = s.y, best.y = c;
    }
  }
  *reinterpret_cast<int2*>(out + i) = best;
}

static void AddKmeans() {
  const int n = 2 << 20;
  float *x = suite::Buffer<float>(size_t(n) * 16), *centre = suite::Buffer<float>(4096);
  int* out = suite::Buffer<int>(n, suite::Fill::kZero);
  // Equal sums in the same order: the same centre.
  pairs::Add(
      "kmeans", [=] { kmeans__bad<<<n / 256, 256>>>(x, centre, out, n); },
      [=] { kmeans__good<<<n / 512, 256>>>(x, centre, out, n); }, out, n, 1e-3);
}

// Shortest paths of two hops (min-plus product of integers): straight from global memory, or a
// shared tile with 4 x 4 results a thread.
KERNEL minplus__bad(const int* __restrict__ a, const int* __restrict__ b, int* __restrict__ out,
                    int n) {
  const int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 8 + threadIdx.y;
  int best = 1 << 30;
#pragma unroll 4
  for (int k = 0; k < n; ++k) {
    best = min(best, a[r * n + k] + b[k * n + c]);
  }
  out[r * n + c] = best;
}

KERNEL minplus__good(const int* __restrict__ a, const int* __restrict__ b, int* __restrict__ out,
                     int n) {
  __shared__ __align__(16) int as[16][68], bs[16][64];
  const int t = threadIdx.x, row = t / 16 * 4, col = t % 16 * 4;
  const int r0 = blockIdx.y * 64, c0 = blockIdx.x * 64;
  int best[4][4];
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    best[i / 4][i % 4] = 1 << 30;
  }
  for (int kk = 0; kk < n; kk += 16) {
    const int4 va = *reinterpret_cast<const int4*>(a + (r0 + t / 4) * n + kk + t % 4 * 4);
    as[t % 4 * 4][t / 4] = va.x, as[t % 4 * 4 + 1][t / 4] = va.y;
    as[t % 4 * 4 + 2][t / 4] = va.z, as[t % 4 * 4 + 3][t / 4] = va.w;
    *reinterpret_cast<int4*>(&bs[t / 16][col]) =
        *reinterpret_cast<const int4*>(b + (kk + t / 16) * n + c0 + col);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      const int4 x = *reinterpret_cast<int4*>(&as[k][row]);
      const int4 y = *reinterpret_cast<int4*>(&bs[k][col]);
      const int xs[4] = {x.x, x.y, x.z, x.w}, ys[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
      for (int i = 0; i < 16; ++i) {
        best[i / 4][i % 4] = min(best[i / 4][i % 4], xs[i / 4] + ys[i % 4]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    *reinterpret_cast<int4*>(out + (r0 + row + i) * n + c0 + col) =
        make_int4(best[i][0], best[i][1], best[i][2], best[i][3]);
  }
}

static void AddMinPlus() {
  const int n = 1536;
  std::vector<int> a(n * n), b(n * n);
  for (int i = 0; i < n * n; ++i) {
    a[i] = static_cast<int>(i * 2654435761u >> 12);
    b[i] = static_cast<int>(i * 2246822519u >> 12);
  }
  const int *d_a = pairs::Upload(a), *d_b = pairs::Upload(b);
  int* out = suite::Buffer<int>(n * n, suite::Fill::kZero);
  pairs::Add(
      "minplus", [=] { minplus__bad<<<dim3(n / 32, n / 8), dim3(32, 8)>>>(d_a, d_b, out, n); },
      [=] { minplus__good<<<dim3(n / 64, n / 64), 256>>>(d_a, d_b, out, n); }, out, n * n, 0);
}

// Sum of a power series whose partial sum lies in memory, as the pointers may overlap.
KERNEL partial__bad(const float* x, const float* weight, float* out, int terms) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float p = 1.0f;
  out[i] = 0;
#pragma unroll 4
  for (int k = 0; k < terms; ++k) {
    out[i] += weight[k] * p;
    p *= x[i];
  }
}

KERNEL partial__good(const float* __restrict__ x, const float* __restrict__ weight,
                     float* __restrict__ out, int terms) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float v = x[i];
  float p = 1.0f, s = 0;
#pragma unroll 4
  for (int k = 0; k < terms; ++k) {
    s += weight[k] * p;
    p *= v;
  }
  out[i] = s;
}

static void AddPartial() {
  const int n = 8 << 20, terms = 64;
  float *x = suite::Buffer<float>(n), *w = suite::Buffer<float>(terms, suite::Fill::kFloat, 5);
  float* out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "partial", [=] { partial__bad<<<n / 256, 256>>>(x, w, out, terms); },
      [=] { partial__good<<<n / 256, 256>>>(x, w, out, terms); }, out, n);
}

int main(int argc, char** argv) {
  AddDenoise();
  AddPcm();
  AddKmeans();
  AddMinPlus();
  AddPartial();
  return pairs::Main(argc, argv);
}
