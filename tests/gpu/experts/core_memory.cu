// SPDX-License-Identifier: Apache-2.0
// Global memory: each tool's defect and its honest twin.
#include <cuda_bf16.h>

#include "cases.h"

// --- mem.coalesce_ld: lanes 128 bytes apart use 4 of each 32-byte sector.
KERNEL mem_coalesce_ld__fires(const float* a, float* o, int n, int wrap) {
  for (int i = Tid(); i < n; i += Threads()) o[i] = a[(i % wrap) * 32];
}
KERNEL mem_coalesce_ld__silent(const float* a, float* o, int n) {
  for (int i = Tid(); i < n; i += Threads()) o[i] = a[i];
}
// One row of 64 a thread: lanes 256 bytes apart.
KERNEL mem_coalesce_ld__fires2(const float* __restrict__ a, float* __restrict__ o, int rows) {
  const int r = Tid();
  float s = 0;
  if (r >= rows) return;
  for (int k = 0; k < 64; ++k) s += a[r * 64 + k];
  o[r] = s;
}
// 16 sectors a request, all of them used: more sectors is not less coalesced.
KERNEL mem_coalesce_ld__silent2(const float4* a, float4* o, int n) {
  for (int i = Tid(); i < n; i += Threads()) o[i] = a[i];
}

// --- mem.coalesce_st: each store fills 4 of 32 bytes of its sector.
KERNEL mem_coalesce_st__fires(const float* a, float* o, int n) {
  for (int i = Tid(); i < n; i += Threads()) o[i * 16] = a[i] + 1.0f;
}
KERNEL mem_coalesce_st__silent(const float* a, float* o, int n) {
  for (int i = Tid(); i < n; i += Threads()) o[i] = a[i] + 1.0f;
}
// Transpose that writes down the columns.
KERNEL mem_coalesce_st__fires2(const float* __restrict__ a, float* __restrict__ o, int n) {
  const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) o[x * n + y + j] = a[(y + j) * n + x];
}
// Few stores, all by one lane: a reduction's output is no traffic.
KERNEL mem_coalesce_st__silent2(const float4* __restrict__ a, float* __restrict__ o, int n) {
  float s = 0;
  for (int i = Tid(); i < n; i += Threads()) {
    const float4 v = a[i];
    s += v.x + v.y + v.z + v.w;
  }
  s = WarpSum(s);
  if (threadIdx.x % 32 == 0) o[Tid() / 32 * 16] = s;
}

// --- mem.width: one bf16 a lane although eight neighbours fit one instruction.
INLINE __nv_bfloat16 Relu(__nv_bfloat16 x) { return __hmax(x, __nv_bfloat16(0.0f)); }
KERNEL mem_width__fires(const __nv_bfloat16* __restrict__ a, __nv_bfloat16* __restrict__ o, int n) {
  for (int i = Tid(); i < n; i += Threads()) o[i] = Relu(a[i]);
}
KERNEL mem_width__silent(const uint4* __restrict__ a, uint4* __restrict__ o, int n) {
  for (int i = Tid(); i < n; i += Threads()) {
    uint4 v = a[i];
    __nv_bfloat162* h = reinterpret_cast<__nv_bfloat162*>(&v);
#pragma unroll
    for (int k = 0; k < 4; ++k) h[k] = __hmax2(h[k], __nv_bfloat162(0.0f, 0.0f));
    o[i] = v;
  }
}
// Four scalar loads and stores with consecutive offsets off one base.
KERNEL mem_width__fires2(const float* a, float* o, int n) {
  for (int i = Tid(); i < n / 4; i += Threads()) {
    const float x = a[4 * i], y = a[4 * i + 1], z = a[4 * i + 2], w = a[4 * i + 3];
    o[4 * i] = x + 1;
    o[4 * i + 1] = y + 1;
    o[4 * i + 2] = z + 1;
    o[4 * i + 3] = w + 1;
  }
}

// --- mem.dram_roof: a copy at the card's rate; only fewer bytes make it faster.
KERNEL mem_dram_roof__fires(const float4* __restrict__ a, float4* __restrict__ o, int n) {
  int i = Tid();
  const int step = Threads();
  for (; i + 3 * step < n; i += 4 * step) {
    const float4 x = a[i], y = a[i + step], z = a[i + 2 * step], w = a[i + 3 * step];
    o[i] = x;
    o[i + step] = y;
    o[i + 2 * step] = z;
    o[i + 3 * step] = w;
  }
  for (; i < n; i += step) o[i] = a[i];
}
KERNEL __launch_bounds__(256) mem_dram_roof__silent(const float* a, const float* b, float* c, int n) {
  ProductTile128(a, b, c, n);
}

// --- mem.excess: mean, then variance, over rows of 1 MB: the second pass reads DRAM again.
INLINE float BlockSum(float v) {
  __shared__ float s[32];
  v = WarpSum(v);
  __syncthreads();
  if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = v;
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < blockDim.x / 32; ++i) sum += s[i];
  return sum;
}
INLINE float Sum4(float4 v) { return v.x + v.y + v.z + v.w; }
INLINE float Square4(float4 v, float m) {
  const float x = v.x - m, y = v.y - m, z = v.z - m, w = v.w - m;
  return x * x + y * y + z * z + w * w;
}
KERNEL mem_excess__fires(const float4* __restrict__ a, float2* __restrict__ o, int cols) {
  const float4* row = a + size_t(blockIdx.x) * cols;
  float s = 0, q = 0;
#pragma unroll 4
  for (int i = threadIdx.x; i < cols; i += blockDim.x) s += Sum4(row[i]);
  const float mean = BlockSum(s) / (4.0f * cols);
#pragma unroll 4
  for (int i = threadIdx.x; i < cols; i += blockDim.x) q += Square4(row[i], mean);
  q = BlockSum(q);
  if (threadIdx.x == 0) o[blockIdx.x] = make_float2(mean, q / (4.0f * cols));
}
KERNEL mem_excess__silent(const float4* __restrict__ a, float2* __restrict__ o, int cols) {
  const float4* row = a + size_t(blockIdx.x) * cols;
  const float shift = reinterpret_cast<const float*>(row)[0];
  float s = 0, q = 0;
#pragma unroll 4
  for (int i = threadIdx.x; i < cols; i += blockDim.x) {
    const float4 v = row[i];
    s += Sum4(v) - 4 * shift;
    q += Square4(v, shift);
  }
  s = BlockSum(s) / (4.0f * cols);
  q = BlockSum(q) / (4.0f * cols);
  if (threadIdx.x == 0) o[blockIdx.x] = make_float2(s + shift, q - s * s);
}

// --- mem.l2_reuse: C = A (rows x 2048) * B (2048 x 16), a block does 8 rows of one column.
// Column after column, A (128 MB) is read from DRAM sixteen times.
INLINE void RowTimesColumn(const float4* __restrict__ a, const float4* __restrict__ b,
                           float* __restrict__ c, int strip, int col) {
  const int row = strip * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
  float s = 0;
#pragma unroll 8
  for (int k = lane; k < 512; k += 32) {
    const float4 x = __ldcg(&a[row * 512 + k]), y = b[col * 512 + k];
    s += x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w;
  }
  s = WarpSum(s);
  if (lane == 0) c[row * 16 + col] = s;
}
KERNEL mem_l2_reuse__fires(const float4* a, const float4* b, float* c, int strips) {
  RowTimesColumn(a, b, c, blockIdx.x % strips, blockIdx.x / strips);
}
KERNEL mem_l2_reuse__silent(const float4* a, const float4* b, float* c, int) {
  RowTimesColumn(a, b, c, blockIdx.x / 16, blockIdx.x % 16);
}
// A stream has no reuse to lose.
KERNEL mem_l2_reuse__silent2(const float4* a, float4* o, int n) {
  for (int i = Tid(); i < n; i += Threads()) {
    const float4 x = a[i], y = a[i + n];
    o[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
  }
}

// --- mem.l1_reuse: every thread walks a row and a column of its own from global memory.
KERNEL mem_l1_reuse__fires(const float* a, const float* b, float* c, int n) {
  ProductNaive(a, b, c, n);
}
KERNEL __launch_bounds__(256) mem_l1_reuse__silent(const float* a, const float* b, float* c, int n) {
  ProductTile128(a, b, c, n);
}

// --- mem.atomics: one atomic a thread on one address.
KERNEL mem_atomics__fires(const float* __restrict__ a, float* sum, int n) {
  const int i = Tid();
  if (i < n) atomicAdd(sum, a[i]);
}
KERNEL mem_atomics__silent(const float4* __restrict__ a, float* sum, int n) {
  float s = 0;
#pragma unroll 4
  for (int i = Tid(); i < n; i += Threads()) s += Sum4(a[i]);
  s = BlockSum(s);
  if (threadIdx.x == 0) atomicAdd(sum, s);
}
// Sum by a compare-and-swap loop on one of 8 addresses.
KERNEL mem_atomics__fires2(const float* __restrict__ a, unsigned* top, int n) {
  const int i = Tid();
  if (i >= n) return;
  const float v = a[i];
  unsigned* p = top + (i & 7);
  unsigned old = *p;
  while (true) {
    const unsigned seen = atomicCAS(p, old, __float_as_uint(__uint_as_float(old) + v));
    if (seen == old) break;
    old = seen;
  }
}
// Histogram: privatised in shared memory, 256 atomics a block at the end.
KERNEL mem_atomics__silent2(const uint4* __restrict__ a, unsigned* bins, int n) {
  __shared__ unsigned s[256];
  s[threadIdx.x] = 0;
  __syncthreads();
  for (int i = Tid(); i < n; i += Threads()) {
    const uint4 v = a[i];
    atomicAdd(&s[v.x & 255], 1u);
    atomicAdd(&s[v.y & 255], 1u);
    atomicAdd(&s[v.z & 255], 1u);
    atomicAdd(&s[v.w & 255], 1u);
  }
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], s[threadIdx.x]);
}

// --- mem.inflight: 16 warps an SM, one 4-byte load each, used at once.
KERNEL mem_inflight__fires(const float* __restrict__ a, float* __restrict__ o, int n) {
  float s = 0;
#pragma unroll 1
  for (int i = Tid(); i < n; i += Threads()) s = s * 0.5f + a[i];
  o[Tid()] = s;
}
KERNEL mem_inflight__silent(const float4* __restrict__ a, float* __restrict__ o, int n) {
  float s = 0;
  for (int i = Tid(); i < n; i += 8 * Threads()) {
    float4 v[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) v[k] = a[i + k * Threads()];
#pragma unroll
    for (int k = 0; k < 8; ++k) s = s * 0.5f + Sum4(v[k]);
  }
  o[Tid()] = s;
}

int main(int argc, char** argv) {
  using suite::Add;
  float *a = In(), *o = Out();
  const int wide = Sms() * 8;
  auto* a4 = reinterpret_cast<float4*>(a);
  auto* o4 = reinterpret_cast<float4*>(o);
  auto* ah = suite::Buffer<__nv_bfloat16>(kN, suite::Fill::kBf16);
  auto* oh = reinterpret_cast<__nv_bfloat16*>(o);
  auto* au = reinterpret_cast<uint4*>(ah);
  const dim3 tile(32, 8), tiles(256, 256), square(16, 16);
  Add("mem_coalesce_ld__fires", [=] { mem_coalesce_ld__fires<<<wide, 256>>>(a, o, kN / 8, kN / 32); });
  Add("mem_coalesce_ld__silent", [=] { mem_coalesce_ld__silent<<<wide, 256>>>(a, o, kN); });
  Add("mem_coalesce_ld__fires2", [=] { mem_coalesce_ld__fires2<<<kN / 64 / 256, 256>>>(a, o, kN / 64); });
  Add("mem_coalesce_ld__silent2", [=] { mem_coalesce_ld__silent2<<<wide, 256>>>(a4, o4, kN / 4); });
  Add("mem_coalesce_st__fires", [=] { mem_coalesce_st__fires<<<wide, 256>>>(a, o, kN / 16); });
  Add("mem_coalesce_st__silent", [=] { mem_coalesce_st__silent<<<wide, 256>>>(a, o, kN); });
  Add("mem_coalesce_st__fires2", [=] { mem_coalesce_st__fires2<<<tiles, tile>>>(a, o, 8192); });
  Add("mem_coalesce_st__silent2", [=] { mem_coalesce_st__silent2<<<wide, 256>>>(a4, o, kN / 4); });
  Add("mem_width__fires", [=] { mem_width__fires<<<wide, 256>>>(ah, oh, kN); });
  Add("mem_width__silent", [=] { mem_width__silent<<<wide, 256>>>(au, reinterpret_cast<uint4*>(o), kN / 8); });
  Add("mem_width__fires2", [=] { mem_width__fires2<<<wide, 256>>>(a, o, kN); });
  Add("mem_dram_roof__fires", [=] { mem_dram_roof__fires<<<wide, 256>>>(a4, o4, kN / 4); });
  Add("mem_dram_roof__silent", [=] { mem_dram_roof__silent<<<dim3(16, 16), 256>>>(a, a + kN / 2, o, 2048); });
  Add("mem_excess__fires", [=] { mem_excess__fires<<<256, 1024>>>(a4, reinterpret_cast<float2*>(o), 65536); });
  Add("mem_excess__silent", [=] { mem_excess__silent<<<256, 1024>>>(a4, reinterpret_cast<float2*>(o), 65536); });
  const float4* b4 = a4 + kN / 8;
  Add("mem_l2_reuse__fires", [=] { mem_l2_reuse__fires<<<2048 * 16, 256>>>(a4, b4, o, 2048); });
  Add("mem_l2_reuse__silent", [=] { mem_l2_reuse__silent<<<2048 * 16, 256>>>(a4, b4, o, 2048); });
  Add("mem_l2_reuse__silent2", [=] { mem_l2_reuse__silent2<<<wide, 256>>>(a4, o4, kN / 8); });
  Add("mem_l1_reuse__fires", [=] { mem_l1_reuse__fires<<<dim3(64, 64), square>>>(a, a + kN / 2, o, 1024); });
  Add("mem_l1_reuse__silent", [=] { mem_l1_reuse__silent<<<dim3(16, 16), 256>>>(a, a + kN / 2, o, 2048); });
  Add("mem_atomics__fires", [=] { mem_atomics__fires<<<4096, 256>>>(a, o, 4096 * 256); });
  Add("mem_atomics__silent", [=] { mem_atomics__silent<<<wide, 256>>>(a4, o, kN / 4); });
  Add("mem_atomics__fires2", [=] { mem_atomics__fires2<<<128, 64>>>(a, reinterpret_cast<unsigned*>(o), 8192); });
  Add("mem_atomics__silent2", [=] { mem_atomics__silent2<<<wide, 256>>>(au, reinterpret_cast<unsigned*>(o), kN / 8); });
  Add("mem_inflight__fires", [=] { mem_inflight__fires<<<2 * Sms(), 256>>>(a, o, kN); });
  Add("mem_inflight__silent", [=] { mem_inflight__silent<<<1024, 256>>>(a4, o, kN / 4); });
  return suite::Main(argc, argv);
}
