// SPDX-License-Identifier: Apache-2.0
// sys.overlap, silent: the eight kernels in eight streams.
#include "sys.h"

int main() {
  float* p = suite::Buffer<float>(1 << 20);
  std::vector<cudaStream_t> streams(8);
  for (auto& s : streams) CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  return Window([=] {
    for (int step = 0; step < 20; ++step)
      for (int k = 0; k < 8; ++k) spin_chain<<<16, 256, 0, streams[k]>>>(p + k * 4096, 40000);
    CHECK(cudaDeviceSynchronize());
  });
}
