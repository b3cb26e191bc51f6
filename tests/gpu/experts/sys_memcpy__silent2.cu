// SPDX-License-Identifier: Apache-2.0
// sys.memcpy, silent: pinned copies in a second stream, covered by the kernels of the first.
#include "sys.h"

int main() {
  constexpr int kCount = 1 << 20;
  float* p = suite::Buffer<float>(1 << 24);
  float* q = suite::Buffer<float>(2 * kCount);
  float* host = nullptr;
  CHECK(cudaMallocHost(&host, kCount * sizeof(float)));
  std::fill(host, host + kCount, 1.0f);
  cudaStream_t copy, work;
  CHECK(cudaStreamCreateWithFlags(&copy, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&work, cudaStreamNonBlocking));
  return Window([=] {
    for (int k = 0; k < 50; ++k) {
      scale_many<<<8 * Sms(), 256, 0, work>>>(p, 1 << 24, 0.9f, 1024);
      CHECK(cudaMemcpyAsync(q + k % 2 * kCount, host, kCount * sizeof(float), cudaMemcpyHostToDevice, copy));
    }
    CHECK(cudaDeviceSynchronize());
  });
}
