// SPDX-License-Identifier: Apache-2.0
// sys.launch: 20 elementwise kernels on 64 KB, a hundred times over: launches are the work.
#include "sys.h"

int main() {
  constexpr int kCount = 16384;
  float* p = suite::Buffer<float>(kCount);
  return Window([=] {
    for (int step = 0; step < 100; ++step)
      for (int k = 0; k < 20; ++k) scale<<<64, 256>>>(p, kCount, 0.9f + 0.001f * k);
  });
}
