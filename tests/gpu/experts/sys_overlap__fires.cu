// SPDX-License-Identifier: Apache-2.0
// sys.overlap: eight independent kernels of 16 blocks one after the other in one stream.
#include "sys.h"

int main() {
  float* p = suite::Buffer<float>(1 << 20);
  return Window([=] {
    for (int step = 0; step < 20; ++step)
      for (int k = 0; k < 8; ++k) spin_chain<<<16, 256>>>(p + k * 4096, 40000);
  });
}
