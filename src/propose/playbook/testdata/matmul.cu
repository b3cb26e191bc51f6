// SPDX-License-Identifier: Apache-2.0
// c = a * b, one thread per element, neighbouring threads on neighbouring rows.
#include "kernelpro_task.h"

constexpr int kTile = 16;

__global__ void MatMul(const float* a, const float* b, float* c, int m, int n, int k) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  const int col = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || col >= n) {
    return;
  }
  float sum = 0.0f;
  for (int i = 0; i < k; ++i) {
    sum += a[row * k + i] * b[i * n + col];
  }
  c[row * n + col] = sum;
}

extern "C" cudaError_t kernelpro_run(const TaskArgs* args, cudaStream_t stream) {
  const int m = static_cast<int>(args->m);
  const int n = static_cast<int>(args->n);
  const int k = static_cast<int>(args->k);
  const dim3 block(kTile, kTile);
  const dim3 grid((m + kTile - 1) / kTile, (n + kTile - 1) / kTile);
  MatMul<<<grid, block, 0, stream>>>(args->a, args->b, args->c, m, n, k);
  return cudaGetLastError();
}
