// SPDX-License-Identifier: Apache-2.0
// Matrix products: without tensor cores, with warp-level ones, and how they are fed.
// (Warpgroup-level products: core_wgmma.cu.)
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

#include "cases.h"

namespace wmma = nvcuda::wmma;

// --- cmp.tensor_absent: a product on the scalar pipes.
KERNEL __launch_bounds__(256) cmp_tensor_absent__fires(const float* a, const float* b, float* c, int n) {
  ProductTile128(a, b, c, n);
}
KERNEL cmp_tensor_absent__silent2(const float4* __restrict__ a, const float4* __restrict__ b,
                                  float4* __restrict__ c, int n) {
  for (int i = Tid(); i < n; i += Threads()) {
    const float4 x = a[i], y = b[i];
    c[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
  }
}

using FragA = wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major>;
using FragB = wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major>;
using FragC = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

// C (M x N) = A (M x K) * B (K x N), fp16 in, fp32 out, a block does kM x kN in steps of kK with
// 2 x 2 warps (a warp kM/2 x kN/2). kStages = 0: through registers, one buffer, two barriers a
// step; otherwise a ring of cp.async stages.
template <int kM, int kN, int kK, int kStages>
INLINE void Product16(const half* __restrict__ a, const half* __restrict__ b, float* __restrict__ c,
                      int n, int depth) {
  constexpr int kRing = kStages == 0 ? 1 : kStages;
  constexpr int kPitchA = kK + 8, kPitchB = kN + 8, kThreads = 128;
  extern __shared__ __align__(128) half shared[];
  half* as = shared;                        // [kRing][kM][kPitchA]
  half* bs = shared + kRing * kM * kPitchA;  // [kRing][kK][kPitchB]
  const int tid = threadIdx.x, warp = tid / 32, wm = warp / 2 * (kM / 2), wn = warp % 2 * (kN / 2);
  const half* a0 = a + size_t(blockIdx.y) * kM * depth;
  const half* b0 = b + blockIdx.x * kN;
  constexpr int kCopiesA = kM * kK / 8 / kThreads, kCopiesB = kK * kN / 8 / kThreads;
  auto from_a = [&](int i, int k0) { const int v = i * kThreads + tid; return a0 + size_t(v / (kK / 8)) * depth + k0 + v % (kK / 8) * 8; };
  auto to_a = [&](int i, int s) { const int v = i * kThreads + tid; return as + (s * kM + v / (kK / 8)) * kPitchA + v % (kK / 8) * 8; };
  auto from_b = [&](int i, int k0) { const int v = i * kThreads + tid; return b0 + size_t(k0 + v / (kN / 8)) * n + v % (kN / 8) * 8; };
  auto to_b = [&](int i, int s) { const int v = i * kThreads + tid; return bs + (s * kK + v / (kN / 8)) * kPitchB + v % (kN / 8) * 8; };
  auto fetch = [&](int s, int k0) {
    if (k0 < depth) {
#pragma unroll
      for (int i = 0; i < kCopiesA; ++i) __pipeline_memcpy_async(to_a(i, s), from_a(i, k0), 16);
#pragma unroll
      for (int i = 0; i < kCopiesB; ++i) __pipeline_memcpy_async(to_b(i, s), from_b(i, k0), 16);
    }
    __pipeline_commit();
  };
  FragC acc[kM / 32][kN / 32];
#pragma unroll
  for (int i = 0; i < kM / 32; ++i)
#pragma unroll
    for (int j = 0; j < kN / 32; ++j) wmma::fill_fragment(acc[i][j], 0.0f);
  if constexpr (kStages > 0) {
#pragma unroll
    for (int s = 0; s < kStages - 1; ++s) fetch(s, s * kK);
  }
  int s = 0;
#pragma unroll 1
  for (int k0 = 0; k0 < depth; k0 += kK) {
    if constexpr (kStages == 0) {
      uint4 va[kCopiesA], vb[kCopiesB];
#pragma unroll
      for (int i = 0; i < kCopiesA; ++i) va[i] = *reinterpret_cast<const uint4*>(from_a(i, k0));
#pragma unroll
      for (int i = 0; i < kCopiesB; ++i) vb[i] = *reinterpret_cast<const uint4*>(from_b(i, k0));
#pragma unroll
      for (int i = 0; i < kCopiesA; ++i) *reinterpret_cast<uint4*>(to_a(i, 0)) = va[i];
#pragma unroll
      for (int i = 0; i < kCopiesB; ++i) *reinterpret_cast<uint4*>(to_b(i, 0)) = vb[i];
      __syncthreads();
    } else {
      __pipeline_wait_prior(kStages - 2);
      __syncthreads();
      fetch((s + kStages - 1) % kStages, k0 + (kStages - 1) * kK);
    }
#pragma unroll
    for (int k = 0; k < kK; k += 16) {
      FragA fa[kM / 32];
      FragB fb[kN / 32];
#pragma unroll
      for (int i = 0; i < kM / 32; ++i)
        wmma::load_matrix_sync(fa[i], as + (s * kM + wm + i * 16) * kPitchA + k, kPitchA);
#pragma unroll
      for (int j = 0; j < kN / 32; ++j)
        wmma::load_matrix_sync(fb[j], bs + (s * kK + k) * kPitchB + wn + j * 16, kPitchB);
#pragma unroll
      for (int i = 0; i < kM / 32; ++i)
#pragma unroll
        for (int j = 0; j < kN / 32; ++j) wmma::mma_sync(acc[i][j], fa[i], fb[j], acc[i][j]);
    }
    if constexpr (kStages == 0) {
      __syncthreads();
    } else {
      s = (s + 1) % kStages;
    }
  }
#pragma unroll
  for (int i = 0; i < kM / 32; ++i)
#pragma unroll
    for (int j = 0; j < kN / 32; ++j)
      wmma::store_matrix_sync(c + size_t(blockIdx.y * kM + wm + i * 16) * n + blockIdx.x * kN + wn + j * 16,
                              acc[i][j], n, wmma::mem_row_major);
}
constexpr int Bytes(int m, int n, int k, int stages) { return stages * (m * (k + 8) + k * (n + 8)) * 2; }
// A product that uses them.
KERNEL __launch_bounds__(128) cmp_tensor_absent__silent(const half* a, const half* b, float* c, int n, int k) {
  Product16<128, 128, 32, 3>(a, b, c, n, k);
}

// --- cmp.tensor_slow: warp-level mma with large tiles on a card that has warpgroup mma.
KERNEL __launch_bounds__(128) cmp_tensor_slow__fires(const half* a, const half* b, float* c, int n, int k) {
  Product16<128, 128, 32, 3>(a, b, c, n, k);
}
// A product of 1.6 MB x 32 columns is bound by memory: the older path costs nothing.
KERNEL __launch_bounds__(128) cmp_tensor_slow__silent2(const half* a, const half* b, float* c, int n, int k) {
  Product16<64, 32, 64, 4>(a, b, c, n, k);
}

// --- cmp.tensor_feed: 64x64x16 tile, one stage: the tensor pipe waits for its operands.
KERNEL __launch_bounds__(128) cmp_tensor_feed__fires(const half* a, const half* b, float* c, int n, int k) {
  Product16<64, 64, 16, 0>(a, b, c, n, k);
}

// --- mem.async: tile through registers into one buffer, two barriers a step, two blocks an SM.
KERNEL __launch_bounds__(128) mem_async__fires(const half* a, const half* b, float* c, int n, int k) {
  Product16<64, 64, 32, 0>(a, b, c, n, k);
}
KERNEL __launch_bounds__(128) mem_async__silent(const half* a, const half* b, float* c, int n, int k) {
  Product16<64, 64, 32, 4>(a, b, c, n, k);
}
// No staging at all.
KERNEL mem_async__silent2(const float4* __restrict__ a, float4* __restrict__ o, int n) {
  for (int i = Tid(); i < n; i += Threads()) o[i] = a[i];
}

int main(int argc, char** argv) {
  using suite::Add;
  float *a = In(), *o = Out();
  auto* ha = suite::Buffer<half>(1 << 26, suite::Fill::kHalf, 1);
  auto* hb = suite::Buffer<half>(1 << 26, suite::Fill::kHalf, 2);
  auto* a4 = reinterpret_cast<float4*>(a);
  auto* o4 = reinterpret_cast<float4*>(o);
  constexpr int kBig = Bytes(128, 128, 32, 3);
  CHECK(cudaFuncSetAttribute(cmp_tensor_absent__silent, cudaFuncAttributeMaxDynamicSharedMemorySize, kBig));
  CHECK(cudaFuncSetAttribute(cmp_tensor_slow__fires, cudaFuncAttributeMaxDynamicSharedMemorySize, kBig));
  CHECK(cudaFuncSetAttribute(cmp_tensor_slow__silent2, cudaFuncAttributeMaxDynamicSharedMemorySize, Bytes(64, 32, 64, 4)));
  Add("cmp_tensor_absent__fires", [=] { cmp_tensor_absent__fires<<<dim3(16, 16), 256>>>(a, a + kN / 2, o, 2048); });
  Add("cmp_tensor_absent__silent", [=] { cmp_tensor_absent__silent<<<dim3(32, 32), 128, kBig>>>(ha, hb, o, 4096, 4096); });
  Add("cmp_tensor_absent__silent2", [=] { cmp_tensor_absent__silent2<<<8 * Sms(), 256>>>(a4, a4 + kN / 8, o4, kN / 8); });
  Add("cmp_tensor_slow__fires", [=] { cmp_tensor_slow__fires<<<dim3(32, 32), 128, kBig>>>(ha, hb, o, 4096, 4096); });
  Add("cmp_tensor_slow__silent2", [=] { cmp_tensor_slow__silent2<<<dim3(1, 1024), 128, Bytes(64, 32, 64, 4)>>>(ha, hb, o, 32, 1024); });
  Add("cmp_tensor_feed__fires", [=] { cmp_tensor_feed__fires<<<dim3(64, 64), 128, Bytes(64, 64, 16, 1)>>>(ha, hb, o, 4096, 4096); });
  Add("mem_async__fires", [=] { mem_async__fires<<<dim3(16, 16), 128, Bytes(64, 64, 32, 1)>>>(ha, hb, o, 1024, 8192); });
  Add("mem_async__silent", [=] { mem_async__silent<<<dim3(16, 16), 128, Bytes(64, 64, 32, 4)>>>(ha, hb, o, 1024, 8192); });
  Add("mem_async__silent2", [=] { mem_async__silent2<<<8 * Sms(), 256>>>(a4, o4, kN / 4); });
  return suite::Main(argc, argv);
}
