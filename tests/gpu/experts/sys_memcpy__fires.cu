// SPDX-License-Identifier: Apache-2.0
// sys.memcpy: 64 MB from pageable memory before every step, nothing else running meanwhile.
#include "sys.h"

int main() {
  constexpr int kCount = 1 << 24;
  float* p = suite::Buffer<float>(kCount);
  std::vector<float> host(kCount, 1.0f);
  return Window([&] {
    for (int k = 0; k < 6; ++k) {
      CHECK(cudaMemcpy(p, host.data(), kCount * sizeof(float), cudaMemcpyHostToDevice));
      scale_many<<<8 * Sms(), 256>>>(p, kCount, 0.9f, 64);
    }
  });
}
