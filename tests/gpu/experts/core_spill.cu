// SPDX-License-Identifier: Apache-2.0
// Local memory: spills and arrays with run-time indices.
#include "cases.h"

template <int kSums>
INLINE void ManySums(const float* __restrict__ a, float* __restrict__ o, int rounds) {
  float acc[kSums];
#pragma unroll
  for (int k = 0; k < kSums; ++k) acc[k] = a[k];
#pragma unroll 1
  for (int r = 0; r < rounds; ++r) {
    const float x = a[Tid() + r * Threads()];
#pragma unroll
    for (int k = 0; k < kSums; ++k) acc[k] = fmaf(acc[k], x, acc[(k + 1) % kSums]);
  }
  float s = 0;
#pragma unroll
  for (int k = 0; k < kSums; ++k) s += acc[k] * k;
  o[Tid()] = s;
}
// --- mem.spill: 64 sums a thread under a cap of 32 registers.
KERNEL __launch_bounds__(1024, 2) mem_spill__fires(const float* a, float* o, int rounds) {
  ManySums<64>(a, o, rounds);
}
KERNEL __launch_bounds__(1024, 2) mem_spill__silent(const float* a, float* o, int rounds) {
  ManySums<8>(a, o, rounds);
}
// The same 64 sums with registers enough for them.
KERNEL __launch_bounds__(256) mem_spill__silent2(const float* a, float* o, int rounds) {
  ManySums<64>(a, o, rounds);
}

// --- mem.local_array: t[] is indexed with a run-time value, so it lies in local memory.
KERNEL mem_local_array__fires(const float* __restrict__ a, float* __restrict__ o, int rounds, int n) {
  float t[64];
#pragma unroll
  for (int k = 0; k < 64; ++k) t[k] = a[k];
  float s = 0;
#pragma unroll 4
  for (int k = 0; k < rounds; ++k) {
    s = s * 0.5f + t[(k * n + Tid()) & 63];
    t[(k + n) & 63] = s;
  }
  o[Tid()] = s;
}
KERNEL mem_local_array__silent(const float* __restrict__ a, float* __restrict__ o, int rounds, int) {
  float t[64];
#pragma unroll
  for (int k = 0; k < 64; ++k) t[k] = a[k];
  float s = 0;
#pragma unroll 1
  for (int r = 0; r < rounds; r += 64)
#pragma unroll
    for (int k = 0; k < 64; ++k) {
      s = s * 0.5f + t[k];
      t[(k + 7) & 63] = s;
    }
  o[Tid()] = s;
}

int main(int argc, char** argv) {
  float *a = In(), *o = Out();
  const int sms = Sms();
  using suite::Add;
  Add("mem_spill__fires", [=] { mem_spill__fires<<<2 * sms, 1024>>>(a, o, 16); });
  Add("mem_spill__silent", [=] { mem_spill__silent<<<2 * sms, 1024>>>(a, o, 128); });
  Add("mem_spill__silent2", [=] { mem_spill__silent2<<<8 * sms, 256>>>(a, o, 64); });
  Add("mem_local_array__fires", [=] { mem_local_array__fires<<<8 * sms, 256>>>(a, o, 256, 7); });
  Add("mem_local_array__silent", [=] { mem_local_array__silent<<<8 * sms, 256>>>(a, o, 4096, 7); });
  return suite::Main(argc, argv);
}
