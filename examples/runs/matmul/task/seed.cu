// SPDX-License-Identifier: Apache-2.0
#include "kernelpro_task.h"

constexpr int kBlockX = 16;
constexpr int kBlockY = 16;

// Each thread computes one element of c: the product of a row of a and a column of b.
__global__ void MatMul(const float* a, const float* b, float* c, int m, int n, int depth) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  const int col = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < m && col < n) {
    float sum = 0.0f;
    for (int k = 0; k < depth; ++k) {
      sum += a[row * depth + k] * b[k * n + col];
    }
    c[row * n + col] = sum;
  }
}

extern "C" cudaError_t kernelpro_run(const TaskArgs* args, cudaStream_t stream) {
  const int m = static_cast<int>(args->m);
  const int n = static_cast<int>(args->n);
  const int depth = static_cast<int>(args->k);
  const dim3 block(kBlockX, kBlockY);
  const dim3 grid((m + kBlockX - 1) / kBlockX, (n + kBlockY - 1) / kBlockY);
  MatMul<<<grid, block, 0, stream>>>(args->a, args->b, args->c, m, n, depth);
  return cudaGetLastError();
}
