// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "kernelpro_task.h"

constexpr int kBlockSize = 128;

// Each thread computes one row: the maximum, the sum of the exponentials, then the quotients.
__global__ void RowSoftmax(const float* x, float* y, int rows, int cols) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) {
    return;
  }
  const float* in = x + static_cast<size_t>(row) * cols;
  float* out = y + static_cast<size_t>(row) * cols;

  float largest = in[0];
  for (int col = 1; col < cols; ++col) {
    largest = fmaxf(largest, in[col]);
  }
  float sum = 0.0f;
  for (int col = 0; col < cols; ++col) {
    sum += expf(in[col] - largest);
  }
  for (int col = 0; col < cols; ++col) {
    out[col] = expf(in[col] - largest) / sum;
  }
}

extern "C" cudaError_t kernelpro_run(const TaskArgs* args, cudaStream_t stream) {
  const int rows = static_cast<int>(args->rows);
  const int cols = static_cast<int>(args->cols);
  const int blocks = (rows + kBlockSize - 1) / kBlockSize;
  RowSoftmax<<<blocks, kBlockSize, 0, stream>>>(args->x, args->y, rows, cols);
  return cudaGetLastError();
}
