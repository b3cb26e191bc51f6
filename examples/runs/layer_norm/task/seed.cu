// SPDX-License-Identifier: Apache-2.0
#include "kernelpro_task.h"

constexpr int kBlockSize = 256;
static_assert((kBlockSize & (kBlockSize - 1)) == 0, "the reduction halves the block in every step");

// Sum of `value` over the block, for every thread.
__device__ float BlockSum(float value, float* shared) {
  shared[threadIdx.x] = value;
  __syncthreads();
  for (int step = kBlockSize / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) {
      shared[threadIdx.x] += shared[threadIdx.x + step];
    }
    __syncthreads();
  }
  const float sum = shared[0];
  __syncthreads();
  return sum;
}

// Each block normalises one row.
__global__ void LayerNorm(const float* x, const float* gain, const float* bias, float* y,
                          int cols) {
  __shared__ float shared[kBlockSize];
  const float* in = x + static_cast<size_t>(blockIdx.x) * cols;
  float* out = y + static_cast<size_t>(blockIdx.x) * cols;

  float sum = 0.0f;
  for (int col = threadIdx.x; col < cols; col += kBlockSize) {
    sum += in[col];
  }
  const float mean = BlockSum(sum, shared) / cols;

  float squares = 0.0f;
  for (int col = threadIdx.x; col < cols; col += kBlockSize) {
    squares += pow(in[col] - mean, 2);
  }
  const float variance = BlockSum(squares, shared) / cols;

  for (int col = threadIdx.x; col < cols; col += kBlockSize) {
    out[col] = (in[col] - mean) / sqrt(variance + 1e-5) * gain[col] + bias[col];
  }
}

extern "C" cudaError_t kernelpro_run(const TaskArgs* args, cudaStream_t stream) {
  const int rows = static_cast<int>(args->rows);
  const int cols = static_cast<int>(args->cols);
  LayerNorm<<<rows, kBlockSize, 0, stream>>>(args->x, args->gain, args->bias, args->y, cols);
  return cudaGetLastError();
}
