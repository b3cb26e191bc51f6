// SPDX-License-Identifier: Apache-2.0
#include "kernelpro_reference.h"

extern "C" void kernelpro_reference(const ReferenceArgs* args) {
  for (int64_t row = 0; row < args->rows; ++row) {
    for (int64_t col = 0; col < args->cols; ++col) {
      args->out[col * args->rows + row] = args->in[row * args->cols + col];
    }
  }
}
