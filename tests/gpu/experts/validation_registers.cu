// SPDX-License-Identifier: Apache-2.0
// Validation pairs about values that leave the registers.
#include "pairs.h"

// Normal equations of a fit of 8 unknowns at every pixel: 44 sums under a cap of 32 registers.
__device__ void Normal(const float* __restrict__ in, float* __restrict__ out, int n, int frames) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s[36] = {}, r[8] = {};
#pragma unroll 1
  for (int f = 0; f < frames; ++f) {
    const float v = in[size_t(f) * n + i];
    float p[8];
    p[0] = 1.0f;
#pragma unroll
    for (int k = 1; k < 8; ++k) {
      p[k] = p[k - 1] * v + 0.125f * k;
    }
    int at = 0;
#pragma unroll
    for (int a = 0; a < 8; ++a) {
      r[a] += p[a] * v;
#pragma unroll
      for (int b = a; b < 8; ++b) {
        s[at] += p[a] * p[b];
        ++at;
      }
    }
  }
  float total = 0;
#pragma unroll
  for (int k = 0; k < 36; ++k) {
    total += s[k] / (k + 1);
  }
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    total -= r[k] * s[k];
  }
  out[i] = total;
}

KERNEL __launch_bounds__(256, 8) normaleq__bad(const float* in, float* out, int n, int frames) {
  Normal(in, out, n, frames);
}

KERNEL __launch_bounds__(256) normaleq__good(const float* in, float* out, int n, int frames) {
  Normal(in, out, n, frames);
}

static void AddNormal() {
  const int n = 2 << 20, frames = 24;
  float *in = suite::Buffer<float>(size_t(n) * frames),
        *out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "normaleq", [=] { normaleq__bad<<<n / 256, 256>>>(in, out, n, frames); },
      [=] { normaleq__good<<<n / 256, 256>>>(in, out, n, frames); }, out, n);
}

// Determinants of 6 x 6 matrices with a row exchange: the pivot row by a run-time index, or by a
// choice between registers.
template <bool kIndexed>
__device__ float Determinant(float (&a)[6][6]) {
  float det = 1.0f;
#pragma unroll
  for (int k = 0; k < 6; ++k) {
    int p = k;
    float top = fabsf(a[k][k]);
#pragma unroll
    for (int r = k + 1; r < 6; ++r) {
      if (fabsf(a[r][k]) > top) {
        top = fabsf(a[r][k]), p = r;
      }
    }
    det = p != k ? -det : det;
    if (kIndexed) {
#pragma unroll
      for (int c = 0; c < 6; ++c) {
        const float t = a[k][c];
        a[k][c] = a[p][c];
        a[p][c] = t;
      }
    } else {
#pragma unroll
      for (int r = k + 1; r < 6; ++r) {
#pragma unroll
        for (int c = k; c < 6; ++c) {
          const float x = a[k][c], y = a[r][c];
          a[k][c] = p == r ? y : x;
          a[r][c] = p == r ? x : y;
        }
      }
    }
    det *= a[k][k];
    const float inverse = __frcp_rn(a[k][k]);
#pragma unroll
    for (int r = k + 1; r < 6; ++r) {
      const float f = a[r][k] * inverse;
#pragma unroll
      for (int c = k; c < 6; ++c) {
        a[r][c] -= f * a[k][c];
      }
    }
  }
  return det;
}

template <bool kIndexed>
__device__ void Determinants(const float* __restrict__ in, float* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float a[6][6], sum = 0;
#pragma unroll 1
  for (int shift = 0; shift < 4; ++shift) {
#pragma unroll
    for (int k = 0; k < 36; ++k) {
      a[k / 6][k % 6] = in[size_t(k) * n + i] + (k % 7 == 0 ? 0.25f * shift : 0.0f);
    }
    sum += Determinant<kIndexed>(a);
  }
  out[i] = sum;
}

KERNEL __launch_bounds__(128) pivot__bad(const float* in, float* out, int n) {
  Determinants<true>(in, out, n);
}

KERNEL __launch_bounds__(128) pivot__good(const float* in, float* out, int n) {
  Determinants<false>(in, out, n);
}

static void AddPivot() {
  const int n = 2 << 20;
  float *in = suite::Buffer<float>(size_t(n) * 36),
        *out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "pivot", [=] { pivot__bad<<<n / 128, 128>>>(in, out, n); },
      [=] { pivot__good<<<n / 128, 128>>>(in, out, n); }, out, n, 1e-3);
}

// Spectrum of nibbles of 64 words: 16 counters in a local array, or 8 bits each in two 64-bit
// words (8 words at a time cannot overflow them).
KERNEL nibbles__bad(const unsigned* __restrict__ in, unsigned* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  int count[16] = {};
  for (int w = 0; w < 64; ++w) {
    const unsigned v = in[size_t(w) * n + i];
#pragma unroll
    for (int k = 0; k < 32; k += 4) {
      ++count[v >> k & 15];
    }
  }
  unsigned h = 0;
#pragma unroll
  for (int k = 0; k < 16; ++k) {
    h = h * 31 + count[k];
  }
  out[i] = h;
}

KERNEL nibbles__good(const unsigned* __restrict__ in, unsigned* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  int count[16] = {};
  for (int w = 0; w < 64; w += 8) {
    // Four words of four counters of 8 bits; 64 nibbles fit each.
    unsigned packed[4] = {};
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const unsigned v = in[size_t(w + j) * n + i];
#pragma unroll
      for (int k = 0; k < 32; k += 4) {
        const unsigned one = 1u << (v >> k & 3) * 8, which = v >> (k + 2) & 3;
#pragma unroll
        for (unsigned q = 0; q < 4; ++q) {
          packed[q] += which == q ? one : 0;
        }
      }
    }
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      count[k] += packed[k / 4] >> (k % 4 * 8) & 255;
    }
  }
  unsigned h = 0;
#pragma unroll
  for (int k = 0; k < 16; ++k) {
    h = h * 31 + count[k];
  }
  out[i] = h;
}

static void AddNibbles() {
  const int n = 1 << 20;
  unsigned *in = suite::Buffer<unsigned>(size_t(n) * 64, suite::Fill::kBits),
           *out = suite::Buffer<unsigned>(n, suite::Fill::kZero);
  pairs::Add(
      "nibbles", [=] { nibbles__bad<<<n / 256, 256>>>(in, out, n); },
      [=] { nibbles__good<<<n / 256, 256>>>(in, out, n); }, out, n, 0);
}

// Winograd F(4 x 4, 3 x 3) transform of overlapping 6 x 6 patches, its 36 values in 32 registers.
__device__ void Row(const float* d, float* t) {
  t[0] = 4 * d[0] - 5 * d[2] + d[4];
  t[1] = -4 * (d[1] + d[2]) + d[3] + d[4];
  t[2] = 4 * (d[1] - d[2]) - d[3] + d[4];
  t[3] = 2 * (d[3] - d[1]) - d[2] + d[4];
  t[4] = 2 * (d[1] - d[3]) - d[2] + d[4];
  t[5] = 4 * d[1] - 5 * d[3] + d[5];
}

__device__ void Winograd(const float* __restrict__ in, float* __restrict__ out, int patches,
                         int rounds) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v[36];
#pragma unroll
  for (int k = 0; k < 36; ++k) {
    v[k] = in[i + k / 6 * 4096 + k % 6];
  }
#pragma unroll 1
  for (int r = 0; r < rounds; ++r) {  // channels that differ by a gain
    float t[36], u[36];
#pragma unroll
    for (int k = 0; k < 6; ++k) {
      Row(v + k * 6, t + k * 6);
    }
#pragma unroll
    for (int c = 0; c < 6; ++c) {
      const float col[6] = {t[c], t[6 + c], t[12 + c], t[18 + c], t[24 + c], t[30 + c]};
      Row(col, u + c * 6);
    }
#pragma unroll
    for (int k = 0; k < 36; ++k) {
      v[k] = fminf(fmaxf(v[k] + 0.01f * u[k], -2.0f), 2.0f);
    }
  }
#pragma unroll
  for (int k = 0; k < 36; ++k) {
    out[size_t(k) * patches + i] = v[k];
  }
}

KERNEL __launch_bounds__(1024, 2)
    winograd__bad(const float* in, float* out, int patches, int rounds) {
  Winograd(in, out, patches, rounds);
}

KERNEL __launch_bounds__(1024, 1)
    winograd__good(const float* in, float* out, int patches, int rounds) {
  Winograd(in, out, patches, rounds);
}

static void AddWinograd() {
  const int patches = 1 << 20;
  float* in = suite::Buffer<float>(patches + 8 * 4096);
  float* out = suite::Buffer<float>(size_t(patches) * 36, suite::Fill::kZero);
  pairs::Add(
      "winograd", [=] { winograd__bad<<<patches / 1024, 1024>>>(in, out, patches, 12); },
      [=] { winograd__good<<<patches / 1024, 1024>>>(in, out, patches, 12); }, out,
      size_t(patches) * 36, 2e-2);
}

int main(int argc, char** argv) {
  AddNormal();
  AddPivot();
  AddNibbles();
  AddWinograd();
  return pairs::Main(argc, argv);
}
