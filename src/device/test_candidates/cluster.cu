// SPDX-License-Identifier: Apache-2.0
// Launches with an attribute that is not emulated.
#include <cuda_runtime.h>

#include "arguments.h"

__global__ void Fill(float* c) {
  c[threadIdx.x] = 1;
}

extern "C" cudaError_t kernelpro_run(const Arguments* args, cudaStream_t stream) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = 2;
  attribute.val.clusterDim.y = 1;
  attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = 2;
  config.blockDim = 32;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, Fill, args->c);
}
