// SPDX-License-Identifier: Apache-2.0
// Shared memory: bank conflicts, pressure, clusters.
#include <cooperative_groups.h>

#include "cases.h"

// --- smem.bank: a column of a [32][32] tile lies in one bank; [32][33] spreads it.
template <int kPitch>
INLINE void Transpose(const float* __restrict__ a, float* __restrict__ o, int n) {
  __shared__ float t[32][kPitch];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) t[threadIdx.y + j][threadIdx.x] = a[(y + j) * n + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) o[(y + j) * n + x] = t[threadIdx.x][threadIdx.y + j];
}
KERNEL smem_bank__fires(const float* a, float* o, int n) { Transpose<32>(a, o, n); }
KERNEL smem_bank__silent(const float* a, float* o, int n) { Transpose<33>(a, o, n); }
// 128-bit accesses of consecutive lanes take four wavefronts by right, not by conflict.
KERNEL smem_bank__silent2(const float4* __restrict__ a, float4* __restrict__ o, int n) {
  __shared__ float4 t[256];
  for (int i = Tid(); i < n; i += Threads()) {
    t[threadIdx.x] = a[i];
    __syncthreads();
    o[i] = t[threadIdx.x ^ 32];
    __syncthreads();
  }
}
// Product whose B tile is stored transposed: 32-way conflicts in the inner loop.
KERNEL smem_bank__fires2(const float* __restrict__ a, const float* __restrict__ b,
                         float* __restrict__ c, int n) {
  __shared__ float as[32][32], bs[32][32];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int col = blockIdx.x * 32 + tx, row = blockIdx.y * 32 + ty;
  float sum = 0;
  for (int t = 0; t < n; t += 32) {
    as[ty][tx] = a[row * n + t + tx];
    bs[tx][ty] = b[(t + ty) * n + col];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 32; ++k) sum += as[ty][k] * bs[tx][k];
    __syncthreads();
  }
  c[row * n + col] = sum;
}

// --- smem.pressure: two shared loads for each multiply-add; 8x8 outputs a thread need a quarter.
KERNEL __launch_bounds__(1024) smem_pressure__fires(const float* a, const float* b, float* c, int n) {
  ProductTile32(a, b, c, n);
}
KERNEL __launch_bounds__(256) smem_pressure__silent(const float* a, const float* b, float* c, int n) {
  ProductTile128(a, b, c, n);
}

// --- smem.cluster: the whole cluster meets at every step although only the block shares data.
template <bool kCluster>
INLINE void StagedSum(const float4* __restrict__ a, float* __restrict__ o, int n) {
  __shared__ float4 t[2][256];
  float s = 0;
  int stage = 0;
  for (int i = Tid(); i < n; i += Threads(), stage ^= 1) {
    t[stage][threadIdx.x] = a[i];
    if constexpr (kCluster) {
      cooperative_groups::this_cluster().sync();
    } else {
      __syncthreads();
    }
    const float4 v = t[stage][threadIdx.x ^ 64];
    s += v.x + v.y + v.z + v.w;
  }
  o[Tid()] = s;
}
KERNEL __cluster_dims__(8, 1, 1) smem_cluster__fires(const float4* a, float* o, int n) {
  StagedSum<true>(a, o, n);
}
KERNEL smem_cluster__silent(const float4* a, float* o, int n) { StagedSum<false>(a, o, n); }

int main(int argc, char** argv) {
  using suite::Add;
  float *a = In(), *o = Out(), *b = a + kN / 2;
  auto* a4 = reinterpret_cast<float4*>(a);
  auto* o4 = reinterpret_cast<float4*>(o);
  const dim3 tile(32, 8), tiles(256, 256), square(32, 32);
  Add("smem_bank__fires", [=] { smem_bank__fires<<<tiles, tile>>>(a, o, 8192); });
  Add("smem_bank__silent", [=] { smem_bank__silent<<<tiles, tile>>>(a, o, 8192); });
  Add("smem_bank__silent2", [=] { smem_bank__silent2<<<1024, 256>>>(a4, o4, kN / 4); });
  Add("smem_bank__fires2", [=] { smem_bank__fires2<<<dim3(32, 32), square>>>(a, b, o, 1024); });
  Add("smem_pressure__fires", [=] { smem_pressure__fires<<<dim3(64, 64), square>>>(a, b, o, 2048); });
  Add("smem_pressure__silent", [=] { smem_pressure__silent<<<dim3(16, 16), 256>>>(a, b, o, 2048); });
  Add("smem_cluster__fires", [=] { smem_cluster__fires<<<512, 256>>>(a4, o, kN / 4); });
  Add("smem_cluster__silent", [=] { smem_cluster__silent<<<512, 256>>>(a4, o, kN / 4); });
  return suite::Main(argc, argv);
}
