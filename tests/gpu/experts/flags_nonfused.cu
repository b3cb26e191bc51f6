// SPDX-License-Identifier: Apache-2.0
// flags: -fmad=false
// cmp.nonfused: the flag forbids the fused form of plain a*b+c.
#include "cases.h"

KERNEL cmp_nonfused__fires(float* o, int steps, float p, float q) {
  float x[8];
#pragma unroll
  for (int k = 0; k < 8; ++k) x[k] = threadIdx.x + k;
  for (int i = 0; i < steps; ++i)
#pragma unroll
    for (int k = 0; k < 8; ++k) x[k] = x[k] * p + q;
  float s = 0;
#pragma unroll
  for (int k = 0; k < 8; ++k) s += x[k];
  o[Tid()] = s;
}
// Additions alone: nothing to fuse, whatever the flag.
KERNEL cmp_nonfused__silent2(float* o, int steps, float q) {
  float x[8];
#pragma unroll
  for (int k = 0; k < 8; ++k) x[k] = threadIdx.x + k;
  for (int i = 0; i < steps; ++i)
#pragma unroll
    for (int k = 0; k < 8; ++k) x[k] = x[k] + q;
  float s = 0;
#pragma unroll
  for (int k = 0; k < 8; ++k) s += x[k];
  o[Tid()] = s;
}

int main(int argc, char** argv) {
  float* o = Out();
  const int wide = 8 * Sms();
  suite::Add("cmp_nonfused__fires", [=] { cmp_nonfused__fires<<<wide, 256>>>(o, 2048, 0.999f, 0.5f); });
  suite::Add("cmp_nonfused__silent2", [=] { cmp_nonfused__silent2<<<wide, 256>>>(o, 4096, 0.5f); });
  return suite::Main(argc, argv);
}
