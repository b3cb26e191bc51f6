// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "kernelpro_reference.h"

extern "C" void kernelpro_reference(const ReferenceArgs* args) {
  for (int64_t row = 0; row < args->rows; ++row) {
    const double* x = args->x + row * args->cols;
    double* y = args->y + row * args->cols;
    const double largest = *std::max_element(x, x + args->cols);
    double sum = 0;
    for (int64_t col = 0; col < args->cols; ++col) {
      y[col] = std::exp(x[col] - largest);
      sum += y[col];
    }
    for (int64_t col = 0; col < args->cols; ++col) {
      y[col] /= sum;
    }
  }
}
