// SPDX-License-Identifier: Apache-2.0
// Holdout pairs about where the lanes of a warp lie in memory.
#include "pairs.h"

// Frobenius norm of a 16 x 16 matrix a thread: stored matrix by matrix, or element by element.
KERNEL frobenius__bad(const float* __restrict__ m, float* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
#pragma unroll 8
  for (int k = 0; k < 256; ++k) {
    const float v = m[size_t(i) * 256 + (k % 16) * 16 + k / 16];
    s = fmaf(v, v, s);
  }
  out[i] = sqrtf(s);
}

KERNEL frobenius__good(const float* __restrict__ m, float* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
#pragma unroll 8
  for (int k = 0; k < 256; ++k) {
    const float v = m[size_t((k % 16) * 16 + k / 16) * n + i];
    s = fmaf(v, v, s);
  }
  out[i] = sqrtf(s);
}

static void AddFrobenius() {
  const int n = 1 << 17;
  std::vector<float> whole(size_t(n) * 256), split(size_t(n) * 256);
  for (int i = 0; i < n; ++i) {
    for (int k = 0; k < 256; ++k) {
      const float v = static_cast<float>((i * 31 + k * 7) % 101) * 0.02f - 1.0f;
      whole[size_t(i) * 256 + k] = v;
      split[size_t(k) * n + i] = v;
    }
  }
  const float *d_whole = pairs::Upload(whole), *d_split = pairs::Upload(split);
  float* out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "frobenius", [=] { frobenius__bad<<<n / 128, 128>>>(d_whole, out, n); },
      [=] { frobenius__good<<<n / 128, 128>>>(d_split, out, n); }, out, n);
}

// (a, b, c, d) -> (a, d, c, b) of a 4-D tensor of 32-bit words, b and d of 256: direct, or by
// tiles of 32 x 32.
KERNEL permute4d__bad(const float* __restrict__ in, float* __restrict__ out, int c_size) {
  const int c = blockIdx.z % c_size;
  const size_t base = size_t(blockIdx.z / c_size) * 65536 * c_size;
  const int d = blockIdx.x * 32 + threadIdx.x;
  for (int r = threadIdx.y; r < 32; r += 8) {
    const int b = blockIdx.y * 32 + r;
    out[base + (size_t(d) * c_size + c) * 256 + b] = in[base + (size_t(b) * c_size + c) * 256 + d];
  }
}

KERNEL permute4d__good(const float* __restrict__ in, float* __restrict__ out, int c_size) {
  __shared__ float tile[32][33];
  const int c = blockIdx.z % c_size;
  const size_t base = size_t(blockIdx.z / c_size) * 65536 * c_size;
  for (int r = threadIdx.y; r < 32; r += 8) {
    tile[r][threadIdx.x] =
        in[base + (size_t(blockIdx.y * 32 + r) * c_size + c) * 256 + blockIdx.x * 32 + threadIdx.x];
  }
  __syncthreads();
  for (int r = threadIdx.y; r < 32; r += 8) {
    out[base + (size_t(blockIdx.x * 32 + r) * c_size + c) * 256 + blockIdx.y * 32 + threadIdx.x] =
        tile[threadIdx.x][r];
  }
}

static void AddPermute() {
  const int a = 32, c = 24;
  const size_t n = size_t(a) * c * 65536;
  float *in = suite::Buffer<float>(n), *out = suite::Buffer<float>(n, suite::Fill::kZero);
  const dim3 grid(8, 8, a * c), block(32, 8);
  pairs::Add(
      "permute4d", [=] { permute4d__bad<<<grid, block>>>(in, out, c); },
      [=] { permute4d__good<<<grid, block>>>(in, out, c); }, out, n, 0);
}

// One level of a lifted wavelet along the rows of an image: lanes take rows, or pairs of a row.
__device__ void Lift(const float* __restrict__ in, float* __restrict__ out, int width, int row,
                     int pair) {
  const float* p = in + size_t(row) * width;
  const int last = width / 2 - 1;
  const int right = pair < last ? pair + 1 : last, left = pair > 0 ? pair - 1 : 0;
  const float even = p[2 * pair], odd = p[2 * pair + 1];
  const float detail = odd - 0.5f * (even + p[2 * right]);
  const float before = p[2 * left + 1] - 0.5f * (p[2 * left] + even);
  out[size_t(row) * width + pair] = even + 0.25f * (detail + before);
  out[size_t(row) * width + width / 2 + pair] = detail;
}

KERNEL lifting__bad(const float* in, float* out, int width) {
  Lift(in, out, width, blockIdx.x * 256 + threadIdx.x, blockIdx.y);
}

KERNEL lifting__good(const float* in, float* out, int width) {
  Lift(in, out, width, blockIdx.y, blockIdx.x * 256 + threadIdx.x);
}

static void AddLifting() {
  const int width = 8192, height = 4096;
  const size_t n = size_t(width) * height;
  float *in = suite::Buffer<float>(n), *out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "lifting", [=] { lifting__bad<<<dim3(height / 256, width / 2), 256>>>(in, out, width); },
      [=] { lifting__good<<<dim3(width / 512, height), 256>>>(in, out, width); }, out, n);
}

// Geohash texts of 16 letters a point: 16 stores of a letter, or one of 16 bytes.
__device__ unsigned Letter(unsigned five) {
  return five < 10 ? '0' + five : 'a' + five - 10;
}

template <class Store>
__device__ void Geohash(const float2* __restrict__ at, int i, Store store) {
  const float2 p = at[i];
  unsigned x = static_cast<unsigned>((p.x + 1.0f) * 1e9f);
  unsigned y = static_cast<unsigned>((p.y + 1.0f) * 1e9f);
#pragma unroll
  for (int k = 0; k < 16; ++k) {
    const unsigned five = (x >> 28 & 7) << 2 | (y >> 30 & 3);
    x = x << 2 | x >> 30;
    y = y << 2 | y >> 30;
    store(k, Letter(five));
  }
}

KERNEL geohash__bad(const float2* __restrict__ at, unsigned char* __restrict__ out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned char* to = out + size_t(i) * 16;
  Geohash(at, i, [&](int k, unsigned c) { to[k] = static_cast<unsigned char>(c); });
}

KERNEL geohash__good(const float2* __restrict__ at, unsigned char* __restrict__ out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned w[4] = {};
  Geohash(at, i, [&](int k, unsigned c) { w[k / 4] |= c << k % 4 * 8; });
  *reinterpret_cast<uint4*>(out + size_t(i) * 16) = make_uint4(w[0], w[1], w[2], w[3]);
}

static void AddGeohash() {
  const int n = 16 << 20;
  float2* at = suite::Buffer<float2>(n);
  auto* out = suite::Buffer<unsigned char>(size_t(n) * 16, suite::Fill::kZero);
  pairs::Add(
      "geohash", [=] { geohash__bad<<<n / 256, 256>>>(at, out); },
      [=] { geohash__good<<<n / 256, 256>>>(at, out); }, out, size_t(n) * 16, 0);
}

// Rays march through a volume of 512 x 512 x 256 along z and absorb: lanes run along y, or x.
__device__ void March(const float* __restrict__ volume, float* __restrict__ out, int x, int y) {
  float light = 1.0f, colour = 0.0f;
#pragma unroll 8
  for (int z = 0; z < 256; ++z) {
    const float v = fabsf(volume[(size_t(z) * 512 + y) * 512 + x]);
    colour = fmaf(light, v, colour);
    light *= 1.0f - 0.02f * v;
  }
  out[y * 512 + x] = colour;
}

KERNEL march__bad(const float* volume, float* out) {
  March(volume, out, blockIdx.x, blockIdx.y * blockDim.x + threadIdx.x);
}

KERNEL march__good(const float* volume, float* out) {
  March(volume, out, blockIdx.y * blockDim.x + threadIdx.x, blockIdx.x);
}

static void AddMarch() {
  float* volume = suite::Buffer<float>(size_t(512) * 512 * 256);
  float* out = suite::Buffer<float>(512 * 512, suite::Fill::kZero);
  pairs::Add(
      "march", [=] { march__bad<<<dim3(512, 4), 128>>>(volume, out); },
      [=] { march__good<<<dim3(512, 4), 128>>>(volume, out); }, out, 512 * 512);
}

int main(int argc, char** argv) {
  AddFrobenius();
  AddPermute();
  AddLifting();
  AddGeohash();
  AddMarch();
  return pairs::Main(argc, argv);
}
