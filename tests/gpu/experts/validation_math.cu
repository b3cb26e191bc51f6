// SPDX-License-Identifier: Apache-2.0
// Validation pairs about the kind of arithmetic and about lanes that do not work.
#include <algorithm>
#include <numeric>

#include "pairs.h"

// European calls by the formula of Black and Scholes, literals of double or of float.
KERNEL blackscholes__bad(const float* __restrict__ spot, const float* __restrict__ time,
                         float* __restrict__ call, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    const float s = 100.0f + 30.0f * spot[i], t = 0.3f + 0.2f * time[i];
    const float v = 0.25 * sqrt(1.0 * t);
    const float d1 = (log(s / 100.0) + (0.03 + 0.5 * 0.25 * 0.25) * t) / v, d2 = d1 - v;
    const float n1 = 0.5 * erfc(-d1 * 0.7071067811865475);
    const float n2 = 0.5 * erfc(-d2 * 0.7071067811865475);
    call[i] = s * n1 - 100.0 * exp(-0.03 * t) * n2;
  }
}

KERNEL blackscholes__good(const float* __restrict__ spot, const float* __restrict__ time,
                          float* __restrict__ call, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    const float s = 100.0f + 30.0f * spot[i], t = 0.3f + 0.2f * time[i];
    const float v = 0.25f * sqrtf(t);
    const float d1 = (logf(s / 100.0f) + (0.03f + 0.5f * 0.25f * 0.25f) * t) / v, d2 = d1 - v;
    const float n1 = 0.5f * erfcf(-d1 * 0.70710678f), n2 = 0.5f * erfcf(-d2 * 0.70710678f);
    call[i] = s * n1 - 100.0f * expf(-0.03f * t) * n2;
  }
}

static void AddBlackScholes() {
  const int n = 9 << 20;
  float *spot = suite::Buffer<float>(n), *time = suite::Buffer<float>(n, suite::Fill::kFloat, 8);
  float* call = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "blackscholes", [=] { blackscholes__bad<<<(n + 191) / 192, 192>>>(spot, time, call, n); },
      [=] { blackscholes__good<<<(n + 191) / 192, 192>>>(spot, time, call, n); }, call, n);
}

// Step of the optimizer Adam: the bias corrections as powers of double for every weight, or as two
// floats from the host.
KERNEL adam__bad(const float* __restrict__ w, const float* __restrict__ g,
                 const float* __restrict__ m, const float* __restrict__ v, float* __restrict__ out,
                 int n, double beta1, double beta2, int step) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    const float m1 = beta1 * m[i] + (1 - beta1) * g[i];
    const float v1 = beta2 * fabsf(v[i]) + (1 - beta2) * g[i] * g[i];
    const float mh = m1 / (1 - pow(beta1, step)), vh = v1 / (1 - pow(beta2, step));
    out[i] = w[i] - 1e-3 * mh / (sqrt(vh) + 1e-8);
  }
}

KERNEL adam__good(const float* __restrict__ w, const float* __restrict__ g,
                  const float* __restrict__ m, const float* __restrict__ v, float* __restrict__ out,
                  int n, float im, float iv) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    const float m1 = 0.9f * m[i] + 0.1f * g[i];
    const float v1 = 0.999f * fabsf(v[i]) + 0.001f * g[i] * g[i];
    out[i] = w[i] - 1e-3f * (m1 * im) / (sqrtf(v1 * iv) + 1e-8f);
  }
}

static void AddAdam() {
  const int n = 10 << 20, grid = n / 320, step = 17;
  float* p[4];
  for (int k = 0; k < 4; ++k) {
    p[k] = suite::Buffer<float>(n, suite::Fill::kFloat, 20 + k);
  }
  float *w = p[0], *g = p[1], *m = p[2], *v = p[3];
  float* out = suite::Buffer<float>(n, suite::Fill::kZero);
  const float im = static_cast<float>(1 / (1 - std::pow(0.9, step)));
  const float iv = static_cast<float>(1 / (1 - std::pow(0.999, step)));
  pairs::Add(
      "adam", [=] { adam__bad<<<grid, 320>>>(w, g, m, v, out, n, 0.9, 0.999, step); },
      [=] { adam__good<<<grid, 320>>>(w, g, m, v, out, n, im, iv); }, out, n, 1e-2);
}

// Log-likelihood of 40 heavy-tailed terms: a logarithm each, or one of every product of 8.
KERNEL likelihood__bad(const float* __restrict__ x, float* __restrict__ out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float v = x[i];
  float s = 0;
#pragma unroll 8
  for (int k = 0; k < 40; ++k) {
    const float d = v - 0.05f * k;
    s += __logf(1.0f + d * d);
  }
  out[i] = s;
}

KERNEL likelihood__good(const float* __restrict__ x, float* __restrict__ out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float v = x[i];
  float s = 0;
#pragma unroll
  for (int g = 0; g < 40; g += 8) {
    float p = 1.0f;
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const float d = v - 0.05f * (g + k);
      p *= 1.0f + d * d;
    }
    s += __logf(p);
  }
  out[i] = s;
}

static void AddLikelihood() {
  const int n = 24 << 20;
  float *x = suite::Buffer<float>(n), *out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "likelihood", [=] { likelihood__bad<<<n / 512, 512>>>(x, out); },
      [=] { likelihood__good<<<n / 512, 512>>>(x, out); }, out, n);
}

// Dropout mask from the generator of Park and Miller: a 64-bit remainder by a run-time modulus at
// each of 16 steps, or the fold that 2^31 - 1 permits.
KERNEL minstd__bad(const unsigned* __restrict__ seed, unsigned* __restrict__ out,
                   unsigned long long factor, unsigned long long modulus) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long s = (seed[i] & 0x3fffffff) + 1;
  unsigned mask = 0;
#pragma unroll 1
  for (int k = 0; k < 16; ++k) {
    s = s * factor % modulus;
    mask |= (s > modulus / 5) << k;
  }
  out[i] = mask;
}

KERNEL minstd__good(const unsigned* __restrict__ seed, unsigned* __restrict__ out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned s = (seed[i] & 0x3fffffff) + 1, mask = 0;
#pragma unroll 1
  for (int k = 0; k < 16; ++k) {
    const unsigned long long p = s * 48271ull;
    s = static_cast<unsigned>(p & 0x7fffffff) + static_cast<unsigned>(p >> 31);
    s = s >= 0x7fffffffu ? s - 0x7fffffffu : s;
    mask |= (s > 0x7fffffffu / 5 ? 1u : 0u) << k;
  }
  out[i] = mask;
}

static void AddMinstd() {
  const int n = 10 << 20;
  unsigned *seed = suite::Buffer<unsigned>(n, suite::Fill::kBits),
           *out = suite::Buffer<unsigned>(n, suite::Fill::kZero);
  pairs::Add(
      "minstd", [=] { minstd__bad<<<n / 256, 256>>>(seed, out, 48271ull, 2147483647ull); },
      [=] { minstd__good<<<n / 256, 256>>>(seed, out); }, out, n, 0);
}

// Patches of 5 x 5 of a plane as columns (im2col): a flat index taken apart by run-time sizes, or
// a grid that has the coordinates.
KERNEL patches__bad(const float* __restrict__ in, float* __restrict__ out, long long n, int side,
                    int height, int width) {
  const long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  if (i < n) {
    const long long x = i % width, y = i / width % height, tap = i / width / height % (side * side);
    const long long image = i / width / height / (side * side);
    const long long sx = min(max(x + tap % side - side / 2, 0ll), width - 1ll);
    const long long sy = min(max(y + tap / side - side / 2, 0ll), height - 1ll);
    out[i] = in[(image * height + sy) * width + sx];
  }
}

KERNEL patches__good(const float* __restrict__ in, float* __restrict__ out, int height, int width) {
  const int x = threadIdx.x, y = blockIdx.x;
#pragma unroll
  for (int tap = 0; tap < 25; ++tap) {
    const int sx = min(max(x + tap % 5 - 2, 0), width - 1);
    const int sy = min(max(y + tap / 5 - 2, 0), height - 1);
    out[((blockIdx.y * 25 + tap) * height + y) * width + x] =
        in[(blockIdx.y * height + sy) * width + sx];
  }
}

static void AddPatches() {
  const int images = 96, height = 192, width = 192, n = images * 25 * height * width;
  float *in = suite::Buffer<float>(images * height * width),
        *out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "patches", [=] { patches__bad<<<(n + 255) / 256, 256>>>(in, out, n, 5, height, width); },
      [=] { patches__good<<<dim3(height, images), width>>>(in, out, height, width); }, out, n, 0);
}

// Rays that hit one of four materials: shaded in the order of the pixels, or of the materials.
__device__ float Shade(int material, float v) {
  float s = v;
  switch (material) {
    case 0:
      for (int k = 0; k < 480; ++k) {
        s = fmaf(s, 0.9f, v * 0.01f);
      }
      break;
    case 1:
      for (int k = 0; k < 240; ++k) {
        s = s - 0.1f * s * s + 0.02f * v;
      }
      break;
    case 2:
      for (int k = 0; k < 72; ++k) {
        s = __sinf(s) + 0.3f * v;
      }
      break;
    default:
      for (int k = 0; k < 72; ++k) {
        s = rsqrtf(1.0f + s * s) - 0.5f * v;
      }
  }
  return s;
}

KERNEL shade__bad(const float* __restrict__ x, const int* __restrict__ material,
                  float* __restrict__ out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = Shade(material[i], x[i]);
}

KERNEL shade__good(const float* __restrict__ x, const int* __restrict__ material,
                   const int* __restrict__ order, float* __restrict__ out) {
  const int i = order[blockIdx.x * blockDim.x + threadIdx.x];
  out[i] = Shade(material[i], x[i]);
}

static void AddShade() {
  const int n = 6 << 20;
  std::vector<int> material(n), order(n);
  for (int i = 0; i < n; ++i) {
    material[i] = static_cast<int>(i * 2654435761u >> 30);
  }
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return material[a] < material[b]; });
  const int *d_material = pairs::Upload(material), *d_order = pairs::Upload(order);
  float *x = suite::Buffer<float>(n), *out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "shade", [=] { shade__bad<<<n / 192, 192>>>(x, d_material, out); },
      [=] { shade__good<<<n / 192, 192>>>(x, d_material, d_order, out); }, out, n);
}

// Roots for the 24 channels of a pixel: the warp's first lane takes them one after the other, or
// each lane takes one.
__device__ float Root(float v) {
  float r = 1.0f;
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    r = r - 0.3f * (r * r * r - v);
  }
  return r;
}

KERNEL leader__bad(const float* __restrict__ x, float* __restrict__ out) {
  __shared__ float value[8][32];
  const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
  float* v = value[threadIdx.x / 32];
  v[lane] = 1.0f + 0.5f * x[i];
  __syncwarp();
  if (lane == 0) {
#pragma unroll 4
    for (int k = 0; k < 24; ++k) {
      v[k] = Root(v[k]);
    }
  }
  __syncwarp();
  out[i] = v[lane];
}

KERNEL leader__good(const float* __restrict__ x, float* __restrict__ out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
  const float v = 1.0f + 0.5f * x[i];
  out[i] = lane < 24 ? Root(v) : v;
}

static void AddLeader() {
  const int n = 12 << 20;
  float *x = suite::Buffer<float>(n), *out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "leader", [=] { leader__bad<<<n / 256, 256>>>(x, out); },
      [=] { leader__good<<<n / 256, 256>>>(x, out); }, out, n);
}

// Error of 24 candidate scales of a quantiser: to a 64-bit integer and back each time, or rounded
// by adding a large number.
template <bool kConvert>
__device__ void Scales(const float* __restrict__ x, float* __restrict__ out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float v = x[i];
  float error = 0;
#pragma unroll 8
  for (int k = 0; k < 24; ++k) {
    const float y = v * (20.0f + k);
    const float q = kConvert ? __ll2float_rn(__float2ll_rn(y))
                             : __fadd_rn(__fadd_rn(y, 12582912.0f), -12582912.0f);
    error += (q - y) * (q - y);
  }
  out[i] = error;
}

KERNEL scales__bad(const float* x, float* out) {
  Scales<true>(x, out);
}

KERNEL scales__good(const float* x, float* out) {
  Scales<false>(x, out);
}

static void AddScales() {
  const int n = 24 << 20;
  float *x = suite::Buffer<float>(n), *out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "scales", [=] { scales__bad<<<n / 256, 256>>>(x, out); },
      [=] { scales__good<<<n / 256, 256>>>(x, out); }, out, n);
}

int main(int argc, char** argv) {
  AddBlackScholes();
  AddAdam();
  AddLikelihood();
  AddMinstd();
  AddPatches();
  AddShade();
  AddLeader();
  AddScales();
  return pairs::Main(argc, argv);
}
