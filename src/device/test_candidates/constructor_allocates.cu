// SPDX-License-Identifier: Apache-2.0
// The honest twin of constructor_exits.cu: a workspace made by a static constructor.
#include <cuda_runtime.h>

#include "arguments.h"

__global__ void Add(const float* a, const float* b, float* c, float* work, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    work[i] = a[i];
    c[i] = work[i] + b[i];
  }
}

struct Workspace {
  Workspace() { cudaMalloc(&memory, 1 << 20); }

  ~Workspace() { cudaFree(memory); }

  float* memory = nullptr;
};

static Workspace workspace;

extern "C" cudaError_t kernelpro_run(const Arguments* args, cudaStream_t stream) {
  Add<<<(args->n + 255) / 256, 256, 0, stream>>>(args->a, args->b, args->c, workspace.memory,
                                                 args->n);
  return cudaGetLastError();
}
