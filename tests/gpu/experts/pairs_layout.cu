// SPDX-License-Identifier: Apache-2.0
// Pairs about the layout of global accesses: which lane touches which address.
#include "pairs.h"

struct Particle {  // 64 bytes, as simulation codes hold it
  float x, y, z, charge, fx, fy, fz, id, vx, vy, vz, mass, ax, ay, az, age;
};

KERNEL pack_particles(Particle* p, const float* x, const float* vx, const float* vy, const float* m,
                      int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    p[i].x = x[i];
    p[i].vx = vx[i];
    p[i].vy = vy[i];
    p[i].mass = m[i];
  }
}

KERNEL particles__bad(const Particle* __restrict__ p, float* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = 0.5f * p[i].mass * (p[i].vx * p[i].vx + p[i].vy * p[i].vy) + 9.81f * p[i].x;
  }
}

KERNEL particles__good(const float* __restrict__ x, const float* __restrict__ vx,
                       const float* __restrict__ vy, const float* __restrict__ m,
                       float* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = 0.5f * m[i] * (vx[i] * vx[i] + vy[i] * vy[i]) + 9.81f * x[i];
  }
}

static void AddParticles() {
  const int n = 16 << 20;
  float *x = suite::Buffer<float>(n), *vx = suite::Buffer<float>(n, suite::Fill::kFloat, 2);
  float *vy = suite::Buffer<float>(n, suite::Fill::kFloat, 3);
  float *m = suite::Buffer<float>(n, suite::Fill::kFloat, 4);
  float* out = suite::Buffer<float>(n, suite::Fill::kZero);
  Particle* p = suite::Buffer<Particle>(n);
  pack_particles<<<n / 256, 256>>>(p, x, vx, vy, m, n);
  CHECK(cudaDeviceSynchronize());
  pairs::Add(
      "particles", [=] { particles__bad<<<n / 256, 256>>>(p, out, n); },
      [=] { particles__good<<<n / 256, 256>>>(x, vx, vy, m, out, n); }, out, n);
}

// RMS norm of rows of 512: a thread or a block owns the row.
KERNEL rmsnorm__bad(const float* __restrict__ x, const float* __restrict__ w,
                    float* __restrict__ out, int rows, int cols) {
  const int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) {
    return;
  }
  const float* row = x + size_t(r) * cols;
  float sum = 0;
  for (int c = 0; c < cols; ++c) {
    sum += row[c] * row[c];
  }
  const float s = rsqrtf(sum / cols + 1e-5f);
  for (int c = 0; c < cols; ++c) {
    out[size_t(r) * cols + c] = row[c] * s * w[c];
  }
}

KERNEL rmsnorm__good(const float* __restrict__ x, const float* __restrict__ w,
                     float* __restrict__ out, int rows, int cols) {
  const int r = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (r >= rows) {
    return;
  }
  const float4* row = reinterpret_cast<const float4*>(x + size_t(r) * cols);
  float4 v[4];
  float sum = 0;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    v[k] = row[lane + 32 * k];
    sum += v[k].x * v[k].x + v[k].y * v[k].y + v[k].z * v[k].z + v[k].w * v[k].w;
  }
  const float s = rsqrtf(pairs::WarpSum(sum) / cols + 1e-5f);
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const float4 g = reinterpret_cast<const float4*>(w)[lane + 32 * k];
    reinterpret_cast<float4*>(out + size_t(r) * cols)[lane + 32 * k] =
        make_float4(v[k].x * s * g.x, v[k].y * s * g.y, v[k].z * s * g.z, v[k].w * s * g.w);
  }
}

static void AddRmsNorm() {
  const int rows = 65536, cols = 512;
  float *x = suite::Buffer<float>(size_t(rows) * cols), *w = suite::Buffer<float>(cols);
  float* out = suite::Buffer<float>(size_t(rows) * cols, suite::Fill::kZero);
  pairs::Add(
      "rmsnorm", [=] { rmsnorm__bad<<<rows / 128, 128>>>(x, w, out, rows, cols); },
      [=] { rmsnorm__good<<<rows / 8, 256>>>(x, w, out, rows, cols); }, out, size_t(rows) * cols);
}

// 7-point heat step: lanes run along z, the slowest dimension, or along x.
__device__ void HeatStep(const float* __restrict__ u, float* __restrict__ out, int n, int x, int y,
                         int z) {
  if (x < 1 || y < 1 || z < 1 || x >= n - 1 || y >= n - 1 || z >= n - 1) {
    return;
  }
  const int i = (z * n + y) * n + x;
  const float around = u[i - 1] + u[i + 1] + u[i - n] + u[i + n] + u[i - n * n] + u[i + n * n];
  out[i] = u[i] + 0.1f * (around - 6.0f * u[i]);
}

KERNEL heat3d__bad(const float* __restrict__ u, float* __restrict__ out, int n) {
  HeatStep(u, out, n, blockIdx.z, blockIdx.y * blockDim.y + threadIdx.y,
           blockIdx.x * blockDim.x + threadIdx.x);
}

KERNEL heat3d__good(const float* __restrict__ u, float* __restrict__ out, int n) {
  HeatStep(u, out, n, blockIdx.x * blockDim.x + threadIdx.x,
           blockIdx.y * blockDim.y + threadIdx.y, blockIdx.z);
}

static void AddHeat() {
  const int n = 320;
  float* u = suite::Buffer<float>(n * n * n);
  float* out = suite::Buffer<float>(n * n * n, suite::Fill::kZero);
  const dim3 grid(n / 32, n / 8, n), block(32, 8);
  pairs::Add(
      "heat3d", [=] { heat3d__bad<<<grid, block>>>(u, out, n); },
      [=] { heat3d__good<<<grid, block>>>(u, out, n); }, out, size_t(n) * n * n);
}

// Batch norm (inference) of NCHW: lanes run along the channels, as for NHWC, or along the pixels.
KERNEL batchnorm__bad(const float* __restrict__ x, const float* __restrict__ scale,
                      const float* __restrict__ shift, float* __restrict__ out, int channels,
                      int pixels) {
  const int c = threadIdx.x;
  const size_t i = (size_t(blockIdx.y) * channels + c) * pixels + blockIdx.x;
  out[i] = fmaxf(x[i] * scale[c] + shift[c], 0.0f);
}

KERNEL batchnorm__good(const float* __restrict__ x, const float* __restrict__ scale,
                       const float* __restrict__ shift, float* __restrict__ out, int channels,
                       int pixels) {
  const int c = blockIdx.x;
  const float a = scale[c], b = shift[c];
  const size_t base = (size_t(blockIdx.y) * channels + c) * pixels;
  for (int p = threadIdx.x; p < pixels; p += blockDim.x) {
    out[base + p] = fmaxf(x[base + p] * a + b, 0.0f);
  }
}

static void AddBatchNorm() {
  const int images = 32, channels = 256, pixels = 56 * 56;
  const size_t n = size_t(images) * channels * pixels;
  float *x = suite::Buffer<float>(n), *out = suite::Buffer<float>(n, suite::Fill::kZero);
  float *scale = suite::Buffer<float>(channels), *shift = suite::Buffer<float>(channels);
  pairs::Add(
      "batchnorm",
      [=] {
        batchnorm__bad<<<dim3(pixels, images), channels>>>(x, scale, shift, out, channels, pixels);
      },
      [=] {
        batchnorm__good<<<dim3(channels, images), 256>>>(x, scale, shift, out, channels, pixels);
      },
      out, n);
}

// Planar to interleaved with 16 channels: each lane writes its own pixel, or rows of a tile.
KERNEL interleave__bad(const float* __restrict__ planes, float* __restrict__ out, int pixels) {
  const int p = blockIdx.x * blockDim.x + threadIdx.x;
  for (int c = 0; c < 16; ++c) {
    out[size_t(p) * 16 + c] = planes[size_t(c) * pixels + p] * 0.25f;
  }
}

KERNEL interleave__good(const float* __restrict__ planes, float* __restrict__ out, int pixels) {
  __shared__ float tile[16][257];
  const int t = threadIdx.x, first = blockIdx.x * 256;
#pragma unroll
  for (int c = 0; c < 16; ++c) {
    tile[c][t] = planes[size_t(c) * pixels + first + t] * 0.25f;
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < 16; ++k) {
    const int i = k * 256 + t;
    out[size_t(first) * 16 + i] = tile[i % 16][i / 16];
  }
}

static void AddInterleave() {
  const int pixels = 4 << 20;
  float* planes = suite::Buffer<float>(size_t(pixels) * 16);
  float* out = suite::Buffer<float>(size_t(pixels) * 16, suite::Fill::kZero);
  pairs::Add(
      "interleave", [=] { interleave__bad<<<pixels / 256, 256>>>(planes, out, pixels); },
      [=] { interleave__good<<<pixels / 256, 256>>>(planes, out, pixels); }, out,
      size_t(pixels) * 16);
}

// Products of many 8 x 8 matrices: a thread owns a matrix, or 64 threads do.
KERNEL batched8x8__bad(const float* __restrict__ a, const float* __restrict__ b,
                       float* __restrict__ out, int count) {
  const int m = blockIdx.x * blockDim.x + threadIdx.x;
  if (m >= count) {
    return;
  }
  const float *am = a + size_t(m) * 64, *bm = b + size_t(m) * 64;
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 8; ++j) {
      float s = 0;
      for (int k = 0; k < 8; ++k) {
        s += am[i * 8 + k] * bm[k * 8 + j];
      }
      out[size_t(m) * 64 + i * 8 + j] = s;
    }
  }
}

KERNEL batched8x8__good(const float* __restrict__ a, const float* __restrict__ b,
                        float* __restrict__ out, int count) {
  __shared__ float sa[4][8][9], sb[4][8][8];
  const int t = threadIdx.x, m = t / 64, i = t / 8 % 8, j = t % 8;
  const size_t at = size_t(blockIdx.x) * 256 + t;
  sa[m][i][j] = a[at];
  sb[m][i][j] = b[at];
  __syncthreads();
  float s = 0;
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    s += sa[m][i][k] * sb[m][k][j];
  }
  out[at] = s;
}

static void AddBatched() {
  const int count = 256 << 10;
  const size_t n = size_t(count) * 64;
  float *a = suite::Buffer<float>(n), *b = suite::Buffer<float>(n, suite::Fill::kFloat, 2);
  float* out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "batched8x8", [=] { batched8x8__bad<<<count / 128, 128>>>(a, b, out, count); },
      [=] { batched8x8__good<<<count / 4, 256>>>(a, b, out, count); }, out, n);
}

int main(int argc, char** argv) {
  AddParticles();
  AddRmsNorm();
  AddHeat();
  AddBatchNorm();
  AddInterleave();
  AddBatched();
  return pairs::Main(argc, argv);
}
