// SPDX-License-Identifier: Apache-2.0
// What the sys_* programs share: each is one whole run whose timeline has the defect or lacks it.
#pragma once

#include <unistd.h>

#include "cases.h"

__global__ void scale(float* p, int n, float f) {
  for (int i = Tid(); i < n; i += Threads()) {
    p[i] = p[i] * f + 0.5f;
  }
}

__global__ void scale_many(float* p, int n, float f, int times) {
  for (int i = Tid(); i < n; i += Threads()) {
    float v = p[i];
    for (int k = 0; k < times; ++k) {
      v = v * f + 0.5f;
    }
    p[i] = v;
  }
}

/// A kernel of few blocks that lasts about `steps` * 2.3 ns, whatever runs beside it.
__global__ void spin_chain(float* p, int steps) {
  float x = threadIdx.x;
#pragma unroll 16
  for (int i = 0; i < steps; ++i) {
    x = fmaf(x, 0.999f, 0.5f);
  }
  p[Tid()] = x;
}

/// The program without its start: warm-up, then the window between cudaProfilerStart and Stop.
template <class F>
int Window(F&& step) {
  step();
  CHECK(cudaDeviceSynchronize());
  cudaEvent_t start, stop;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&stop));
  CHECK(cudaProfilerStart());
  CHECK(cudaEventRecord(start));
  step();
  CHECK(cudaEventRecord(stop));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaProfilerStop());
  CHECK(cudaGetLastError());
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, start, stop));
  std::printf("window_us,%.1f\n", 1000.0 * ms);
  return 0;
}
