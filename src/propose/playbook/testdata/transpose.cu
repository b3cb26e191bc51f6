// SPDX-License-Identifier: Apache-2.0
// y[c][r] = x[r][c], one thread per element.
#include "kernelpro_task.h"

__global__ void Transpose(const float* x, float* y, int rows, int cols) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x;
  const int r = blockIdx.y * blockDim.y + threadIdx.y;
  if (r < rows && c < cols) {
    y[c * rows + r] = x[r * cols + c];
  }
}

extern "C" cudaError_t kernelpro_run(const TaskArgs* args, cudaStream_t stream) {
  const int rows = static_cast<int>(args->rows);
  const int cols = static_cast<int>(args->cols);
  const dim3 block(16, 16);
  const dim3 grid((cols + block.x - 1) / block.x, (rows + block.y - 1) / block.y);
  Transpose<<<grid, block, 0, stream>>>(args->in, args->out, rows, cols);
  return cudaGetLastError();
}
