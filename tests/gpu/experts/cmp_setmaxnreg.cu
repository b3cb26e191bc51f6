// SPDX-License-Identifier: Apache-2.0
// flags: -gencode arch=compute_90a,code=sm_90a
// cmp.setmaxnreg: without launch bounds ptxas does not know the registers at entry and ignores it.
#include "cases.h"

// Warpgroup 0 stages tiles, the others keep 64 sums a thread.
INLINE void Roles(const float4* __restrict__ a, float* __restrict__ o, int tiles) {
  __shared__ float4 s[2][128];
  const int role = threadIdx.x / 128, lane = threadIdx.x % 128;
  if (role == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    for (int t = 0; t < tiles; ++t) {
      s[t & 1][lane] = a[(blockIdx.x + t * gridDim.x) * 128 + lane];
      asm volatile("bar.sync 1, 384;" ::: "memory");
    }
    return;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  float acc[64];
#pragma unroll
  for (int k = 0; k < 64; ++k) acc[k] = k;
  for (int t = 0; t < tiles; ++t) {
    asm volatile("bar.sync 1, 384;" ::: "memory");
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      const float4 v = s[t & 1][(lane + k * 8) & 127];
      acc[k] = fmaf(acc[k], v.x, 0.5f);
      acc[k + 16] = fmaf(acc[k + 16], v.y, 0.5f);
      acc[k + 32] = fmaf(acc[k + 32], v.z, 0.5f);
      acc[k + 48] = fmaf(acc[k + 48], v.w, 0.5f);
    }
  }
  float sum = 0;
#pragma unroll
  for (int k = 0; k < 64; ++k) sum += acc[k];
  o[Tid()] = sum;
}
KERNEL cmp_setmaxnreg__fires(const float4* a, float* o, int tiles) { Roles(a, o, tiles); }
KERNEL __launch_bounds__(384, 1) cmp_setmaxnreg__silent(const float4* a, float* o, int tiles) {
  Roles(a, o, tiles);
}

int main(int argc, char** argv) {
  auto* a = reinterpret_cast<float4*>(In());
  float* o = Out();
  const int sms = Sms();
  suite::Add("cmp_setmaxnreg__fires", [=] { cmp_setmaxnreg__fires<<<sms, 384>>>(a, o, 400); });
  suite::Add("cmp_setmaxnreg__silent", [=] { cmp_setmaxnreg__silent<<<sms, 384>>>(a, o, 400); });
  return suite::Main(argc, argv);
}
