// SPDX-License-Identifier: Apache-2.0
// Layer normalisation, one block per row.
#include "kernelpro_task.h"

constexpr int kThreads = 256;

__global__ void LayerNorm(const float* x, const float* gamma, const float* beta, float* y, int cols,
                          float eps) {
  __shared__ float partial[kThreads];
  const int t = threadIdx.x;
  const float* in = x + static_cast<size_t>(blockIdx.x) * cols;
  float* out = y + static_cast<size_t>(blockIdx.x) * cols;

  float sum = 0.0f;
  for (int c = t; c < cols; c += blockDim.x) {
    sum += in[c];
  }
  partial[t] = sum;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (t < s) {
      partial[t] += partial[t + s];
    }
    __syncthreads();
  }
  const float mean = partial[0] / cols;
  __syncthreads();

  float squares = 0.0f;
  for (int c = t; c < cols; c += blockDim.x) {
    const double d = in[c] - mean;
    squares += d * d;
  }
  partial[t] = squares;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (t < s) {
      partial[t] += partial[t + s];
    }
    __syncthreads();
  }
  const double scale = 1.0 / sqrt(partial[0] / cols + 1e-5 * 1.0 + 0.0 * eps);
  for (int c = t; c < cols; c += blockDim.x) {
    out[c] = (in[c] - mean) * scale * gamma[c] + beta[c];
  }
}

extern "C" cudaError_t kernelpro_run(const TaskArgs* args, cudaStream_t stream) {
  LayerNorm<<<static_cast<unsigned>(args->rows), kThreads, 0, stream>>>(
      args->x, args->gain, args->bias, args->y, static_cast<int>(args->cols), 1e-5f);
  return cudaGetLastError();
}
