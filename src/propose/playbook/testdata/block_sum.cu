// SPDX-License-Identifier: Apache-2.0
// Sums of consecutive chunks, one block per chunk of kThreads elements.
#include "kernelpro_task.h"

constexpr int kThreads = 256;

__global__ void BlockSum(const float* x, float* sums, int n) {
  __shared__ float data[kThreads];
  const int t = threadIdx.x;
  const int i = blockIdx.x * blockDim.x + t;
  data[t] = i < n ? x[i] : 0.0f;
  __syncthreads();
  for (int s = 1; s < blockDim.x; s *= 2) {
    if (t % (2 * s) == 0) {
      data[t] += data[t + s];
    }
    __syncthreads();
  }
  if (t == 0) {
    sums[blockIdx.x] = data[0];
  }
}

extern "C" cudaError_t kernelpro_run(const TaskArgs* args, cudaStream_t stream) {
  const int n = static_cast<int>(args->n);
  BlockSum<<<(n + kThreads - 1) / kThreads, kThreads, 0, stream>>>(args->x, args->sums, n);
  return cudaGetLastError();
}
