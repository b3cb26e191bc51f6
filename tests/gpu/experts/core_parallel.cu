// SPDX-License-Identifier: Apache-2.0
// Launch geometry and occupancy.
#include "cases.h"

INLINE float BlockMax(float v, float* s) {
#pragma unroll
  for (int o = 16; o; o >>= 1) v = fmaxf(v, __shfl_xor_sync(~0u, v, o));
  __syncthreads();
  if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = v;
  __syncthreads();
  v = s[0];
  for (int i = 1; i < blockDim.x / 32; ++i) v = fmaxf(v, s[i]);
  return v;
}
INLINE float BlockSum(float v, float* s) {
  v = WarpSum(v);
  __syncthreads();
  if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = v;
  __syncthreads();
  v = 0;
  for (int i = 0; i < blockDim.x / 32; ++i) v += s[i];
  return v;
}
/// Softmax of one row by one block.
INLINE void SoftmaxRow(const float4* __restrict__ a, float4* __restrict__ o, int cols) {
  __shared__ float s[32];
  const float4* row = a + size_t(blockIdx.x) * cols;
  float4* out = o + size_t(blockIdx.x) * cols;
  float m = -1e30f, sum = 0;
#pragma unroll 4
  for (int i = threadIdx.x; i < cols; i += blockDim.x) {
    const float4 v = row[i];
    m = fmaxf(m, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
  }
  m = BlockMax(m, s);
#pragma unroll 4
  for (int i = threadIdx.x; i < cols; i += blockDim.x) {
    const float4 v = row[i];
    sum += __expf(v.x - m) + __expf(v.y - m) + __expf(v.z - m) + __expf(v.w - m);
  }
  const float r = 1.0f / BlockSum(sum, s);
#pragma unroll 4
  for (int i = threadIdx.x; i < cols; i += blockDim.x) {
    const float4 v = row[i];
    out[i] = make_float4(__expf(v.x - m) * r, __expf(v.y - m) * r, __expf(v.z - m) * r,
                         __expf(v.w - m) * r);
  }
}
// --- par.small_grid: 16 rows keep 16 SMs busy.
KERNEL par_small_grid__fires(const float4* a, float4* o, int cols) { SoftmaxRow(a, o, cols); }
KERNEL par_small_grid__silent(const float4* a, float4* o, int cols) { SoftmaxRow(a, o, cols); }

/// A chain of `steps` multiply-adds: every block lives equally long, whatever runs beside it.
INLINE float Chain(float x, int steps) {
#pragma unroll 16
  for (int i = 0; i < steps; ++i) x = fmaf(x, 0.999f, 0.5f);
  return x;
}
// --- par.tail: two blocks an SM fit and the grid is one block more than a wave. A block takes
// 100 KB of shared memory, so that the number of blocks an SM is certain.
constexpr int kTwoBlocks = 100 * 1024;
INLINE void TailBody(float* o, int steps) {
  extern __shared__ float s[];
  s[threadIdx.x] = Chain(threadIdx.x, steps);
  __syncthreads();
  o[Tid()] = s[threadIdx.x ^ 1];
}
KERNEL par_tail__fires(float* o, int steps) { TailBody(o, steps); }
KERNEL par_tail__silent(float* o, int steps) { TailBody(o, steps); }

// --- par.imbalance: block b does b units; the last SM works twice the average.
KERNEL par_imbalance__fires(float* o, int steps) {
  o[Tid()] = Chain(threadIdx.x, steps * (blockIdx.x + 1));
}
KERNEL par_imbalance__silent(float* o, int steps) { o[Tid()] = Chain(threadIdx.x, steps * 66); }
// Triangular rows, shortest first: the longest blocks start last.
KERNEL par_imbalance__fires2(const float4* __restrict__ a, float* __restrict__ o, int unit) {
  float s = 0;
  const int len = (blockIdx.x + 1) * unit;
  const float4* row = a + size_t(blockIdx.x) * gridDim.x / 2 % 4096 * 64;
#pragma unroll 4
  for (int i = threadIdx.x; i < len; i += blockDim.x) {
    const float4 v = row[i];
    s += __expf(v.x) + __expf(v.y) + __expf(v.z) + __expf(v.w);
  }
  o[Tid()] = s;
}

// --- par.cta_rate: blocks of one warp that copy 32 elements: starting them is the work.
KERNEL par_cta_rate__fires(const float* __restrict__ a, float* __restrict__ o, int n) {
  const int i = Tid();
  if (i < n) o[i] = a[i];
}
KERNEL par_cta_rate__silent(const float* __restrict__ a, float* __restrict__ o, int n) {
  for (int i = Tid(); i < n; i += Threads()) o[i] = a[i];
}

// --- par.block_size: 40 threads are two warps, the second a quarter full.
INLINE void FourChains(float* o, int steps) {
  float x = threadIdx.x, y = x + 1, z = x + 2, w = x + 3;
#pragma unroll 8
  for (int i = 0; i < steps; ++i) {
    x = fmaf(x, 0.999f, 0.5f);
    y = fmaf(y, 0.998f, 0.5f);
    z = fmaf(z, 0.997f, 0.5f);
    w = fmaf(w, 0.996f, 0.5f);
  }
  o[Tid()] = x + y + z + w;
}
KERNEL par_block_size__fires(float* o, int steps) { FourChains(o, steps); }
KERNEL par_block_size__silent(float* o, int steps) { FourChains(o, steps); }

// --- occ.registers: kTile sums a thread, each group of 16 fed by one load whose address hangs on
// the value before: with 160 sums 8 warps fit an SM, with 16 sums 64 warps do.
template <int kTile>
INLINE void TileStream(const float* __restrict__ a, float* __restrict__ o, int loads, int mask) {
  float acc[kTile];
#pragma unroll
  for (int k = 0; k < kTile; ++k) acc[k] = k;
  unsigned at = Tid();
  for (int j = 0; j < loads; j += kTile / 16) {
#pragma unroll
    for (int g = 0; g < kTile / 16; ++g) {
      const float x = a[at & mask];
      at += Threads() + (x > 2.0f);  // never, but the compiler cannot know
#pragma unroll
      for (int k = 0; k < 16; ++k) acc[g * 16 + k] = fmaf(acc[g * 16 + k], x, 0.5f);
    }
  }
  float s = 0;
#pragma unroll
  for (int k = 0; k < kTile; ++k) s += acc[k];
  o[Tid()] = s;
}
KERNEL __launch_bounds__(256) occ_registers__fires(const float* a, float* o, int loads, int mask) {
  TileStream<176>(a, o, loads, mask);
}
KERNEL __launch_bounds__(256) occ_registers__silent(const float* a, float* o, int loads, int mask) {
  TileStream<16>(a, o, loads, mask);
}
// Few warps on purpose: a tuned product hides its latency with its own parallelism.
KERNEL __launch_bounds__(256) occ_registers__silent2(const float* a, const float* b, float* c, int n) {
  ProductTile128(a, b, c, n);
}

// --- occ.smem: 100 KB a block of which a hundredth is used: two blocks of 128 threads an SM.
INLINE void StageStream(const float* __restrict__ a, float* __restrict__ o, int n) {
  extern __shared__ float s[];
  float sum = 0;
#pragma unroll 1
  for (int i = Tid(); i < n; i += Threads()) {
    s[threadIdx.x] = a[i];
    __syncwarp();
    sum = sum * 0.5f + s[threadIdx.x ^ 1];
    __syncwarp();
  }
  o[Tid()] = sum;
}
KERNEL occ_smem__fires(const float* a, float* o, int n) { StageStream(a, o, n); }
KERNEL occ_smem__silent(const float* a, float* o, int n) { StageStream(a, o, n); }
// --- occ.shape: blocks of one warp: 32 blocks fill the SM's block slots with 32 of 64 warps.
KERNEL occ_shape__fires(const float* a, float* o, int n) { StageStream(a, o, n); }
KERNEL occ_shape__silent(const float* a, float* o, int n) { StageStream(a, o, n); }

// --- occ.achieved: a million blocks of one warp live so briefly that few are resident.
KERNEL occ_achieved__fires(const float* __restrict__ a, float* __restrict__ o) { o[Tid()] = a[Tid()]; }
KERNEL occ_achieved__silent(const float* __restrict__ a, float* __restrict__ o, int n) {
  for (int i = Tid(); i < n; i += Threads()) o[i] = a[i];
}

int main(int argc, char** argv) {
  using suite::Add;
  float *a = In(), *o = Out();
  auto* a4 = reinterpret_cast<float4*>(a);
  auto* o4 = reinterpret_cast<float4*>(o);
  const int sms = Sms();
  for (const void* f : {reinterpret_cast<const void*>(par_tail__fires), reinterpret_cast<const void*>(par_tail__silent),
                        reinterpret_cast<const void*>(occ_smem__fires)}) {
    CHECK(cudaFuncSetAttribute(f, cudaFuncAttributeMaxDynamicSharedMemorySize, kTwoBlocks));
  }
  Add("par_small_grid__fires", [=] { par_small_grid__fires<<<16, 1024>>>(a4, o4, 1 << 17); });
  Add("par_small_grid__silent", [=] { par_small_grid__silent<<<8192, 256>>>(a4, o4, 2048); });
  Add("par_tail__fires", [=] { par_tail__fires<<<2 * sms + 1, 256, kTwoBlocks>>>(o, 40000); });
  Add("par_tail__silent", [=] { par_tail__silent<<<40 * sms, 256, kTwoBlocks>>>(o, 4000); });
  Add("par_imbalance__fires", [=] { par_imbalance__fires<<<sms, 1024>>>(o, 200); });
  Add("par_imbalance__silent", [=] { par_imbalance__silent<<<sms, 1024>>>(o, 200); });
  Add("par_imbalance__fires2", [=] { par_imbalance__fires2<<<16 * sms, 256>>>(a4, o, 8); });
  Add("par_cta_rate__fires", [=] { par_cta_rate__fires<<<kN / 32, 32>>>(a, o, kN); });
  Add("par_cta_rate__silent", [=] { par_cta_rate__silent<<<8 * sms, 256>>>(a, o, kN); });
  Add("par_block_size__fires", [=] { par_block_size__fires<<<32 * sms, 40>>>(o, 16384); });
  Add("par_block_size__silent", [=] { par_block_size__silent<<<10 * sms, 128>>>(o, 16384); });
  const int mask = kN - 1;
  Add("occ_registers__fires", [=] { occ_registers__fires<<<sms, 256>>>(a, o, 440, mask); });
  Add("occ_registers__silent", [=] { occ_registers__silent<<<8 * sms, 256>>>(a, o, 55, mask); });
  Add("occ_registers__silent2", [=] { occ_registers__silent2<<<dim3(16, 16), 256>>>(a, a + kN / 2, o, 2048); });
  Add("occ_smem__fires", [=] { occ_smem__fires<<<2 * sms, 128, kTwoBlocks>>>(a, o, kN / 4); });
  Add("occ_smem__silent", [=] { occ_smem__silent<<<16 * sms, 128, 512>>>(a, o, kN / 4); });
  Add("occ_shape__fires", [=] { occ_shape__fires<<<32 * sms, 32, 128>>>(a, o, kN); });
  Add("occ_shape__silent", [=] { occ_shape__silent<<<16 * sms, 128, 512>>>(a, o, kN); });
  Add("occ_achieved__fires", [=] { occ_achieved__fires<<<1 << 20, 32>>>(a, o); });
  Add("occ_achieved__silent", [=] { occ_achieved__silent<<<8 * sms, 256>>>(a, o, kN / 2); });
  return suite::Main(argc, argv);
}
