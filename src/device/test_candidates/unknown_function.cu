// SPDX-License-Identifier: Apache-2.0
// Uses a part of CUDA that the emulated GPU does not have: it must not load.
#include <cuda_runtime.h>

#include "arguments.h"

extern "C" cudaError_t kernelpro_run(const Arguments*, cudaStream_t) {
  void* pointer = nullptr;
  return cudaMallocManaged(&pointer, 1024);
}
