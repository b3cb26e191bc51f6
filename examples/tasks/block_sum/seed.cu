// SPDX-License-Identifier: Apache-2.0
#include "kernelpro_task.h"

constexpr int kBlockSize = 256;

// Each block sums one segment, one block's worth of elements at a time.
__global__ void BlockSum(const float* in, float* out, int length) {
  __shared__ float shared[kBlockSize];
  const float* segment = in + static_cast<size_t>(blockIdx.x) * length;
  const int thread = threadIdx.x;

  float total = 0.0f;
  for (int base = 0; base < length; base += kBlockSize) {
    shared[thread] = base + thread < length ? segment[base + thread] : 0.0f;
    __syncthreads();
    for (int step = 1; step < kBlockSize; step *= 2) {
      if (thread % (2 * step) == 0 && thread + step < kBlockSize) {
        shared[thread] += shared[thread + step];
      }
      __syncthreads();
    }
    if (thread == 0) {
      total += shared[0];
    }
    __syncthreads();
  }
  if (thread == 0) {
    out[blockIdx.x] = total;
  }
}

extern "C" cudaError_t kernelpro_run(const TaskArgs* args, cudaStream_t stream) {
  const int segments = static_cast<int>(args->segments);
  const int length = static_cast<int>(args->length);
  BlockSum<<<segments, kBlockSize, 0, stream>>>(args->in, args->out, length);
  return cudaGetLastError();
}
