// SPDX-License-Identifier: Apache-2.0
#include "kernelpro_task.h"

constexpr int kBlockX = 32;
constexpr int kBlockY = 8;

// Each thread moves one element.
__global__ void Transpose(const float* in, float* out, int rows, int cols) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < cols && y < rows) {
    out[static_cast<size_t>(x) * rows + y] = in[static_cast<size_t>(y) * cols + x];
  }
}

extern "C" cudaError_t kernelpro_run(const TaskArgs* args, cudaStream_t stream) {
  const int rows = static_cast<int>(args->rows);
  const int cols = static_cast<int>(args->cols);
  const dim3 block(kBlockX, kBlockY);
  const dim3 grid((cols + kBlockX - 1) / kBlockX, (rows + kBlockY - 1) / kBlockY);
  Transpose<<<grid, block, 0, stream>>>(args->in, args->out, rows, cols);
  return cudaGetLastError();
}
