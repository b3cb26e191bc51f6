// SPDX-License-Identifier: Apache-2.0
// Global memory, the tools beyond the core.
#include "cases.h"

// --- mem.align: one element off the 32-byte grid: five sectors a request instead of four.
KERNEL mem_align__fires(const float* __restrict__ a, float* __restrict__ o, int n) {
  for (int i = Tid(); i < n - 1; i += Threads()) o[i] = __ldcg(&a[i + 1]);
}
KERNEL mem_align__silent(const float* __restrict__ a, float* __restrict__ o, int n) {
  for (int i = Tid(); i < n - 1; i += Threads()) o[i] = __ldcg(&a[i]);
}

// --- mem.redundant: c may overlap a and b, so a[i] and c[i] are loaded again in each step.
KERNEL mem_redundant__fires(float* c, const float* a, const float* b, int n, int steps) {
  for (int i = Tid(); i < n; i += Threads())
    for (int k = 0; k < steps; ++k) c[i] += a[i] * b[k];
}
KERNEL mem_redundant__silent(float* __restrict__ c, const float* __restrict__ a,
                             const float* __restrict__ b, int n, int steps) {
  for (int i = Tid(); i < n; i += Threads()) {
    const float x = a[i];
    float sum = c[i];
    for (int k = 0; k < steps; ++k) sum += x * b[k];
    c[i] = sum;
  }
}

// --- mem.partition: every warp updates the same 4 KB, in steps of a power of two.
KERNEL mem_partition__fires(float* o, int rounds) {
  for (int r = 0; r < rounds; ++r) atomicAdd(&o[(threadIdx.x % 4) * 256 + (r & 1) * 128], 1.0f);
}
KERNEL mem_partition__silent(const float4* __restrict__ a, float4* __restrict__ o, int n) {
  for (int i = Tid(); i < n; i += Threads()) o[i] = a[i];
}

// --- mem.aperture: the buffer lies in host memory.
INLINE void SumAll(const float4* __restrict__ a, float* __restrict__ o, int n) {
  float s = 0;
#pragma unroll 4
  for (int i = Tid(); i < n; i += Threads()) {
    const float4 v = a[i];
    s += v.x + v.y + v.z + v.w;
  }
  o[Tid()] = s;
}
KERNEL mem_aperture__fires(const float4* a, float* o, int n) { SumAll(a, o, n); }
KERNEL mem_aperture__silent(const float4* a, float* o, int n) { SumAll(a, o, n); }

// --- mem.persist: a 20 MB table is gathered while 512 MB of single-use data push it out of L2.
template <bool kHint>
INLINE void Gather(const uint4* __restrict__ index, const float* __restrict__ table, float4* __restrict__ o,
                   int n, unsigned size) {
  for (int i = Tid(); i < n; i += Threads()) {
    const uint4 k = kHint ? __ldcs(&index[i]) : index[i];
    const float4 v = make_float4(__ldcg(&table[k.x % size]), __ldcg(&table[k.y % size]),
                                 __ldcg(&table[k.z % size]), __ldcg(&table[k.w % size]));
    if (kHint) {
      __stcs(&o[i], v);
    } else {
      o[i] = v;
    }
  }
}
KERNEL mem_persist__fires(const uint4* index, const float* table, float4* o, int n, unsigned size) {
  Gather<false>(index, table, o, n, size);
}
KERNEL mem_persist__silent2(const uint4* index, const float* table, float4* o, int n, unsigned size) {
  Gather<true>(index, table, o, n, size);
}
KERNEL mem_persist__silent(const float4* __restrict__ a, float4* __restrict__ o, int n) {
  for (int i = Tid(); i < n; i += Threads()) o[i] = a[i];
}

int main(int argc, char** argv) {
  using suite::Add;
  float *a = In(), *o = Out();
  const int wide = 8 * Sms();
  auto* a4 = reinterpret_cast<float4*>(a);
  auto* o4 = reinterpret_cast<float4*>(o);
  auto* bits = suite::Buffer<uint4>(kN / 4, suite::Fill::kBits);
  constexpr int kHost = 4 << 20;
  float* host = nullptr;
  CHECK(cudaHostAlloc(&host, kHost * sizeof(float), cudaHostAllocMapped));
  std::fill(host, host + kHost, 1.0f);
  const auto* host4 = reinterpret_cast<const float4*>(host);
  const unsigned table = 5u << 20;
  Add("mem_align__fires", [=] { mem_align__fires<<<wide, 256>>>(a, o, kN); });
  Add("mem_align__silent", [=] { mem_align__silent<<<wide, 256>>>(a, o, kN); });
  Add("mem_redundant__fires", [=] { mem_redundant__fires<<<wide, 256>>>(o, a, a + kN / 2, kN / 32, 64); });
  Add("mem_redundant__silent", [=] { mem_redundant__silent<<<wide, 256>>>(o, a, a + kN / 2, kN / 32, 64); });
  Add("mem_partition__fires", [=] { mem_partition__fires<<<wide, 256>>>(o, 2); });
  Add("mem_partition__silent", [=] { mem_partition__silent<<<wide, 256>>>(a4, o4, kN / 4); });
  Add("mem_aperture__fires", [=] { mem_aperture__fires<<<wide, 256>>>(host4, o, kHost / 4); });
  Add("mem_aperture__silent", [=] { mem_aperture__silent<<<wide, 256>>>(a4, o, kN / 4); });
  Add("mem_persist__fires", [=] { mem_persist__fires<<<wide, 256>>>(bits, a, o4, kN / 4, table); });
  Add("mem_persist__silent", [=] { mem_persist__silent<<<wide, 256>>>(a4, o4, kN / 4); });
  Add("mem_persist__silent2", [=] { mem_persist__silent2<<<wide, 256>>>(bits, a, o4, kN / 4, table); });
  return suite::Main(argc, argv);
}
