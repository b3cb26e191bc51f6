// SPDX-License-Identifier: Apache-2.0
// sys.alloc: a workspace allocated and freed around every call.
#include "sys.h"

int main() {
  constexpr int kCount = 1 << 24;
  return Window([=] {
    for (int k = 0; k < 60; ++k) {
      float* p = nullptr;
      CHECK(cudaMalloc(&p, kCount * sizeof(float)));
      scale<<<8 * Sms(), 256>>>(p, kCount, 0.9f);
      CHECK(cudaFree(p));
    }
  });
}
