// SPDX-License-Identifier: Apache-2.0
// Softmax of every row, one thread per row.
#include "kernelpro_task.h"

#include <cmath>

constexpr int kThreads = 256;

__global__ void RowSoftmax(const float* x, float* y, int rows, int cols) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float largest = -INFINITY;
  for (int c = 0; c < cols; ++c) {
    largest = fmaxf(largest, x[row * cols + c]);
  }
  float sum = 0.0f;
  for (int c = 0; c < cols; ++c) {
    sum += expf(x[row * cols + c] - largest);
  }
  for (int c = 0; c < cols; ++c) {
    y[row * cols + c] = expf(x[row * cols + c] - largest) / sum;
  }
}

extern "C" cudaError_t kernelpro_run(const TaskArgs* args, cudaStream_t stream) {
  const int rows = static_cast<int>(args->rows);
  const int cols = static_cast<int>(args->cols);
  const int blocks = (rows + kThreads - 1) / kThreads;
  RowSoftmax<<<blocks, kThreads, 0, stream>>>(args->x, args->y, rows, cols);
  return cudaGetLastError();
}
