// SPDX-License-Identifier: Apache-2.0
// Validation pairs about shared memory, barriers and lanes that wait for each other.
#include "pairs.h"

// Factors of 32 x 32 systems without pivoting, a warp a system and a lane a row, in rows of 32 or
// of 33 words.
template <int kPitch>
__device__ void Factor(const float* __restrict__ in, float* __restrict__ out) {
  __shared__ float all[4][32 * kPitch];
  const int lane = threadIdx.x % 32;
  float* a = all[threadIdx.x / 32];
  const size_t base = size_t(blockIdx.x * 4 + threadIdx.x / 32) * 1024;
#pragma unroll 4
  for (int r = 0; r < 32; ++r) {
    a[r * kPitch + lane] = in[base + r * 32 + lane] + (r == lane ? 40.0f : 0.0f);
  }
  __syncwarp();
  for (int k = 0; k < 31; ++k) {
    if (lane > k) {
      const float f = a[lane * kPitch + k] / a[k * kPitch + k];
      a[lane * kPitch + k] = f;
#pragma unroll 4
      for (int j = k + 1; j < 32; ++j) {
        a[lane * kPitch + j] -= f * a[k * kPitch + j];
      }
    }
    __syncwarp();
  }
#pragma unroll 4
  for (int r = 0; r < 32; ++r) {
    out[base + r * 32 + lane] = a[r * kPitch + lane];
  }
}

KERNEL lu32__bad(const float* in, float* out) {
  Factor<32>(in, out);
}

KERNEL lu32__good(const float* in, float* out) {
  Factor<33>(in, out);
}

static void AddLu() {
  const int systems = 32768, n = systems * 1024;
  float *in = suite::Buffer<float>(n), *out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "lu32", [=] { lu32__bad<<<systems / 4, 128>>>(in, out); },
      [=] { lu32__good<<<systems / 4, 128>>>(in, out); }, out, n);
}

// Density of a cell of 256 particles kept in shared memory as records of 8 words
// (x, vx, y, vy, z, vz, mass, size), or as columns.
KERNEL density__bad(const float* __restrict__ in, float* __restrict__ out) {
  __shared__ float cell[256][8];
  const int t = threadIdx.x;
  const size_t base = size_t(blockIdx.x) * 2048;
  for (int k = 0; k < 8; ++k) {
    cell[t][k] = in[base + k * 256 + t];
  }
  __syncthreads();
  const float x = cell[t][0], y = cell[t][2], z = cell[t][4];
  float s = 0;
#pragma unroll 4
  for (int k = 1; k <= 96; ++k) {
    const int o = (t + k) % 256;
    const float dx = cell[o][0] - x, dy = cell[o][2] - y, dz = cell[o][4] - z;
    s += cell[o][6] * fmaxf(0.0f, 2.0f - (dx * dx + dy * dy + dz * dz));
  }
  out[blockIdx.x * 256 + t] = s;
}

KERNEL density__good(const float* __restrict__ in, float* __restrict__ out) {
  __shared__ float cell[8][256];
  const int t = threadIdx.x;
  const size_t base = size_t(blockIdx.x) * 2048;
  for (int k = 0; k < 8; ++k) {
    cell[k][t] = in[base + k * 256 + t];
  }
  __syncthreads();
  const float x = cell[0][t], y = cell[2][t], z = cell[4][t];
  float s = 0;
#pragma unroll 4
  for (int k = 1; k <= 96; ++k) {
    const int o = (t + k) % 256;
    const float dx = cell[0][o] - x, dy = cell[2][o] - y, dz = cell[4][o] - z;
    s += cell[6][o] * fmaxf(0.0f, 2.0f - (dx * dx + dy * dy + dz * dz));
  }
  out[blockIdx.x * 256 + t] = s;
}

static void AddDensity() {
  const int cells = 8192;
  float *in = suite::Buffer<float>(size_t(cells) * 2048),
        *out = suite::Buffer<float>(cells * 256, suite::Fill::kZero);
  pairs::Add(
      "density", [=] { density__bad<<<cells, 256>>>(in, out); },
      [=] { density__good<<<cells, 256>>>(in, out); }, out, cells * 256);
}

// Manhattan distances of all pairs from tiles of 32 dimensions: one result a thread, or 4 x 4.
KERNEL manhattan__bad(const float* __restrict__ a, const float* __restrict__ b,
                      float* __restrict__ out, int n, int dims) {
  __shared__ float as[16][33], bs[16][33];
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  float s = 0;
  for (int dd = 0; dd < dims; dd += 32) {
    for (int i = threadIdx.x; i < 512; i += 256) {
      as[i / 32][i % 32] = a[(blockIdx.y * 16 + i / 32) * dims + dd + i % 32];
      bs[i / 32][i % 32] = b[(blockIdx.x * 16 + i / 32) * dims + dd + i % 32];
    }
    __syncthreads();
#pragma unroll
    for (int d = 0; d < 32; ++d) {
      s += fabsf(as[y][d] - bs[x][d]);
    }
    __syncthreads();
  }
  out[(blockIdx.y * 16 + y) * n + blockIdx.x * 16 + x] = s;
}

KERNEL manhattan__good(const float* __restrict__ a, const float* __restrict__ b,
                       float* __restrict__ out, int n, int dims) {
  __shared__ float as[64][33], bs[64][33];
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  float s[4][4] = {};
  for (int dd = 0; dd < dims; dd += 32) {
    for (int i = threadIdx.x; i < 2048; i += 256) {
      as[i / 32][i % 32] = a[(blockIdx.y * 64 + i / 32) * dims + dd + i % 32];
      bs[i / 32][i % 32] = b[(blockIdx.x * 64 + i / 32) * dims + dd + i % 32];
    }
    __syncthreads();
#pragma unroll 8
    for (int d = 0; d < 32; ++d) {
      float u[4], v[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        u[k] = as[y + 16 * k][d];
        v[k] = bs[x + 16 * k][d];
      }
#pragma unroll
      for (int k = 0; k < 16; ++k) {
        s[k / 4][k % 4] += fabsf(u[k / 4] - v[k % 4]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int k = 0; k < 16; ++k) {
    out[(blockIdx.y * 64 + y + k / 4 * 16) * n + blockIdx.x * 64 + x + k % 4 * 16] =
        s[k / 4][k % 4];
  }
}

static void AddManhattan() {
  const int n = 4096, dims = 256;
  float *a = suite::Buffer<float>(n * dims),
        *b = suite::Buffer<float>(n * dims, suite::Fill::kFloat, 9);
  float* out = suite::Buffer<float>(n * n, suite::Fill::kZero);
  pairs::Add(
      "manhattan", [=] { manhattan__bad<<<dim3(n / 16, n / 16), 256>>>(a, b, out, n, dims); },
      [=] { manhattan__good<<<dim3(n / 64, n / 64), 256>>>(a, b, out, n, dims); }, out, n * n);
}

// Rows of 1024 keys sorted by a bitonic network: a barrier at each of 55 steps, or only where the
// partner is in another warp.
__device__ unsigned Ordered(unsigned own, unsigned other, bool lower) {
  return lower ? min(own, other) : max(own, other);
}

KERNEL bitonic__bad(const unsigned* __restrict__ in, unsigned* __restrict__ out) {
  __shared__ unsigned key[1024];
  const int t = threadIdx.x;
  key[t] = in[blockIdx.x * 1024 + t];
  __syncthreads();
  for (int size = 2; size <= 1024; size *= 2) {
    for (int d = size / 2; d > 0; d /= 2) {
      const bool lower = ((t & d) == 0) == ((t & size) == 0);
      const unsigned v = Ordered(key[t], key[t ^ d], lower);
      __syncthreads();
      key[t] = v;
      __syncthreads();
    }
  }
  out[blockIdx.x * 1024 + t] = key[t];
}

KERNEL bitonic__good(const unsigned* __restrict__ in, unsigned* __restrict__ out) {
  __shared__ unsigned key[2][1024];
  const int t = threadIdx.x;
  unsigned v = in[blockIdx.x * 1024 + t];
  int turn = 0;
#pragma unroll
  for (int size = 2; size <= 1024; size *= 2) {
#pragma unroll
    for (int d = size / 2; d > 0; d /= 2) {
      const bool lower = ((t & d) == 0) == ((t & size) == 0);
      unsigned other;
      if (d >= 32) {
        key[turn][t] = v;
        __syncthreads();
        other = key[turn][t ^ d];
        turn ^= 1;
      } else {
        other = __shfl_xor_sync(~0u, v, d);
      }
      v = Ordered(v, other, lower);
    }
  }
  out[blockIdx.x * 1024 + t] = v;
}

static void AddBitonic() {
  const int rows = 8192;
  unsigned *in = suite::Buffer<unsigned>(rows * 1024, suite::Fill::kBits),
           *out = suite::Buffer<unsigned>(rows * 1024, suite::Fill::kZero);
  pairs::Add(
      "bitonic", [=] { bitonic__bad<<<rows, 1024>>>(in, out); },
      [=] { bitonic__good<<<rows, 1024>>>(in, out); }, out, rows * 1024, 0);
}

// Power iteration that normalises a vector of 256 at each of 200 steps: thread 0 adds the squares
// while the block waits, or every warp adds all partial sums itself.
template <bool kSerial>
__device__ void Normalise(const float* __restrict__ in, float* __restrict__ out) {
  __shared__ float square[2][256], scale;
  const int t = threadIdx.x, i = blockIdx.x * 256 + t;
  float v = in[i] + 1.5f;
  for (int step = 0; step < 200; ++step) {
    v = v * (1.0f + 0.001f * (t % 7));
    if (kSerial) {
      square[0][t] = v * v;
      __syncthreads();
      if (t == 0) {
        float s = 0;
#pragma unroll 8
        for (int k = 0; k < 256; ++k) {
          s += square[0][k];
        }
        scale = rsqrtf(s * (1.0f / 256));
      }
      __syncthreads();
      v *= scale;
    } else {
      const float s = pairs::WarpSum(v * v);
      float* part = square[step % 2];
      if (t % 32 == 0) {
        part[t / 32] = s;
      }
      __syncthreads();
      float all = 0;
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        all += part[k];
      }
      v *= rsqrtf(all * (1.0f / 256));
    }
  }
  out[i] = v;
}

KERNEL powerit__bad(const float* in, float* out) {
  Normalise<true>(in, out);
}

KERNEL powerit__good(const float* in, float* out) {
  Normalise<false>(in, out);
}

static void AddPowerIteration() {
  const int blocks = pairs::kSms * 8, n = blocks * 256;
  float *in = suite::Buffer<float>(n), *out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "powerit", [=] { powerit__bad<<<blocks, 256>>>(in, out); },
      [=] { powerit__good<<<blocks, 256>>>(in, out); }, out, n, 5e-3);
}

int main(int argc, char** argv) {
  AddLu();
  AddDensity();
  AddManhattan();
  AddBitonic();
  AddPowerIteration();
  return pairs::Main(argc, argv);
}
