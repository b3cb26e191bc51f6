// SPDX-License-Identifier: Apache-2.0
// Validation pairs about the width, the number and the place of memory accesses.
#include "pairs.h"

using Byte = unsigned char;

// One generation of the game of life on a torus of bytes: a cell or 16 cells a thread.
__global__ void life_init(Byte* cells, size_t n) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n;
       i += size_t(gridDim.x) * blockDim.x) {
    cells[i] = (static_cast<unsigned>(i) * 2654435761u >> 13) % 3 == 0;
  }
}

KERNEL life__bad(const Byte* __restrict__ in, Byte* __restrict__ out, int side) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  const int l = (x - 1) & (side - 1), r = (x + 1) & (side - 1);
  const Byte* up = in + size_t((y - 1) & (side - 1)) * side;
  const Byte* mid = in + size_t(y) * side;
  const Byte* down = in + size_t((y + 1) & (side - 1)) * side;
  const int n = up[l] + up[x] + up[r] + mid[l] + mid[r] + down[l] + down[x] + down[r];
  out[size_t(y) * side + x] = n == 3 || (n == 2 && mid[x] != 0);
}

/// Sums of a cell and its two neighbours for 16 cells: counts of at most 3 in a byte.
__device__ void RowSums(const Byte* row, int x, int side, unsigned (&own)[4], unsigned (&sum)[4]) {
  const uint4 v = *reinterpret_cast<const uint4*>(row + x);
  const unsigned left = row[(x - 1) & (side - 1)], right = row[(x + 16) & (side - 1)];
  own[0] = v.x, own[1] = v.y, own[2] = v.z, own[3] = v.w;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const unsigned before = k == 0 ? left << 24 : own[k - 1];
    const unsigned after = k == 3 ? right : own[k + 1];
    sum[k] = own[k] + __funnelshift_l(before, own[k], 8) + __funnelshift_r(own[k], after, 8);
  }
}

KERNEL life__good(const Byte* __restrict__ in, Byte* __restrict__ out, int side) {
  const int x = (blockIdx.x * blockDim.x + threadIdx.x) * 16, y = blockIdx.y;
  unsigned own[4], n[4], other[4], ignored[4], result[4];
  RowSums(in + size_t((y - 1) & (side - 1)) * side, x, side, ignored, n);
  RowSums(in + size_t((y + 1) & (side - 1)) * side, x, side, ignored, other);
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    n[k] += other[k];
  }
  RowSums(in + size_t(y) * side, x, side, own, other);
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    // Alive next: a count of 3 with or without the own bit set, which `| own` makes one test.
    const unsigned t = ((n[k] + other[k] - own[k]) | own[k]) ^ 0x03030303u;
    result[k] = (((t | t >> 1 | t >> 2 | t >> 3) & 0x01010101u) ^ 0x01010101u);
  }
  *reinterpret_cast<uint4*>(out + size_t(y) * side + x) =
      make_uint4(result[0], result[1], result[2], result[3]);
}

static void AddLife() {
  const int side = 16384;
  const size_t n = size_t(side) * side;
  Byte *in = suite::Buffer<Byte>(n, suite::Fill::kZero), *out = suite::Buffer<Byte>(n);
  life_init<<<1024, 256>>>(in, n);
  CHECK(cudaDeviceSynchronize());
  pairs::Add(
      "life", [=] { life__bad<<<dim3(side / 256, side), 256>>>(in, out, side); },
      [=] { life__good<<<dim3(side / 4096, side), 256>>>(in, out, side); }, out, n);
}

// Checksum of each packet of 8 KiB (sum, and sum weighted by position), by bytes or by 16 bytes.
KERNEL adler__bad(const Byte* __restrict__ data, unsigned* __restrict__ out) {
  const size_t packet = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  unsigned a = 0, b = 0;
#pragma unroll 4
  for (int i = threadIdx.x % 32; i < 8192; i += 32) {
    const unsigned v = data[packet * 8192 + i];
    a += v;
    b += v * i;
  }
  a = __reduce_add_sync(~0u, a);
  b = __reduce_add_sync(~0u, b);
  if (threadIdx.x % 32 == 0) {
    out[packet] = (a % 65521u) ^ (b << 8);
  }
}

KERNEL adler__good(const Byte* __restrict__ data, unsigned* __restrict__ out) {
  const size_t packet = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  unsigned a = 0, b = 0;
#pragma unroll 4
  for (int i = threadIdx.x % 32 * 16; i < 8192; i += 512) {
    const uint4 v = *reinterpret_cast<const uint4*>(data + packet * 8192 + i);
    const unsigned word[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const unsigned s = __dp4a(word[k], 0x01010101u, 0u);
      a += s;
      b += s * (i + 4 * k) + __dp4a(word[k], 0x03020100u, 0u);
    }
  }
  a = __reduce_add_sync(~0u, a);
  b = __reduce_add_sync(~0u, b);
  if (threadIdx.x % 32 == 0) {
    out[packet] = (a % 65521u) ^ (b << 8);
  }
}

static void AddAdler() {
  const int packets = 98304;
  Byte* data = suite::Buffer<Byte>(size_t(packets) * 8192, suite::Fill::kBits);
  unsigned* out = suite::Buffer<unsigned>(packets, suite::Fill::kZero);
  pairs::Add(
      "adler", [=] { adler__bad<<<packets / 8, 256>>>(data, out); },
      [=] { adler__good<<<packets / 8, 256>>>(data, out); }, out, packets, 0);
}

// Largest logit of each of 4096 rows of 65536 halves: one or eight a load.
KERNEL argmax__bad(const __half* __restrict__ x, float* __restrict__ out) {
  __shared__ float part[8];
  const __half* row = x + blockIdx.x * size_t(65536);
  float m = -1e30f;
#pragma unroll 2
  for (int i = threadIdx.x; i < 65536; i += 256) {
    m = fmaxf(m, __half2float(row[i]) + 1e-6f * (i >> 8));
  }
  m = pairs::WarpMax(m);
  if (threadIdx.x % 32 == 0) {
    part[threadIdx.x / 32] = m;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int k = 0; k < 8; ++k) {
      m = fmaxf(m, part[k]);
    }
    out[blockIdx.x] = m;
  }
}

KERNEL argmax__good(const __half* __restrict__ x, float* __restrict__ out) {
  __shared__ float part[8];
  const __half* row = x + blockIdx.x * size_t(65536);
  float m = -1e30f;
#pragma unroll 4
  for (int i = threadIdx.x * 8; i < 65536; i += 2048) {
    const uint4 raw = *reinterpret_cast<const uint4*>(row + i);
    const __half2* h = reinterpret_cast<const __half2*>(&raw);
    const __half2 top = __hmax2(__hmax2(h[0], h[1]), __hmax2(h[2], h[3]));
    m = fmaxf(m, fmaxf(__low2float(top), __high2float(top)) + 1e-6f * (i >> 8));
  }
  m = pairs::WarpMax(m);
  if (threadIdx.x % 32 == 0) {
    part[threadIdx.x / 32] = m;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int k = 0; k < 8; ++k) {
      m = fmaxf(m, part[k]);
    }
    out[blockIdx.x] = m;
  }
}

static void AddArgmax() {
  const int rows = 4096;
  __half* x = suite::Buffer<__half>(size_t(rows) * 65536, suite::Fill::kHalf);
  float* out = suite::Buffer<float>(rows, suite::Fill::kZero);
  pairs::Add(
      "argmax", [=] { argmax__bad<<<rows, 256>>>(x, out); },
      [=] { argmax__good<<<rows, 256>>>(x, out); }, out, rows);
}

// Difference of two int16 recordings whose rows are 2047 samples long, or padded to 2048.
KERNEL recording__bad(const short* __restrict__ a, const short* __restrict__ b,
                      int* __restrict__ out, int samples) {
  const size_t row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  int s = 0;
#pragma unroll 1
  for (int i = threadIdx.x % 32; i < samples; i += 32) {
    s += abs(a[row * samples + i] - b[row * samples + i]) >> 8;
  }
  s = __reduce_add_sync(~0u, s);
  if (threadIdx.x % 32 == 0) {
    out[row] = s;
  }
}

KERNEL recording__good(const short* __restrict__ a, const short* __restrict__ b,
                       int* __restrict__ out) {
  const size_t row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  int s = 0;
#pragma unroll 2
  for (int i = threadIdx.x % 32 * 8; i < 2048; i += 256) {
    const uint4 va = *reinterpret_cast<const uint4*>(a + row * 2048 + i);
    const uint4 vb = *reinterpret_cast<const uint4*>(b + row * 2048 + i);
    const short *pa = reinterpret_cast<const short*>(&va),
                *pb = reinterpret_cast<const short*>(&vb);
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      s += abs(pa[k] - pb[k]) >> 8;
    }
  }
  s = __reduce_add_sync(~0u, s);
  if (threadIdx.x % 32 == 0) {
    out[row] = s;
  }
}

static void AddRecording() {
  const int rows = 131072, samples = 2047;
  const size_t n = size_t(rows) * 2048;
  short *a = suite::Buffer<short>(n, suite::Fill::kBits, 3),
        *b = suite::Buffer<short>(n, suite::Fill::kBits, 4);
  short *pa = suite::Buffer<short>(n, suite::Fill::kZero),
        *pb = suite::Buffer<short>(n, suite::Fill::kZero);
  CHECK(cudaMemcpy2D(pa, 4096, a, samples * 2, samples * 2, rows, cudaMemcpyDefault));
  CHECK(cudaMemcpy2D(pb, 4096, b, samples * 2, samples * 2, rows, cudaMemcpyDefault));
  int* out = suite::Buffer<int>(rows, suite::Fill::kZero);
  pairs::Add(
      "recording", [=] { recording__bad<<<rows / 8, 256>>>(a, b, out, samples); },
      [=] { recording__good<<<rows / 8, 256>>>(pa, pb, out); }, out, rows, 0);
}

// Calibration statistics of chunks of 1 MiB: a loop for each statistic, or one for all.
__device__ float BlockSum(float v) {
  __shared__ float part[16];
  v = pairs::WarpSum(v);
  __syncthreads();
  if (threadIdx.x % 32 == 0) {
    part[threadIdx.x / 32] = v;
  }
  __syncthreads();
  v = 0;
  for (int k = 0; k < 16; ++k) {
    v += part[k];
  }
  return v;
}

template <class F>
__device__ float Over(const float4* x, F f) {
  float s = 0;
#pragma unroll 4
  for (int i = threadIdx.x; i < 65536; i += 512) {
    const float4 v = x[i];
    s += f(v.x) + f(v.y) + f(v.z) + f(v.w);
  }
  return BlockSum(s);
}

KERNEL calibrate__bad(const float4* __restrict__ in, float* __restrict__ out) {
  const float4* x = in + blockIdx.x * size_t(65536);
  const float a = Over(x, [](float v) { return v; });
  const float b = Over(x, [](float v) { return v * v; });
  const float c = Over(x, [](float v) { return fabsf(v); });
  const float d = Over(x, [](float v) { return fabsf(v) > 0.9f ? 1.0f : 0.0f; });
  const float e = Over(x, [](float v) { return v * v * v * v; });
  if (threadIdx.x == 0) {
    out[blockIdx.x] = a * 0.1f + b + c + d + e;
  }
}

KERNEL calibrate__good(const float4* __restrict__ in, float* __restrict__ out) {
  const float4* x = in + blockIdx.x * size_t(65536);
  float a = 0, b = 0, c = 0, d = 0, e = 0;
#pragma unroll 4
  for (int i = threadIdx.x; i < 65536; i += 512) {
    const float4 q = x[i];
    const float t[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float v = t[k], w = v * v;
      a += v, b += w, c += fabsf(v), d += fabsf(v) > 0.9f ? 1.0f : 0.0f, e += w * w;
    }
  }
  const float sum = BlockSum(a * 0.1f + b + c + d + e);
  if (threadIdx.x == 0) {
    out[blockIdx.x] = sum;
  }
}

static void AddCalibrate() {
  const int chunks = 1056;
  const float4* x = suite::Buffer<float4>(size_t(chunks) * 65536);
  float* out = suite::Buffer<float>(chunks, suite::Fill::kZero);
  pairs::Add(
      "calibrate", [=] { calibrate__bad<<<chunks, 512>>>(x, out); },
      [=] { calibrate__good<<<chunks, 512>>>(x, out); }, out, chunks);
}

int main(int argc, char** argv) {
  AddLife();
  AddAdler();
  AddArgmax();
  AddRecording();
  AddCalibrate();
  return pairs::Main(argc, argv);
}
