// SPDX-License-Identifier: Apache-2.0
// sys.graph, silent: the sequence captured once, replayed 40 times.
#include "sys.h"

int main() {
  constexpr int kCount = 1 << 16;
  float* p = suite::Buffer<float>(kCount);
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  for (int k = 0; k < 25; ++k) {
    scale<<<64, 256, 0, stream>>>(p, kCount, 0.9f);
    scale_many<<<64, 256, 0, stream>>>(p, kCount, 0.9f, 4);
  }
  cudaGraph_t graph;
  CHECK(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  return Window([=] {
    for (int step = 0; step < 40; ++step) CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
  });
}
