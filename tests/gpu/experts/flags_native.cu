// SPDX-License-Identifier: Apache-2.0
// flags: -gencode arch=compute_90a,code=sm_90a
// bld.flags: machine code for this card, -O3 -lineinfo.
#include "cases.h"

KERNEL bld_flags__silent(const float4* __restrict__ a, float4* __restrict__ o, int n) {
  for (int i = Tid(); i < n; i += Threads()) {
    float4 v = a[i];
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      v.x = v.x * v.y + 0.5f;
      v.y = v.y * v.z + 0.25f;
      v.z = v.z * v.w + 0.5f;
      v.w = v.w * v.x + 0.25f;
    }
    o[i] = v;
  }
}

int main(int argc, char** argv) {
  auto* a = reinterpret_cast<float4*>(In());
  auto* o = reinterpret_cast<float4*>(Out());
  suite::Add("bld_flags__silent", [=] { bld_flags__silent<<<8 * Sms(), 256>>>(a, o, kN / 16); });
  return suite::Main(argc, argv);
}
