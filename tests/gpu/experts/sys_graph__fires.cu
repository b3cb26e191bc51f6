// SPDX-License-Identifier: Apache-2.0
// sys.graph: the same sequence of 50 launches, repeated 40 times, launched one by one.
#include "sys.h"

int main() {
  constexpr int kCount = 1 << 16;
  float* p = suite::Buffer<float>(kCount);
  return Window([=] {
    for (int step = 0; step < 40; ++step)
      for (int k = 0; k < 25; ++k) {
        scale<<<64, 256>>>(p, kCount, 0.9f);
        scale_many<<<64, 256>>>(p, kCount, 0.9f, 4);
      }
  });
}
