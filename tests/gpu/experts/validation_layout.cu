// SPDX-License-Identifier: Apache-2.0
// Validation pairs about the order of data in memory against the order of the lanes.
#include "pairs.h"

// Sparse matrix of 64 entries a row in ELL form: entries of a row together, or of all rows.
__global__ void ellpack_init(int* by_row, float* value_by_row, int* by_slot, float* value_by_slot,
                             int rows) {
  const int r = blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = 0; k < 64; ++k) {
    const int col = (r + 37 * k) & (rows - 1);
    const float v = 0.01f * ((r * 7 + k * 13) % 101 - 50);
    by_row[size_t(r) * 64 + k] = by_slot[size_t(k) * rows + r] = col;
    value_by_row[size_t(r) * 64 + k] = value_by_slot[size_t(k) * rows + r] = v;
  }
}

KERNEL ellpack__bad(const int* __restrict__ col, const float* __restrict__ value,
                    const float* __restrict__ x, float* __restrict__ y) {
  const size_t r = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
#pragma unroll 4
  for (int k = 0; k < 64; ++k) {
    s += value[r * 64 + k] * x[col[r * 64 + k]];
  }
  y[r] = s;
}

KERNEL ellpack__good(const int* __restrict__ col, const float* __restrict__ value,
                     const float* __restrict__ x, float* __restrict__ y, int rows) {
  const size_t r = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
#pragma unroll 4
  for (int k = 0; k < 64; ++k) {
    s += value[size_t(k) * rows + r] * x[col[size_t(k) * rows + r]];
  }
  y[r] = s;
}

static void AddEllpack() {
  const int rows = 1 << 20;
  const size_t n = size_t(rows) * 64;
  int *c1 = suite::Buffer<int>(n, suite::Fill::kZero), *c2 = suite::Buffer<int>(n);
  float *v1 = suite::Buffer<float>(n), *v2 = suite::Buffer<float>(n);
  float *x = suite::Buffer<float>(rows), *y = suite::Buffer<float>(rows, suite::Fill::kZero);
  ellpack_init<<<rows / 128, 128>>>(c1, v1, c2, v2, rows);
  CHECK(cudaDeviceSynchronize());
  pairs::Add(
      "ellpack", [=] { ellpack__bad<<<rows / 128, 128>>>(c1, v1, x, y); },
      [=] { ellpack__good<<<rows / 128, 128>>>(c2, v2, x, y, rows); }, y, rows);
}

// Tokens are gathered in the order of their experts: a thread or a warp moves a token.
constexpr int kHidden = 768;

KERNEL dispatch__bad(const float* __restrict__ in, const int* __restrict__ from,
                     const float* __restrict__ gate, float* __restrict__ out) {
  const size_t t = blockIdx.x * blockDim.x + threadIdx.x;
  const float g = gate[t];
  const float* src = in + size_t(from[t]) * kHidden;
#pragma unroll 4
  for (int c = 0; c < kHidden; ++c) {
    out[t * kHidden + c] = g * src[c];
  }
}

KERNEL dispatch__good(const float* __restrict__ in, const int* __restrict__ from,
                      const float* __restrict__ gate, float* __restrict__ out) {
  const size_t t = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const float g = gate[t];
  const float* src = in + size_t(from[t]) * kHidden;
#pragma unroll 4
  for (int c = threadIdx.x % 32; c < kHidden; c += 32) {
    out[t * kHidden + c] = g * src[c];
  }
}

static void AddDispatch() {
  const int tokens = 98304;
  std::vector<int> from(tokens);
  for (int i = 0; i < tokens; ++i) {
    from[i] = static_cast<int>(i * 48271ll % tokens);
  }
  const int* d_from = pairs::Upload(from);
  float* in = suite::Buffer<float>(size_t(tokens) * kHidden);
  float *gate = suite::Buffer<float>(tokens),
        *out = suite::Buffer<float>(size_t(tokens) * kHidden, suite::Fill::kZero);
  pairs::Add(
      "dispatch", [=] { dispatch__bad<<<tokens / 128, 128>>>(in, d_from, gate, out); },
      [=] { dispatch__good<<<tokens / 8, 256>>>(in, d_from, gate, out); }, out,
      size_t(tokens) * kHidden);
}

// Keys of [token][dim] appended to a cache of [dim][token] for each head, in fp16.
KERNEL keycache__bad(const __half* __restrict__ key, __half* __restrict__ cache, int tokens) {
  const int dim = threadIdx.x;
  const size_t head = blockIdx.y * size_t(tokens) * 128;
#pragma unroll 4
  for (int k = 0; k < 64; ++k) {
    const size_t t = blockIdx.x * 64 + k;
    cache[head + dim * size_t(tokens) + t] = __hmul(key[head + t * 128 + dim], __half(0.5f));
  }
}

KERNEL keycache__good(const __half* __restrict__ key, __half* __restrict__ cache, int tokens) {
  __shared__ __half tile[64][130];
  const size_t head = blockIdx.y * size_t(tokens) * 128;
  const __half2* from = reinterpret_cast<const __half2*>(key + head + blockIdx.x * 64 * 128);
#pragma unroll 8
  for (int i = threadIdx.x; i < 64 * 64; i += 128) {
    *reinterpret_cast<__half2*>(&tile[i / 64][i % 64 * 2]) = from[i];
  }
  __syncthreads();
  const int pair = threadIdx.x % 32 * 2;
#pragma unroll 8
  for (int d = threadIdx.x / 32; d < 128; d += 4) {
    const __half2 two = __halves2half2(tile[pair][d], tile[pair + 1][d]);
    *reinterpret_cast<__half2*>(cache + head + d * size_t(tokens) + blockIdx.x * 64 + pair) =
        __hmul2(two, __float2half2_rn(0.5f));
  }
}

static void AddKeyCache() {
  const int tokens = 32768, heads = 32;
  const size_t n = size_t(tokens) * heads * 128;
  __half *key = suite::Buffer<__half>(n, suite::Fill::kHalf),
         *cache = suite::Buffer<__half>(n, suite::Fill::kZero);
  const dim3 grid(tokens / 64, heads);
  pairs::Add(
      "keycache", [=] { keycache__bad<<<grid, 128>>>(key, cache, tokens); },
      [=] { keycache__good<<<grid, 128>>>(key, cache, tokens); }, cache, n);
}

// Product of a column-major matrix of doubles and a vector: a warp a row, or a thread a row.
KERNEL blasgemv__bad(const double* __restrict__ a, const double* __restrict__ x,
                     double* __restrict__ y, int n) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  double s = 0;
#pragma unroll 4
  for (int c = lane; c < n; c += 32) {
    s += a[size_t(c) * n + row] * x[c];
  }
  for (int d = 16; d > 0; d /= 2) {
    s += __shfl_xor_sync(~0u, s, d);
  }
  if (lane == 0) {
    y[row] = s;
  }
}

KERNEL blasgemv__good(const double* __restrict__ a, const double* __restrict__ x,
                      double* __restrict__ y, int n) {
  __shared__ double part[16][33];
  const int row = blockIdx.x * 32 + threadIdx.x, w = threadIdx.y;
  double s = 0;
#pragma unroll 8
  for (int c = w; c < n; c += 16) {
    s += a[size_t(c) * n + row] * x[c];
  }
  part[w][threadIdx.x] = s;
  __syncthreads();
  if (w == 0) {
    for (int k = 1; k < 16; ++k) {
      s += part[k][threadIdx.x];
    }
    y[row] = s;
  }
}

static void AddBlasGemv() {
  const int n = 10240;
  std::vector<double> x(n);
  for (int i = 0; i < n; ++i) {
    x[i] = 1.0 / (1 + i % 17);
  }
  std::vector<double> column(size_t(n) * 16);
  for (size_t i = 0; i < column.size(); ++i) {
    column[i] = static_cast<double>(i * 2654435761u % 1000) * 0.001 - 0.3;
  }
  double *a = suite::Buffer<double>(size_t(n) * n, suite::Fill::kZero), *d_x = pairs::Upload(x);
  for (int c = 0; c < n; c += 16) {
    CHECK(cudaMemcpy(a + size_t(c) * n, column.data(), column.size() * 8, cudaMemcpyDefault));
  }
  double* y = suite::Buffer<double>(n, suite::Fill::kZero);
  pairs::Add(
      "blasgemv", [=] { blasgemv__bad<<<n / 8, 256>>>(a, d_x, y, n); },
      [=] { blasgemv__good<<<n / 32, dim3(32, 16)>>>(a, d_x, y, n); }, y, n, 1e-6);
}

// Gradient of a layer norm's gain: column sums of dy * xhat, lanes along rows or along columns.
KERNEL dgamma__bad(const float* __restrict__ dy, const float* __restrict__ xhat,
                   float* __restrict__ out, int cols) {
  const int lane = threadIdx.x % 32, c = blockIdx.x * 8 + threadIdx.x / 32;
  float s = 0;
#pragma unroll 4
  for (int k = 0; k < 512; k += 32) {
    const size_t at = (size_t(blockIdx.y) * 512 + k + lane) * cols + c;
    s += dy[at] * xhat[at];
  }
  s = pairs::WarpSum(s);
  if (lane == 0) {
    atomicAdd(out + c, s);
  }
}

KERNEL dgamma__good(const float* __restrict__ dy, const float* __restrict__ xhat,
                    float* __restrict__ out, int cols) {
  const int c = blockIdx.x * 128 + threadIdx.x;
  float s = 0;
#pragma unroll 8
  for (int k = 0; k < 64; ++k) {
    const size_t at = (size_t(blockIdx.y) * 64 + k) * cols + c;
    s += dy[at] * xhat[at];
  }
  atomicAdd(out + c, s);
}

static void AddDgamma() {
  const int rows = 49152, cols = 1536;
  float* dy = suite::Buffer<float>(size_t(rows) * cols);
  float *xhat = suite::Buffer<float>(size_t(rows) * cols, suite::Fill::kFloat, 7),
        *out = suite::Buffer<float>(cols, suite::Fill::kZero);
  pairs::Add(
      "dgamma", [=] { dgamma__bad<<<dim3(cols / 8, rows / 512), 256>>>(dy, xhat, out, cols); },
      [=] { dgamma__good<<<dim3(cols / 128, rows / 64), 128>>>(dy, xhat, out, cols); }, out, cols);
}

int main(int argc, char** argv) {
  AddEllpack();
  AddDispatch();
  AddKeyCache();
  AddBlasGemv();
  AddDgamma();
  return pairs::Main(argc, argv);
}
