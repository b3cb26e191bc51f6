// SPDX-License-Identifier: Apache-2.0
// Pairs about atomics, fences and grids too small, uneven or one block too large.
#include "pairs.h"

// Each thread reserves 0..3 slots of a work list: an atomic a thread, or one a warp.
KERNEL reserve__bad(const unsigned* __restrict__ x, unsigned* __restrict__ list, unsigned mask,
                    unsigned* __restrict__ counter) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x, c = x[i] & 3;
  const unsigned at = atomicAdd(counter, c);
  for (unsigned j = 0; j < c; ++j) {
    list[(at + j) & mask] = i;
  }
}

KERNEL reserve__good(const unsigned* __restrict__ x, unsigned* __restrict__ list, unsigned mask,
                     unsigned* __restrict__ counter) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x, c = x[i] & 3;
  const unsigned lane = threadIdx.x % 32;
  unsigned sum = c;
  for (int d = 1; d < 32; d *= 2) {
    const unsigned y = __shfl_up_sync(~0u, sum, d);
    sum += lane >= d ? y : 0;
  }
  unsigned base = lane == 31 ? atomicAdd(counter, sum) : 0;
  const unsigned at = __shfl_sync(~0u, base, 31) + sum - c;
  for (unsigned j = 0; j < c; ++j) {
    list[(at + j) & mask] = i;
  }
}

static void AddReserve() {
  const unsigned n = 4 << 20, slots = 8 << 20;
  unsigned* x = suite::Buffer<unsigned>(n, suite::Fill::kBits);
  unsigned* list = suite::Buffer<unsigned>(slots, suite::Fill::kZero);
  unsigned* counter = suite::Buffer<unsigned>(1, suite::Fill::kZero);
  pairs::Add(
      "reserve", [=] { reserve__bad<<<n / 256, 256>>>(x, list, slots - 1, counter); },
      [=] { reserve__good<<<n / 256, 256>>>(x, list, slots - 1, counter); }, counter, 1, 0);
}

// Sum of node features per graph (graph numbers are sorted): an atomic an element, or one a run.
KERNEL graphpool__bad(const float* __restrict__ x, const int* __restrict__ graph,
                      float* __restrict__ out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&out[graph[i / 64] * 64 + i % 64], x[i]);
}

KERNEL graphpool__good(const float* __restrict__ x, const int* __restrict__ graph,
                       float* __restrict__ out) {
  const int d = threadIdx.x % 64, first = (blockIdx.x * 4 + threadIdx.x / 64) * 64;
  float sum = 0;
  int now = graph[first];
#pragma unroll 8
  for (int i = first; i < first + 64; ++i) {
    const int g = graph[i];
    if (g != now) {
      atomicAdd(&out[now * 64 + d], sum);
      sum = 0;
      now = g;
    }
    sum += x[i * 64 + d];
  }
  atomicAdd(&out[now * 64 + d], sum);
}

static void AddGraphPool() {
  const int nodes = 1 << 20, graphs = 64;
  std::vector<int> graph(nodes);
  for (int i = 0; i < nodes; ++i) {
    graph[i] = static_cast<int>(static_cast<long long>(i) * graphs / nodes);
  }
  const int* g = pairs::Upload(graph);
  float* x = suite::Buffer<float>(nodes * 64);
  float* out = suite::Buffer<float>(graphs * 64, suite::Fill::kZero);
  pairs::Add(
      "graphpool", [=] { graphpool__bad<<<nodes / 4, 256>>>(x, g, out); },
      [=] { graphpool__good<<<nodes / 256, 256>>>(x, g, out); }, out, graphs * 64);
}

// Histogram of 9 gradient directions weighted by magnitude: shared float atomics or own columns.
__device__ int Direction(float gx, float gy) {
  return min(8, static_cast<int>((gy / (fabsf(gx) + fabsf(gy) + 1e-6f) + 1.0f) * 4.5f));
}

KERNEL gradients__bad(const float* __restrict__ gx, const float* __restrict__ gy,
                      float* __restrict__ out, int n) {
  __shared__ float bins[9];
  if (threadIdx.x < 9) {
    bins[threadIdx.x] = 0;
  }
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    atomicAdd(&bins[Direction(gx[i], gy[i])], fabsf(gx[i]) + fabsf(gy[i]));
  }
  __syncthreads();
  if (threadIdx.x < 9) {
    atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
  }
}

KERNEL gradients__good(const float* __restrict__ gx, const float* __restrict__ gy,
                       float* __restrict__ out, int n) {
  __shared__ float bins[9][256];
  for (int b = 0; b < 9; ++b) {
    bins[b][threadIdx.x] = 0;
  }
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    bins[Direction(gx[i], gy[i])][threadIdx.x] += fabsf(gx[i]) + fabsf(gy[i]);
  }
  for (int b = 0; b < 9; ++b) {
    const float s = pairs::WarpSum(bins[b][threadIdx.x]);
    if (threadIdx.x % 32 == 0) {
      atomicAdd(&out[b], s);
    }
  }
}

static void AddGradients() {
  const int n = 16 << 20, grid = pairs::kSms * 8;
  float *gx = suite::Buffer<float>(n), *gy = suite::Buffer<float>(n, suite::Fill::kFloat, 2);
  float* out = suite::Buffer<float>(9, suite::Fill::kZero);
  pairs::Add(
      "gradients", [=] { gradients__bad<<<grid, 256>>>(gx, gy, out, n); },
      [=] { gradients__good<<<grid, 256>>>(gx, gy, out, n); }, out, 9);
}

// Results are published by flags: a fence an element, or one a thread.
KERNEL publish__bad(const float* __restrict__ x, float* out, int* flag, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    out[i] = sqrtf(fabsf(x[i]));
    __threadfence();
    flag[i] = 1;
  }
}

KERNEL publish__good(const float* __restrict__ x, float* out, int* flag, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    out[i] = sqrtf(fabsf(x[i]));
  }
  __threadfence();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    flag[i] = 1;
  }
}

static void AddPublish() {
  const int n = 16 << 20, grid = pairs::kSms * 8;
  float *x = suite::Buffer<float>(n), *out = suite::Buffer<float>(n, suite::Fill::kZero);
  int* flag = suite::Buffer<int>(n, suite::Fill::kZero);
  pairs::Add(
      "publish", [=] { publish__bad<<<grid, 256>>>(x, out, flag, n); },
      [=] { publish__good<<<grid, 256>>>(x, out, flag, n); }, out, n);
}

// C = A B of 256 x 256 with a depth of 16384: 16 blocks, or 32 times as many by splitting K.
__device__ void GemmTile(const float* __restrict__ a, const float* __restrict__ b, int k, int n,
                         int first, int last, float (&c)[4][4]) {
  __shared__ __align__(16) float as[16][68], bs[16][64];
  const int t = threadIdx.x, row0 = blockIdx.y * 64, col0 = blockIdx.x * 64;
  for (int kk = first; kk < last; kk += 16) {
    const float* from = a + size_t(row0 + t / 4) * k + kk + t % 4 * 4;
    const float4 av = *reinterpret_cast<const float4*>(from);
    as[t % 4 * 4][t / 4] = av.x;
    as[t % 4 * 4 + 1][t / 4] = av.y;
    as[t % 4 * 4 + 2][t / 4] = av.z;
    as[t % 4 * 4 + 3][t / 4] = av.w;
    *reinterpret_cast<float4*>(&bs[t / 16][t % 16 * 4]) =
        *reinterpret_cast<const float4*>(b + size_t(kk + t / 16) * n + col0 + t % 16 * 4);
    __syncthreads();
#pragma unroll
    for (int p = 0; p < 16; ++p) {
      const float4 x = *reinterpret_cast<const float4*>(&as[p][t / 16 * 4]);
      const float4 y = *reinterpret_cast<const float4*>(&bs[p][t % 16 * 4]);
      const float xs[4] = {x.x, x.y, x.z, x.w}, ys[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
      for (int i = 0; i < 16; ++i) {
        c[i / 4][i % 4] += xs[i / 4] * ys[i % 4];
      }
    }
    __syncthreads();
  }
}

KERNEL splitk__bad(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
                   int k, int n) {
  float acc[4][4] = {};
  GemmTile(a, b, k, n, 0, k, acc);
  for (int i = 0; i < 16; ++i) {
    c[(blockIdx.y * 64 + threadIdx.x / 16 * 4 + i / 4) * n + blockIdx.x * 64 +
      threadIdx.x % 16 * 4 + i % 4] = acc[i / 4][i % 4];
  }
}

KERNEL splitk__good(const float* __restrict__ a, const float* __restrict__ b,
                    float* __restrict__ c, int k, int n) {
  float acc[4][4] = {};
  const int part = k / gridDim.z;
  GemmTile(a, b, k, n, blockIdx.z * part, (blockIdx.z + 1) * part, acc);
  for (int i = 0; i < 16; ++i) {
    atomicAdd(&c[(blockIdx.y * 64 + threadIdx.x / 16 * 4 + i / 4) * n + blockIdx.x * 64 +
                 threadIdx.x % 16 * 4 + i % 4],
              acc[i / 4][i % 4]);
  }
}

static void AddSplitK() {
  const int m = 256, n = 256, k = 16384;
  float *a = suite::Buffer<float>(m * k), *b = suite::Buffer<float>(n * k, suite::Fill::kFloat, 2);
  float* c = suite::Buffer<float>(m * n, suite::Fill::kZero);
  pairs::Add(
      "splitk", [=] { splitk__bad<<<dim3(n / 64, m / 64), 256>>>(a, b, c, k, n); },
      [=] { splitk__good<<<dim3(n / 64, m / 64, 32), 256>>>(a, b, c, k, n); }, c, m * n);
}

// Column sums of 16384 x 2048: 16 blocks walk all rows, or 64 row ranges each.
KERNEL colsum__bad(const float* __restrict__ x, float* __restrict__ out, int rows, int cols) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
#pragma unroll 8
  for (int r = 0; r < rows; ++r) {
    s += x[size_t(r) * cols + c];
  }
  out[c] = s;
}

KERNEL colsum__good(const float* __restrict__ x, float* __restrict__ out, int rows, int cols) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x, part = rows / gridDim.y;
  float s = 0;
#pragma unroll 8
  for (int r = blockIdx.y * part; r < (blockIdx.y + 1) * part; ++r) {
    s += x[size_t(r) * cols + c];
  }
  atomicAdd(&out[c], s);
}

static void AddColSum() {
  const int rows = 16384, cols = 2048;
  float* x = suite::Buffer<float>(rows * cols);
  float* out = suite::Buffer<float>(cols, suite::Fill::kZero);
  pairs::Add(
      "colsum", [=] { colsum__bad<<<cols / 128, 128>>>(x, out, rows, cols); },
      [=] { colsum__good<<<dim3(cols / 128, 64), 128>>>(x, out, rows, cols); }, out, cols);
}

int main(int argc, char** argv) {
  AddReserve();
  AddGraphPool();
  AddGradients();
  AddPublish();
  AddSplitK();
  AddColSum();
  return pairs::Main(argc, argv);
}
