// SPDX-License-Identifier: Apache-2.0
// Defines no kernelpro_run.
#include <cuda_runtime.h>

extern "C" cudaError_t some_other_name() {
  return cudaSuccess;
}
