// SPDX-License-Identifier: Apache-2.0
// flags: -gencode arch=compute_90a,code=sm_90a
// Warpgroup products: a well-fed one (the silent twin of the tensor tools) and serialised ones.
#include "wgmma.h"

// C (m x n, fp32) = A (m x k) * B^T (B is n x k), bf16. A producer warp fills a ring of four stages
// by TMA, two warpgroups multiply a 128 x 256 tile, one group of wgmma stays in flight.
constexpr int kStages = 4, kStep = 64, kTileM = 128, kTileN = 256;
constexpr int kBytesA = kTileM * kStep * 2, kBytesB = kTileN * kStep * 2;
constexpr int kRingBytes = kStages * (kBytesA + kBytesB) + 1024;

template <int kInFlight>
INLINE void Product(const CUtensorMap* ma, const CUtensorMap* mb, float* c, int n, int depth) {
  extern __shared__ uint8_t raw[];
  uint8_t* as = raw + (1024 - SharedAddress(raw) % 1024) % 1024;
  uint8_t* bs = as + kStages * kBytesA;
  __shared__ __align__(8) uint64_t full[kStages], empty[kStages];
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      BarrierInit(&full[s], 1);
      BarrierInit(&empty[s], 2);
    }
    BarrierFence();
  }
  __syncthreads();
  const int group = threadIdx.x / 128, steps = depth / kStep;
  // groups of 8 tile rows, so that neighbouring blocks share operands in L2
  const int tiles_n = n / kTileN, in_group = 8 * tiles_n;
  const int tm = blockIdx.x / in_group * 8 + blockIdx.x % 8, tn = blockIdx.x % in_group / 8;
  if (group == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0) {
      for (int i = 0; i < steps; ++i) {
        const int s = i % kStages;
        if (i >= kStages) BarrierWait(&empty[s], (i / kStages - 1) & 1);
        BarrierExpect(&full[s], kBytesA + kBytesB);
        TmaLoad(as + s * kBytesA, ma, &full[s], i * kStep, tm * kTileM);
        TmaLoad(bs + s * kBytesB, mb, &full[s], i * kStep, tn * kTileN);
      }
    }
    return;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  float d[128];
#pragma unroll
  for (int i = 0; i < 128; ++i) d[i] = 0;
#pragma unroll 1
  for (int i = 0; i < steps; ++i) {
    const int s = i % kStages;
    BarrierWait(&full[s], (i / kStages) & 1);
    MmaFence();
#pragma unroll
    for (int k = 0; k < kStep / 16; ++k) {
      MmaShared256(d, Descriptor(as + s * kBytesA + (group - 1) * 8192 + k * 32),
                   Descriptor(bs + s * kBytesB + k * 32));
      if constexpr (kInFlight == 0) {  // each product waits for the one before
        MmaCommit();
        MmaWait<0>();
        MmaFence();
      }
    }
    MmaCommit();
    MmaWait<kInFlight>();
    const int done = i - kInFlight;
    if (done >= 0 && threadIdx.x % 128 == 0) BarrierArrive(&empty[done % kStages]);
  }
  MmaWait<0>();
  const int warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
  const int row = tm * kTileM + (group - 1) * 64 + warp * 16 + lane / 4;
#pragma unroll
  for (int j = 0; j < 32; ++j) {
    float* p = c + size_t(row) * n + tn * kTileN + j * 8 + lane % 4 * 2;
    *reinterpret_cast<float2*>(p) = make_float2(d[j * 4], d[j * 4 + 1]);
    *reinterpret_cast<float2*>(p + size_t(8) * n) = make_float2(d[j * 4 + 2], d[j * 4 + 3]);
  }
}
#define PRODUCT(name, in_flight)                                                               \
  KERNEL __launch_bounds__(384, 1)                                                             \
      name(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,       \
           float* c, int n, int depth) {                                                       \
    Product<in_flight>(&a, &b, c, n, depth);                                                   \
  }
PRODUCT(cmp_wgmma_serial__silent, 1)
PRODUCT(cmp_tensor_slow__silent, 1)
PRODUCT(cmp_tensor_feed__silent, 1)
PRODUCT(occ_registers__silent3, 1)
// --- cmp.wgmma_serial: wait_group 0 after every wgmma.
PRODUCT(cmp_wgmma_serial__fires2, 0)

// --- cmp.wgmma_serial: the A fragment in registers is refilled while wgmma may still read it, so
// the compiler serialises.
KERNEL __launch_bounds__(128) cmp_wgmma_serial__fires(const uint4* __restrict__ a, float* o, int steps) {
  extern __shared__ __align__(1024) uint8_t tile[];
  for (int i = threadIdx.x; i < 512; i += 128) reinterpret_cast<uint4*>(tile)[i] = a[i];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  float d[32];
#pragma unroll
  for (int i = 0; i < 32; ++i) d[i] = 0;
  uint4 v = a[threadIdx.x];
  unsigned f[4] = {v.x, v.y, v.z, v.w};
  MmaFence();
#pragma unroll 1
  for (int i = 0; i < steps; ++i) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      MmaRegister64(d, f, Descriptor(tile + k * 32));
#pragma unroll
      for (int j = 0; j < 4; ++j) f[j] ^= (i + k) << 3;
    }
    MmaCommit();
    MmaWait<1>();
  }
  MmaWait<0>();
  float s = 0;
#pragma unroll
  for (int i = 0; i < 32; ++i) s += d[i];
  o[Tid()] = s;
}

// --- mem.tma: boxes of 2 KB in a ring of two: little in flight, many instructions.
template <int kRows, int kRing>
INLINE void TmaStream(const CUtensorMap* map, float* o, int rows) {
  extern __shared__ uint8_t raw[];
  uint8_t* ring = raw + (1024 - SharedAddress(raw) % 1024) % 1024;
  __shared__ __align__(8) uint64_t full[kRing];
  if (threadIdx.x == 0) {
    for (int s = 0; s < kRing; ++s) BarrierInit(&full[s], 1);
    BarrierFence();
  }
  __syncthreads();
  const int boxes = rows / kRows, count = (boxes - blockIdx.x + gridDim.x - 1) / gridDim.x;
  auto fetch = [&](int i) {
    if (threadIdx.x == 0 && i < count) {
      BarrierExpect(&full[i % kRing], kRows * 128);
      TmaLoad(ring + i % kRing * (kRows * 128), map, &full[i % kRing], 0, (blockIdx.x + i * gridDim.x) * kRows);
    }
  };
  for (int i = 0; i < kRing - 1; ++i) fetch(i);
  float sum = 0;
  for (int i = 0; i < count; ++i) {
    fetch(i + kRing - 1);
    BarrierWait(&full[i % kRing], i / kRing & 1);
    const uint4* box = reinterpret_cast<const uint4*>(ring + i % kRing * (kRows * 128));
#pragma unroll
    for (int k = threadIdx.x; k < kRows * 8; k += 128) {
      const uint4 v = box[k];
      sum += __uint_as_float(v.x & 0x3fffffff) + __uint_as_float(v.w & 0x3fffffff);
    }
    __syncthreads();
  }
  o[Tid()] = sum;
}
KERNEL __launch_bounds__(128) mem_tma__fires(const __grid_constant__ CUtensorMap m, float* o, int rows) {
  TmaStream<16, 2>(&m, o, rows);
}
KERNEL __launch_bounds__(128) mem_tma__silent(const __grid_constant__ CUtensorMap m, float* o, int rows) {
  TmaStream<256, 4>(&m, o, rows);
}

int main(int argc, char** argv) {
  using suite::Add;
  constexpr int kSize = 4096;
  auto* a = suite::Buffer<__nv_bfloat16>(size_t(kN), suite::Fill::kBf16, 1);
  auto* b = suite::Buffer<__nv_bfloat16>(size_t(kSize) * kSize, suite::Fill::kBf16, 2);
  float* o = Out();
  const CUtensorMap ma = MatrixMap(a, kSize, kSize, kTileM), mb = MatrixMap(b, kSize, kSize, kTileN);
  const int grid = kSize / kTileM * (kSize / kTileN);
#define ADD_PRODUCT(name)                                                                                  \
  CHECK(cudaFuncSetAttribute(name, cudaFuncAttributeMaxDynamicSharedMemorySize, kRingBytes));              \
  Add(#name, [=] { name<<<grid, 384, kRingBytes>>>(ma, mb, o, kSize, kSize); })
  ADD_PRODUCT(cmp_wgmma_serial__silent);
  ADD_PRODUCT(cmp_tensor_slow__silent);
  ADD_PRODUCT(cmp_tensor_feed__silent);
  ADD_PRODUCT(occ_registers__silent3);
  ADD_PRODUCT(cmp_wgmma_serial__fires2);
  Add("cmp_wgmma_serial__fires", [=] { cmp_wgmma_serial__fires<<<4 * Sms(), 128, 8192>>>(reinterpret_cast<const uint4*>(a), o, 1024); });
  const int rows = kN / 64;
  const CUtensorMap small = MatrixMap(a, rows, 64, 16), large = MatrixMap(a, rows, 64, 256);
  constexpr int kSmall = 2 * 2048 + 1024, kLarge = 4 * 32768 + 1024;
  CHECK(cudaFuncSetAttribute(mem_tma__silent, cudaFuncAttributeMaxDynamicSharedMemorySize, kLarge));
  Add("mem_tma__fires", [=] { mem_tma__fires<<<Sms(), 128, kSmall>>>(small, o, rows); });
  Add("mem_tma__silent", [=] { mem_tma__silent<<<Sms(), 128, kLarge>>>(large, o, rows); });
  return suite::Main(argc, argv);
}
